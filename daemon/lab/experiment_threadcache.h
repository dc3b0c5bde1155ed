/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Experiment binder-thread-cache: does a cache of its own pay for a structure
 * of 304 bytes, against the 512-byte size class? Counts and bytes come from
 * base/slab under one allocation trace; times from loops over the same caches,
 * from two threads on neighbouring objects, and from the daemon itself.
 *
 * Units:     *_bytes; *_ns per alloc and free of one object, or per write.
 * Ownership: plain values.
 * Threads:   two of its own while it measures neighbours.
 */

#include "lab/experiment.h"
#include "lab/live_daemon.h"

#define THREADCACHE_OCCUPANCY 17u /* objects per slab, and none */

struct threadcache_params {
	uint64_t seed;
	unsigned int n_peak;  /* objects at the height of the trace */
	unsigned int n_quiet; /* of them, left after it */
	unsigned int n_loops; /* of the timed loops */
};

/* What one kind of cache made of the trace. */
struct threadcache_cache {
	size_t asked_bytes;
	size_t stride_bytes;
	unsigned int per_slab;
	size_t slab_bytes;
	uint64_t peak_slabs;
	uint64_t quiet_active;
	uint64_t quiet_total; /* as /proc/slabinfo counts: room in slabs */
	uint64_t quiet_bytes;
	uint64_t shrunk_slabs;
	uint64_t best_slabs;                       /* if objects could move */
	uint64_t occupancy[THREADCACHE_OCCUPANCY]; /* after the shrink */
};

enum threadcache_kind {
	THREADCACHE_CLASS,   /* the 512-byte class */
	THREADCACHE_OWN,     /* its own cache, default alignment */
	THREADCACHE_ALIGNED, /* the same, aligned to a cache line */
	THREADCACHE_KINDS,
};

enum threadcache_source {
	THREADCACHE_GLIBC,
	THREADCACHE_SIZE_CLASS,
	THREADCACHE_SLAB,       /* every call takes the lock */
	THREADCACHE_SLAB_FRONT, /* through a worker's front */
	THREADCACHE_SOURCES,
};

struct threadcache_result {
	struct threadcache_params params;
	struct threadcache_cache cache[THREADCACHE_KINDS];
	struct threadcache_cache many[2]; /* 5000 of 300 bytes: class, own */
	double pair_ns[THREADCACHE_SOURCES];
	/*
	 * One write while another thread writes the neighbour: [0: default
	 * alignment, 1: cache line][0: plain, 1: atomic]; not > 0 where two
	 * CPUs were not to be had.
	 */
	double neighbour_ns[2][2];
	double alone_ns[2];
	struct live_daemon_speed daemon[2]; /* slab, malloc */
	char daemon_why_not[160];
};

extern const struct experiment experiment_threadcache;

/* The counted part. Return: 0 or -ENOMEM. */
int threadcache_count(struct threadcache_result *result) _must_check_;

/* The timed part, but for the daemon. Return: 0 or -ENOMEM. */
int threadcache_time(struct threadcache_result *result) _must_check_;

/* Tables and closing sentence from the figures, and from nothing else. */
void threadcache_report(const struct threadcache_result *result,
			struct report *report);
