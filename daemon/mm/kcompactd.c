/* SPDX-License-Identifier: MIT */
#include "mm/kthread.h"

#include "mm/pcp.h"

/* HPAGE_FRAG_CHECK_INTERVAL_MSEC */
#define PROACTIVE_INTERVAL_NS (500 * NSEC_PER_MSEC)

uint64_t kcompactd_due_ns(const struct node *node)
{
	const struct kcompactd *k = node->kcompactd;

	return k->state == KCOMPACTD_SLEEP ? k->proactive_at_ns
					   : task_now_ns(&k->task);
}

/* kcompactd_node_suitable() */
static bool node_suitable(const struct node *node, const struct kcompactd *k)
{
	for (unsigned int i = 0; i <= k->highest_zone; i++)
		if (compaction_suitable(&node->zones[i], (int)k->max_order, 0,
					k->highest_zone) == COMPACT_CONTINUE)
			return true;
	return false;
}

static void begin_work(struct node *node, struct kcompactd *k)
{
	count_event(node, VMSTAT_compact_daemon_wake, 1);
	k->proactive = false;
	k->order = k->max_order;
	k->zone = 0;
	k->last_zone = k->highest_zone;
	k->state = KCOMPACTD_NEXT_ZONE;
}

void kcompactd_wake(struct node *node, uint64_t now_ns, unsigned int order,
		    unsigned int highest_zone)
{
	struct kcompactd *k = node->kcompactd;

	if (order == 0)
		return;
	k->max_order = MAX(k->max_order, order);
	k->highest_zone = MIN(k->highest_zone, highest_zone);
	if (k->state != KCOMPACTD_SLEEP || !node_suitable(node, k))
		return;
	k->task.base_ns = now_ns + node->costs.kthread_latency_ps / 1000;
	k->task.spent_ps = 0;
	begin_work(node, k);
	node->next_work_ns = MIN(node->next_work_ns, k->task.base_ns);
}

/* Back to sleep, or straight on to what was asked for meanwhile. */
static void work_done(struct node *node, struct kcompactd *k)
{
	uint64_t now = task_now_ns(&k->task);
	uint64_t interval = PROACTIVE_INTERVAL_NS;

	if (k->proactive) {
		/* no progress: much later */
		if (compaction_score_node(node) >= k->score_before)
			interval <<= COMPACT_MAX_DEFER;
	} else {
		if (k->max_order <= k->order)
			k->max_order = 0;
		if (k->highest_zone >= k->last_zone)
			k->highest_zone = node->n_zones - 1;
	}
	if (k->proactive_at_ns != UINT64_MAX)
		k->proactive_at_ns = now + interval;
	if (k->max_order > 0)
		begin_work(node, k);
	else
		k->state = KCOMPACTD_SLEEP;
}

/* The loop of kcompactd_do_work() and proactive_compact_node() */
static void next_zone(struct node *node, struct kcompactd *k)
{
	struct zone *zone;

	if (k->zone > k->last_zone) {
		work_done(node, k);
		return;
	}
	zone = &node->zones[k->zone++];
	if (!k->proactive &&
	    (compaction_deferred(zone, (int)k->order) ||
	     compaction_suitable(zone, (int)k->order, 0, zone->index) !=
		     COMPACT_CONTINUE))
		return;
	k->cc = (struct compact_control){
		.zone = zone,
		.task = &k->task,
		.order = k->proactive ? COMPACT_WHOLE : (int)k->order,
		.search_order = k->proactive ? COMPACT_WHOLE : (int)k->order,
		.mt = MT_UNMOVABLE, /* gfp_migratetype(GFP_KERNEL) */
		.highest_zone = k->proactive ? 0 : k->last_zone,
		.proactive = k->proactive,
		.whole_zone = k->proactive,
		.ignore_skip_hint = k->proactive,
		.free_head = node->compact_heads + 1,
	};
	if (compact_begin(&k->cc) == COMPACT_CONTINUE)
		k->state = KCOMPACTD_RUN;
}

static void run(struct node *node, struct kcompactd *k)
{
	struct zone *zone = k->cc.zone;
	enum compact_result r = COMPACT_PARTIAL_SKIPPED;

	/* time has passed since the last step: kswapd may have been woken */
	if (!k->proactive || !kswapd_is_running(node))
		r = compact_step(&k->cc);
	if (r == COMPACT_CONTINUE)
		return;
	compact_end(&k->cc);
	k->state = KCOMPACTD_NEXT_ZONE;
	if (k->proactive)
		return;
	count_event(node, VMSTAT_compact_daemon_migrate_scanned,
		    k->cc.migrate_scanned);
	count_event(node, VMSTAT_compact_daemon_free_scanned,
		    k->cc.free_scanned);
	if (r == COMPACT_SUCCESS) {
		compaction_defer_reset(zone, (int)k->order, false);
	} else if (r == COMPACT_PARTIAL_SKIPPED || r == COMPACT_COMPLETE) {
		/* pages stranded on per-CPU lists may be what lacked */
		pcp_drain_zone(&k->task, zone);
		compaction_defer(zone, (int)k->order);
	}
}

/* should_proactive_compact_node() */
static void consider_proactive(struct node *node, struct kcompactd *k)
{
	k->task.base_ns = k->proactive_at_ns;
	k->task.spent_ps = 0;
	k->proactive_at_ns += PROACTIVE_INTERVAL_NS;
	if (kswapd_is_running(node))
		return;
	k->score_before = compaction_score_node(node);
	if (k->score_before <= compaction_score_wmark(node, false))
		return;
	k->proactive = true;
	k->zone = 0;
	k->last_zone = node->n_zones - 1;
	k->state = KCOMPACTD_NEXT_ZONE;
}

void kcompactd_step(struct node *node)
{
	struct kcompactd *k = node->kcompactd;

	switch (k->state) {
	case KCOMPACTD_SLEEP:
		consider_proactive(node, k);
		break;
	case KCOMPACTD_NEXT_ZONE:
		next_zone(node, k);
		break;
	case KCOMPACTD_RUN:
		run(node, k);
		break;
	}
}
