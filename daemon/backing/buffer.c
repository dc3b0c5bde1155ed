/* SPDX-License-Identifier: MIT */
#include "backing/buffer.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/fd.h"

static struct backing_buffer **find(struct backing *b, dev_t dev, ino_t ino)
{
	struct backing_buffer **p = &b->by_ino[ino % BACKING_HASH_SIZE];

	while (*p && ((*p)->ino != ino || (*p)->dev != dev))
		p = &(*p)->next;
	return p;
}

struct backing_buffer *backing_find(struct backing *b, dev_t dev, ino_t ino)
{
	return *find(b, dev, ino);
}

void buffer_enter(struct backing *b, struct backing_buffer *bb, int wd)
{
	bb->next = NULL;
	*find(b, bb->dev, bb->ino) = bb;
	lifetime_add(b->lifetime, &bb->watched, bb->watched.own, wd);
	b->n_buffers++;
}

void buffer_leave(struct backing *b, struct backing_buffer *bb)
{
	*find(b, bb->dev, bb->ino) = bb->next;
	lifetime_remove(b->lifetime, &bb->watched);
	if (bb->state == BUFFER_PARKED) {
		b->n_parked--;
		b->parked_bytes -= bb->size_bytes;
	}
	b->n_buffers--;
}

struct backing_buffer *backing_buffer_new(struct backing *b, uint64_t bytes,
					  uid_t uid, uint64_t client)
{
	struct backing_buffer *bb = calloc(1, sizeof(*bb));

	if (!bb)
		return NULL;
	bb->backing = b;
	bb->size_bytes = bytes;
	bb->watched.own = -1;
	bb->job.uid = uid;
	bb->job.client = client;
	bb->job.small = bytes <= BACKING_SMALL_BYTES;
	list_init(&bb->watched.due_link);
	return bb;
}

void backing_buffer_free(struct backing_buffer *bb)
{
	fd_close(bb->watched.own);
	free(bb);
}

void buffer_arm(struct backing *b, struct backing_buffer *bb)
{
	uint64_t now_ns = clock_now_ns();

	lifetime_arm(b->lifetime, &bb->watched, now_ns);
	/* Without a watch it is time that will tell. */
	if (bb->watched.wd < 0)
		dispatch_arm_timer(b, now_ns);
}
