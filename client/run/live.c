/* SPDX-License-Identifier: MIT */
#include "run/live.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run/fdinfo.h"
#include "run/holders.h"
#include "run/maps.h"
#include "run/target.h"

static struct live_buffer *find(struct live *live, dev_t dev, ino_t ino)
{
	struct live_buffer *grown;

	for (size_t i = 0; i < live->n; i++)
		if (live->buffer[i].ino == ino && live->buffer[i].dev == dev)
			return &live->buffer[i];
	grown = realloc(live->buffer, (live->n + 1) * sizeof(*grown));
	if (!grown)
		return NULL;
	live->buffer = grown;
	grown = &grown[live->n++];
	memset(grown, 0, sizeof(*grown));
	grown->dev = dev;
	grown->ino = ino;
	return grown;
}

static void add(void *ctx, pid_t pid, const struct holders_held *held)
{
	struct live_buffer *buffer = find(ctx, held->dev, held->ino);
	unsigned int flags;

	if (!buffer)
		return;
	buffer->n_references++;
	if (held->size_bytes > buffer->size_bytes)
		buffer->size_bytes = held->size_bytes;
	fdinfo_heap_name(held->link, buffer->heap);
	if (!held->is_mapping && target_fd_flags(pid, held->fd, &flags) == 0)
		buffer->flags = flags & (O_ACCMODE | O_NONBLOCK | O_APPEND);
}

static int newest_first(const void *a, const void *b)
{
	const struct live_buffer *x = a, *y = b;

	return x->ino < y->ino ? 1 : x->ino > y->ino ? -1 : 0;
}

void live_collect(struct live *ret)
{
	ret->buffer = NULL;
	ret->n = 0;
	holders_of_descendants(getpid(), 0, add, ret);
	if (ret->n)
		qsort(ret->buffer, ret->n, sizeof(ret->buffer[0]),
		      newest_first);
}

void live_free(struct live *live)
{
	free(live->buffer);
	live->buffer = NULL;
	live->n = 0;
}
