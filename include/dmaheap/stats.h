/* SPDX-License-Identifier: MIT */
#ifndef DMAHEAP_STATS_H
#define DMAHEAP_STATS_H

/*
 * The stats segment: one memfd of fixed layout that the daemon writes and
 * clients map read-only (opcode STATS).
 *
 * Units:     *_bytes, *_ns, *_pages; counters only grow while the daemon runs.
 * Ownership: the daemon's alone to write; a client owns its mapping.
 * Threads:   each section begins with a sequence number: odd while the daemon
 *            writes. Copy the section, and copy again when the number was odd
 *            or has changed; dmaheap_stats() of dmaheap.h does so.
 *
 * Measured times (the daemon's clock) and modelled times (the node's) never
 * share a field: the names say which they are.
 */

#include <stdint.h>

#include <dmaheap/protocol.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DMAHEAP_STATS_MAGIC   0x54534d44u /* "DMST" */
#define DMAHEAP_STATS_VERSION 1u

#define DMAHEAP_STATS_ZONES_MAX	 4u
#define DMAHEAP_STATS_HEAPS_MAX	 16u
#define DMAHEAP_STATS_VMSTAT_MAX 96u
#define DMAHEAP_STATS_EVENTS	 256u /* a power of two */

/*
 * Log-linear histogram: values 0..15 have a bucket each, then every power of
 * two is divided into 16; a value is known to 1/16. Values of 2^40 ns (18
 * minutes) and more share the last bucket.
 */
#define DMAHEAP_HISTOGRAM_BUCKETS 593u

struct dmaheap_histogram {
	uint64_t count;
	uint64_t sum;
	uint64_t max;
	uint64_t bucket[DMAHEAP_HISTOGRAM_BUCKETS];
};

/* Return: the smallest value that falls into bucket @i. */
static inline uint64_t dmaheap_histogram_lower(uint32_t i)
{
	if (i < 16)
		return i;
	return (uint64_t)(16 + i % 16) << (i / 16 - 1);
}

struct dmaheap_stats_daemon {
	uint64_t seq;
	uint64_t start_realtime_ns;
	uint64_t uptime_ns; /* when the section was last written */
	int32_t pid;
	uint32_t n_connections;
	uint32_t n_uids;
	uint32_t reserved;
	uint64_t requests;
	uint64_t bad_requests;
	uint64_t denied;
	char version[DMAHEAP_NAME_MAX_BYTES];
	char loop[16];	/* "uring" or "epoll" */
	char clock[16]; /* "wall" or "event" */
	char latency[16]; /* "native", "stalls" or "device" */
	char lifetime[16]; /* "exact", "sweep" or "explicit" */
};

struct dmaheap_stats_zone {
	char name[16];
	uint64_t size_bytes;
	uint64_t free_bytes;
	uint64_t watermark_min_bytes;
	uint64_t watermark_low_bytes;
	uint64_t watermark_high_bytes;
	uint64_t watermark_boost_bytes;
	uint64_t free_blocks[DMAHEAP_ORDER_COUNT];
	int32_t fragmentation_index[DMAHEAP_ORDER_COUNT]; /* -1000..1000 */
	int32_t unusable_free_index[DMAHEAP_ORDER_COUNT]; /* 0..1000 */
};

struct dmaheap_stats_node {
	uint64_t seq;
	uint32_t n_zones;
	uint32_t page_size_bytes;
	uint64_t modelled_now_ns;
	struct dmaheap_stats_zone zone[DMAHEAP_STATS_ZONES_MAX];
};

struct dmaheap_stats_vmstat {
	uint64_t seq;
	uint64_t n_items;
	struct {
		char name[40]; /* the kernel's name where it has one */
		uint64_t value;
	} item[DMAHEAP_STATS_VMSTAT_MAX];
};

struct dmaheap_stats_pool {
	uint32_t order;
	uint32_t reserved;
	uint64_t blocks;
	uint64_t bytes;
	uint64_t hits;
	uint64_t misses;
	uint64_t limit_bytes;
};

struct dmaheap_stats_heap {
	uint64_t seq;
	char name[DMAHEAP_NAME_MAX_BYTES];
	char policy[DMAHEAP_NAME_MAX_BYTES];
	uint64_t buffers; /* live now */
	uint64_t bytes;
	uint64_t allocs;
	uint64_t failures; /* requests refused, for whatever reason */
	uint64_t failures_though_free; /* by the node; enough pages were free */
	uint64_t largest_free_at_high_water_bytes;
	uint64_t blocks_taken[DMAHEAP_ORDER_COUNT];
	uint32_t n_pools;
	uint32_t reserved;
	struct dmaheap_stats_pool pool[DMAHEAP_ORDER_COUNT];
	struct dmaheap_histogram measured_ns;
	struct dmaheap_histogram modelled_stall_ns;
};

struct dmaheap_stats_backing {
	uint64_t seq;
	char mode[16];
	char reason[112]; /* why not a better one, or "" */
	uint64_t resident_bytes;
	uint64_t parked_bytes;
	uint64_t parked_hits;
	uint64_t parked_misses;
	uint64_t dropped;	/* memfds punched and closed */
	uint64_t dropped_pinned; /* of them because a page was held elsewhere */
	uint64_t dropped_holes;	/* of them because a client punched holes */
	uint64_t budget_bytes;
	uint64_t budget_refusals;
	uint64_t late_releases; /* found by the sweep, not by an event */
};

/* One finished allocation; @n is its number plus one, 0: never used. */
struct dmaheap_stats_event {
	uint64_t n;
	uint64_t id;
	uint64_t size_bytes;
	uint64_t realtime_ns;
	uint32_t heap; /* index into heap[] */
	int32_t status;
	uint32_t blocks[DMAHEAP_ORDER_COUNT];
	uint8_t source;
	uint8_t backing;
	uint8_t reserved[2];
	uint64_t measured_total_ns;
	uint64_t modelled_node_ns;
	uint64_t modelled_stall_ns;
};

struct dmaheap_stats_events {
	uint64_t seq;
	uint64_t next; /* number of the next event; slot = number % EVENTS */
	struct dmaheap_stats_event event[DMAHEAP_STATS_EVENTS];
};

struct dmaheap_stats {
	uint32_t magic;
	uint32_t version;
	uint64_t segment_bytes;
	uint32_t n_heaps;
	uint32_t reserved;
	struct dmaheap_stats_daemon daemon;
	struct dmaheap_stats_node node;
	struct dmaheap_stats_vmstat vmstat;
	struct dmaheap_stats_backing backing;
	struct dmaheap_stats_events events;
	struct dmaheap_stats_heap heap[DMAHEAP_STATS_HEAPS_MAX];
};

#ifdef __cplusplus
}
#endif

#endif
