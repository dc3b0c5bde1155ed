/* SPDX-License-Identifier: MIT */
#include <dmaheap/stats.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <dmaheap/dmaheap.h>

#include "lib/handle.h"

/*
 * The daemon holds a section for microseconds; one that is still held after so
 * many yields was left behind by a daemon that died.
 */
#define TRIES_MAX 10000u

/*
 * Copies one section: everything between two equal and even readings of its
 * number. Words are read as atomics because the writer does not wait for us.
 */
static int copy_section(void *to, const void *from, size_t bytes)
{
	const uint64_t *source = from;
	uint64_t *target = to;

	for (unsigned int i = 0; i < TRIES_MAX; i++) {
		uint64_t seq = __atomic_load_n(source, __ATOMIC_ACQUIRE);

		target[0] = seq;
		for (size_t w = 1; w < bytes / sizeof(*source); w++)
			target[w] =
				__atomic_load_n(source + w, __ATOMIC_ACQUIRE);
		if (seq % 2 == 0 &&
		    __atomic_load_n(source, __ATOMIC_ACQUIRE) == seq)
			return 0;
		sched_yield();
	}
	return -EBUSY;
}

#define COPY(member)                                                           \
	copy_section(&to->member, &from->member, sizeof(to->member))

static int copy_all(struct dmaheap_stats *to, const struct dmaheap_stats *from)
{
	int r;

	to->magic = from->magic;
	to->version = from->version;
	to->segment_bytes = from->segment_bytes;
	to->reserved = 0;
	to->n_heaps = __atomic_load_n(&from->n_heaps, __ATOMIC_ACQUIRE);
	if (to->n_heaps > DMAHEAP_STATS_HEAPS_MAX)
		return -EPROTO;
	r = COPY(daemon);
	if (r == 0)
		r = COPY(node);
	if (r == 0)
		r = COPY(vmstat);
	if (r == 0)
		r = COPY(backing);
	if (r == 0)
		r = COPY(events);
	for (uint32_t i = 0; r == 0 && i < to->n_heaps; i++)
		r = COPY(heap[i]);
	memset(to->heap + to->n_heaps, 0,
	       (DMAHEAP_STATS_HEAPS_MAX - to->n_heaps) * sizeof(to->heap[0]));
	return r;
}

static void unmap(struct dmaheap *dh)
{
	if (dh->stats)
		munmap((void *)(uintptr_t)dh->stats, dh->stats_bytes);
	dh->stats = NULL;
}

/* Maps @fd when it is a segment of our layout that cannot shrink under us. */
static int map(struct dmaheap *dh, int fd)
{
	const struct dmaheap_stats *stats;
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);

	if (fstat(fd, &st) < 0 || (uint64_t)st.st_size < sizeof(*stats) ||
	    seals < 0 || !(seals & F_SEAL_SHRINK))
		return -EPROTO;
	stats = mmap(NULL, sizeof(*stats), PROT_READ, MAP_SHARED, fd, 0);
	if (stats == MAP_FAILED)
		return -errno;
	if (stats->magic != DMAHEAP_STATS_MAGIC ||
	    stats->version != DMAHEAP_STATS_VERSION) {
		munmap((void *)(uintptr_t)stats, sizeof(*stats));
		return -EPROTO;
	}
	unmap(dh);
	dh->stats = stats;
	dh->stats_bytes = sizeof(*stats);
	dh->stats_instance = dh->hello.instance_id;
	return 0;
}

static int ask_and_map(struct dmaheap *dh)
{
	struct wire_request req = {.opcode = DMAHEAP_OP_STATS};
	struct wire_reply reply;
	int r = handle_request(dh, &req, &reply);

	if (r)
		return r;
	r = reply.status;
	if (r == 0)
		r = reply.n_fds == 1 ? map(dh, reply.fds[0]) : -EPROTO;
	wire_close_fds(&reply);
	return r;
}

_public_ int dmaheap_stats(struct dmaheap *dh, struct dmaheap_stats *ret)
{
	int r;

	handle_lock(dh);
	r = handle_ensure_fresh(dh);
	if (r == 0 &&
	    (!dh->stats || dh->stats_instance != dh->hello.instance_id))
		r = ask_and_map(dh);
	if (r == 0)
		r = copy_all(ret, dh->stats);
	handle_unlock(dh);
	return r;
}
