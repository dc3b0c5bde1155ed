/* SPDX-License-Identifier: MIT */
#include "mm/kthread.h"
#include "mm/watermark.h"

#define NAP_NS (NSEC_PER_SEC / 10)

bool kswapd_is_running(const struct node *node)
{
	return node->kswapd->state > KSWAPD_NAP;
}

void kswapd_reset_failures(struct node *node)
{
	node->kswapd->failures = 0;
}

uint64_t kswapd_due_ns(const struct node *node)
{
	const struct kswapd *k = node->kswapd;

	switch (k->state) {
	case KSWAPD_SLEEP:
		return UINT64_MAX;
	case KSWAPD_NAP:
		return k->nap_end_ns;
	default:
		return task_now_ns(&k->task);
	}
}

/* pgdat_balanced(): one zone that @order can be taken from is enough. */
static bool balanced(const struct node *node, unsigned int order,
		     unsigned int highest_zone)
{
	for (unsigned int i = 0; i <= highest_zone; i++) {
		const struct zone *zone = &node->zones[i];

		if (watermark_ok(zone, order, zone_wmark(zone, WMARK_HIGH),
				 highest_zone, zone->free_pages))
			return true;
	}
	return false;
}

/* pgdat_watermark_boosted() */
static bool any_boosted(const struct node *node, unsigned int highest_zone)
{
	for (unsigned int i = 0; i <= highest_zone; i++)
		if (node->zones[i].wmark_boost)
			return true;
	return false;
}

void kswapd_wake(struct task *task, struct node *node, unsigned int order,
		 uint32_t gfp, unsigned int highest_zone)
{
	struct kswapd *k = node->kswapd;
	uint64_t now = task_now_ns(task);

	k->highest_zone = MAX(k->highest_zone, highest_zone);
	k->order = MAX(k->order, order);
	if (kswapd_is_running(node))
		return;
	if (k->failures >= RECLAIM_MAX_RETRIES ||
	    (balanced(node, order, highest_zone) &&
	     !any_boosted(node, highest_zone))) {
		/* enough memory, too fragmented; who may reclaim himself
		 * compacts himself */
		if (!(gfp & GFP_DIRECT_RECLAIM))
			kcompactd_wake(node, now, order, highest_zone);
		return;
	}
	task_charge(task, node->costs.kthread_wake_ps);
	if (k->state == KSWAPD_NAP)
		count_event(node, VMSTAT_kswapd_low_wmark_hit_quickly, 1);
	k->state = KSWAPD_BEGIN;
	k->task.base_ns = now + node->costs.kthread_latency_ps / 1000;
	k->task.spent_ps = 0;
	node->next_work_ns = MIN(node->next_work_ns, k->task.base_ns);
}

/* The head of balance_pgdat() */
static void begin(struct node *node, struct kswapd *k)
{
	k->alloc_order = k->order;
	k->sc = (struct scan_control){
		.task = &k->task,
		.node = node,
		.order = k->order,
		.highest_zone = k->highest_zone,
		.priority = RECLAIM_DEF_PRIORITY,
		.kswapd = true,
	};
	k->order = 0;
	k->highest_zone = 0;
	count_event(node, VMSTAT_pageoutrun, 1);
	k->boosted = 0;
	for (unsigned int i = 0; i <= k->sc.highest_zone; i++) {
		k->zone_boosts[i] = node->zones[i].wmark_boost;
		k->boosted += node->zones[i].wmark_boost;
		node->zones[i].reclaim_active = true;
	}
	k->boost_left = k->boosted;
	k->state = KSWAPD_PASS;
}

/* The tail of balance_pgdat() */
static void finish(struct node *node, struct kswapd *k)
{
	for (unsigned int i = 0; i <= k->sc.highest_zone; i++)
		node->zones[i].reclaim_active = false;
	if (k->boosted) {
		for (unsigned int i = 0; i <= k->sc.highest_zone; i++) {
			struct zone *zone = &node->zones[i];

			zone->wmark_boost -=
				MIN(zone->wmark_boost, k->zone_boosts[i]);
		}
		/* there is room now: make whole pageblocks of it */
		kcompactd_wake(node, task_now_ns(&k->task), PAGEBLOCK_ORDER,
			       k->sc.highest_zone);
	}
	k->state = KSWAPD_TRY_SLEEP;
}

static void give_up(struct node *node, struct kswapd *k)
{
	if (k->sc.nr_reclaimed == 0)
		k->failures++;
	finish(node, k);
}

