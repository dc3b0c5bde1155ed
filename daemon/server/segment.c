/* SPDX-License-Identifier: MIT */
#include "server/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/fd.h"

struct segment {
	int fd;
	struct dmaheap_stats *stats; /* shared mapping */
};

int segment_new(struct segment **ret)
{
	_cleanup_(segment_freep) struct segment *s = calloc(1, sizeof(*s));
	void *p;

	if (!s)
		return err_raise(-ENOMEM);
	s->fd = memfd_create("dmaheap:stats", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (s->fd < 0 || ftruncate(s->fd, sizeof(*s->stats)) < 0 ||
	    fchmod(s->fd, 0400) < 0)
		return err_raise(-errno);
	/* All of it now: where overcommit is refused a page that is missing
	 * later is SIGBUS. */
	if (fallocate(s->fd, 0, 0, sizeof(*s->stats)) < 0)
		return err_raise(-errno);
	p = mmap(NULL, sizeof(*s->stats), PROT_READ | PROT_WRITE, MAP_SHARED,
		 s->fd, 0);
	if (p == MAP_FAILED)
		return err_raise(-errno);
	s->stats = p;
	if (fcntl(s->fd, F_ADD_SEALS,
		  F_SEAL_FUTURE_WRITE | F_SEAL_GROW | F_SEAL_SHRINK |
			  F_SEAL_SEAL) < 0)
		return err_raise(-errno);
	s->stats->magic = DMAHEAP_STATS_MAGIC;
	s->stats->version = DMAHEAP_STATS_VERSION;
	s->stats->segment_bytes = sizeof(*s->stats);
	*ret = TAKE_PTR(s);
	return 0;
}

struct segment *segment_free(struct segment *segment)
{
	if (!segment)
		return NULL;
	if (segment->stats)
		munmap(segment->stats, sizeof(*segment->stats));
	fd_close(segment->fd);
	free(segment);
	return NULL;
}

struct dmaheap_stats *segment_stats(struct segment *segment)
{
	return segment->stats;
}

/* A reader that sees the odd number, or another one afterwards, copies again;
 * the fences keep the section's stores between the two. */
void segment_begin(uint64_t *seq)
{
	__atomic_store_n(seq, *seq + 1, __ATOMIC_RELAXED);
	atomic_thread_fence(memory_order_release);
}

void segment_end(uint64_t *seq)
{
	__atomic_store_n(seq, *seq + 1, __ATOMIC_RELEASE);
}

int segment_open(const struct segment *segment, int *ret_fd)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", segment->fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_raise(-errno);
	*ret_fd = fd;
	return 0;
}

void segment_add_event(struct segment *segment,
		       const struct dmaheap_stats_event *event)
{
	struct dmaheap_stats_events *e = &segment->stats->events;
	struct dmaheap_stats_event *slot =
		&e->event[e->next % DMAHEAP_STATS_EVENTS];

	segment_begin(&e->seq);
	*slot = *event;
	slot->n = ++e->next;
	segment_end(&e->seq);
}
