/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Cost profile: what each primitive step of the model takes on one machine.
 * The model's algorithms decide which steps are done; a profile only prices
 * them. docs/zone-model.md says how the shipped profiles were found.
 *
 * Units:     picoseconds per step where the name ends in _ps, nanoseconds in
 *            _ns. A config file gives both in ns, with up to three decimals.
 * Ownership: plain values.
 * Threads:   no state.
 */

#include "base/base.h"

/*
 * X(name, default in ns * 1000, what it prices)
 * Per-page steps are short, so every cost is kept in picoseconds.
 */
#define COST_LIST(X)                                                           \
	X(alloc_entry, 120000, "each request that reaches the node")           \
	X(free_entry, 60000, "each block given back")                          \
	X(pcp_op, 30000, "a page taken from or put on a per-CPU list")         \
	X(zone_lock, 60000,                                                    \
	  "the zone's lock: per large block, per batch of small")              \
	X(freelist_op, 30000, "a block taken from or put on a free list")      \
	X(split, 15000, "halving a block once")                                \
	X(merge, 20000, "joining two buddies")                                 \
	X(steal_pageblock, 2000000, "moving a pageblock's free pages")         \
	X(zero_page, 90000, "clearing one page")                               \
	X(prep_page, 4000, "preparing one page of a block")                    \
	X(slowpath_entry, 1000000, "entering the slow path")                   \
	X(kthread_wake, 2000000, "waking kswapd or kcompactd")                 \
	X(kthread_latency, 30000000, "from that to its first instruction")     \
	X(drain_cpu, 5000000, "asking one CPU to drain its lists")             \
	X(compact_entry, 2000000, "starting compaction of a zone")             \
	X(compact_scan, 12000, "a frame looked at by a compaction scanner")    \
	X(compact_block, 60000, "a pageblock considered by a scanner")         \
	X(migrate_page, 2500000, "moving one page, copy and TLB included")     \
	X(reclaim_entry, 3000000, "starting direct reclaim")                   \
	X(reclaim_pass, 2000000, "one pass over the lists at a priority")      \
	X(scan_page, 100000, "a page isolated and looked at by reclaim")       \
	X(reclaim_clean, 700000, "dropping a clean page")                      \
	X(reclaim_zram, 9000000, "compressing an anonymous page to zram")      \
	X(reclaim_disk, 60000000, "writing a page to swap or its file")        \
	X(shrink_slab, 1500000, "freeing one page of reclaimable slab")        \
	X(oom_kill, 5000000000, "an OOM kill until its memory is back")

struct cost_profile {
#define COST_FIELD(name, ps, what) uint64_t name##_ps;
	COST_LIST(COST_FIELD)
#undef COST_FIELD
};

/* The profile of a machine that nobody measured: a mid-range phone. */
struct cost_profile cost_profile_default(void);

/**
 * cost_profile_set() - set one cost by its name
 * @key:        "zero_page", "migrate_page", ...
 * @value:      nanoseconds with up to three decimals: "90", "0.75"
 *
 * Return: 0, or -ENOENT (no such cost), -EINVAL (not of that form), -ERANGE
 * (more than COST_MAX_NS). @costs is untouched on failure.
 */
int cost_profile_set(struct cost_profile *costs, const char *key,
		     const char *value) _must_check_;

#define COST_MAX_NS UINT64_C(60000000000)

/* Multiplies every cost by @num / @den (> 0), as tests of the model do. */
void cost_profile_scale(struct cost_profile *costs, uint32_t num, uint32_t den);

/* Names and meanings, for reports. @i < COST_COUNT. */
#define COST_COUNT_ONE(name, ps, what) +1
#define COST_COUNT                     (0u COST_LIST(COST_COUNT_ONE))
const char *cost_name(unsigned int i);
const char *cost_meaning(unsigned int i);
uint64_t cost_value_ps(const struct cost_profile *costs, unsigned int i);
