/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The node's threads: kswapd and kcompactd, run lazily. Each has its own place
 * in time; they are stepped, the one that is furthest behind first, until they
 * have caught up with the node.
 *
 * Units:     nanoseconds on the node's clock.
 * Ownership: belongs to the node.
 * Threads:   as the node: these are simulated.
 */

#include "mm/compaction.h"
#include "mm/reclaim.h"
#include "mm/zone.h"

enum kswapd_state {
	KSWAPD_SLEEP, /* until woken */
	KSWAPD_NAP,   /* a tenth of a second, then for long if still balanced */
	KSWAPD_BEGIN, /* woken: balance_pgdat() begins */
	KSWAPD_PASS,  /* its loop: one priority */
	KSWAPD_SHRINK, /* within a pass, batch by batch */
	KSWAPD_TRY_SLEEP,
};

struct kswapd {
	struct task task;
	enum kswapd_state state;
	uint64_t nap_end_ns;
	/* what wakers ask for */
	unsigned int order;
	unsigned int highest_zone;
	uint32_t failures;
	/* one balance_pgdat() */
	struct scan_control sc;
	unsigned int alloc_order;
	uint64_t boost_left;
	uint32_t zone_boosts[NODE_ZONES_MAX];
	uint64_t boosted;
	uint64_t loop_reclaimed;
	bool raise_priority;
};

enum kcompactd_state {
	KCOMPACTD_SLEEP,
	KCOMPACTD_NEXT_ZONE,
	KCOMPACTD_RUN, /* compact_step() by compact_step() */
};

struct kcompactd {
	struct task task;
	enum kcompactd_state state;
	/* what wakers ask for */
	unsigned int max_order;
	unsigned int highest_zone;
	/* one kcompactd_do_work() or proactive_compact_node() */
	unsigned int order;
	unsigned int zone;
	unsigned int last_zone;
	bool proactive;
	unsigned int score_before;
	uint64_t proactive_at_ns; /* UINT64_MAX: proactiveness is 0 */
	struct compact_control cc;
};

void kthread_init(struct node *node);

/* Called often: cheap while no thread has anything to do by @now_ns. */
void node_run_threads_slow(struct node *node, uint64_t now_ns);
static inline void node_run_threads(struct node *node, uint64_t now_ns)
{
	if (now_ns >= node->next_work_ns)
		node_run_threads_slow(node, now_ns);
}

/* wakeup_kswapd() */
void kswapd_wake(struct task *task, struct node *node, unsigned int order,
		 uint32_t gfp, unsigned int highest_zone);
bool kswapd_is_running(const struct node *node);
void kswapd_reset_failures(struct node *node);

/* wakeup_kcompactd() */
void kcompactd_wake(struct node *node, uint64_t now_ns, unsigned int order,
		    unsigned int highest_zone);

/* One step of each, and when the next is due (UINT64_MAX: asleep). */
void kswapd_step(struct node *node);
void kcompactd_step(struct node *node);
uint64_t kswapd_due_ns(const struct node *node);
uint64_t kcompactd_due_ns(const struct node *node);