/* One turn of balance_pgdat()'s loop, up to kswapd_shrink_node(). */
static void pass(struct node *node, struct kswapd *k)
{
	struct scan_control *sc = &k->sc;
	bool ok = balanced(node, sc->order, sc->highest_zone);

	if (sc->priority < 1) {
		give_up(node, k);
		return;
	}
	if (!ok && k->boost_left) {
		/* in earnest, then: not only for the boost */
		k->boost_left = 0;
		sc->priority = RECLAIM_DEF_PRIORITY;
	}
	if (ok && !k->boost_left) {
		finish(node, k);
		return;
	}
	/* for a boost alone reclaim stays gentle and does not swap */
	k->raise_priority =
		!(k->boost_left && sc->priority == RECLAIM_DEF_PRIORITY - 2);
	sc->may_swap = !k->boost_left;
	sc->nr_scanned = 0;
	sc->nr_to_reclaim = 0;
	for (unsigned int i = 0; i <= sc->highest_zone; i++)
		sc->nr_to_reclaim +=
			MAX(zone_wmark(&node->zones[i], WMARK_HIGH),
			    RECLAIM_BATCH);
	k->loop_reclaimed = sc->nr_reclaimed;
	reclaim_begin_pass(sc);
	k->state = KSWAPD_SHRINK;
}

/* A batch of kswapd_shrink_node(), and what follows the last. */
static void shrink(struct node *node, struct kswapd *k)
{
	struct scan_control *sc = &k->sc;
	uint64_t reclaimed;

	if (reclaim_batch(sc))
		return;
	if (reclaim_end_pass(sc)) {
		reclaim_begin_pass(sc);
		return;
	}
	/* fragmented: twice the block was reclaimed, order 0 will do */
	if (sc->order && sc->nr_reclaimed >= UINT64_C(2) << sc->order)
		sc->order = 0;
	if (sc->nr_scanned >= sc->nr_to_reclaim)
		k->raise_priority = false;
	reclaimed = sc->nr_reclaimed - k->loop_reclaimed;
	k->boost_left -= MIN(k->boost_left, reclaimed);
	k->state = KSWAPD_PASS;
	if (k->boost_left && !reclaimed) {
		give_up(node, k);
		return;
	}
	if (k->raise_priority || !reclaimed)
		sc->priority--;
}

/* prepare_kswapd_sleep() */
static bool may_sleep(const struct node *node, const struct kswapd *k,
		      unsigned int order)
{
	return k->failures >= RECLAIM_MAX_RETRIES ||
	       balanced(node, order, k->sc.highest_zone);
}

/* kswapd_try_to_sleep(), its first half */
static void try_sleep(struct node *node, struct kswapd *k)
{
	/* a balance that fell back to order 0 still compacts for its order;
	 * another one is judged by what was asked for since */
	bool fell_back = k->sc.order < k->alloc_order;
	unsigned int order = fell_back ? k->sc.order : k->order;

	if (!may_sleep(node, k, order)) {
		count_event(node, VMSTAT_kswapd_high_wmark_hit_quickly, 1);
		k->state = KSWAPD_BEGIN;
		k->highest_zone = MAX(k->highest_zone, k->sc.highest_zone);
		task_charge(&k->task, node->costs.reclaim_entry_ps);
		return;
	}
	for (unsigned int i = 0; i < node->n_zones; i++)
		compaction_reset_skip(&node->zones[i]);
	kcompactd_wake(node, task_now_ns(&k->task),
		       fell_back ? k->alloc_order : k->order,
		       k->sc.highest_zone);
	k->state = KSWAPD_NAP;
	k->nap_end_ns = task_now_ns(&k->task) + NAP_NS;
}

/* its second half, when nobody woke it in between */
static void nap_over(struct node *node, struct kswapd *k)
{
	k->task.base_ns = k->nap_end_ns;
	k->task.spent_ps = 0;
	if (may_sleep(node, k, 0)) {
		k->state = KSWAPD_SLEEP;
		return;
	}
	count_event(node, VMSTAT_kswapd_high_wmark_hit_quickly, 1);
	k->highest_zone = MAX(k->highest_zone, k->sc.highest_zone);
	k->state = KSWAPD_BEGIN;
}

void kswapd_step(struct node *node)
{
	struct kswapd *k = node->kswapd;

	switch (k->state) {
	case KSWAPD_NAP:
		nap_over(node, k);
		break;
	case KSWAPD_BEGIN:
		begin(node, k);
		break;
	case KSWAPD_PASS:
		pass(node, k);
		break;
	case KSWAPD_SHRINK:
		shrink(node, k);
		break;
	case KSWAPD_TRY_SLEEP:
		try_sleep(node, k);
		break;
	case KSWAPD_SLEEP:
		break;
	}
}
