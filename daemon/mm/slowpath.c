/* SPDX-License-Identifier: MIT */
#include "mm/slowpath.h"

#include "mm/compaction.h"
#include "mm/freelist.h"
#include "mm/kthread.h"
#include "mm/occupants.h"
#include "mm/pcp.h"
#include "mm/reclaim.h"
#include "mm/watermark.h"

#define MAX_COMPACT_RETRIES 16

enum state {
	ENTER,          /* wake kswapd, free lists down to the min mark */
	ASYNC_COMPACT,  /* before reclaim: enough base pages are likely */
	RETRY,          /* wake kswapd again, free lists again */
	DIRECT_RECLAIM, /* then free lists, once more after a drain */
	DIRECT_COMPACT,
	DECIDE, /* retry, or kill, or give up */
	OOM,
	NO_PAGE, /* the kernel's label: no more to be tried */
	DONE,
};

struct slowpath {
	struct task *task;
	struct node *node;
	const struct alloc_context *ac;
	struct node_request *req;
	unsigned int alloc_flags;
	bool costly;
	uint32_t pfn;
	/* carried from state to state, with the kernel's names */
	enum compact_result compact_result;
	enum compact_priority compact_priority;
	int compaction_retries;
	unsigned int no_progress_loops;
	uint64_t did_some_progress;
};

static bool has(const struct slowpath *sp, uint32_t flag)
{
	return sp->ac->gfp & flag;
}

/* Return: DONE if the free lists gave a block, else @next. */
static enum state from_freelist(struct slowpath *sp, enum state next)
{
	sp->pfn = freelist_alloc(sp->task, sp->node, sp->ac, sp->alloc_flags);
	return sp->pfn != NO_PFN ? DONE : next;
}

static void wake_kswapd(struct slowpath *sp)
{
	if (has(sp, GFP_KSWAPD_RECLAIM))
		kswapd_wake(sp->task, sp->node, sp->ac->order, sp->ac->gfp,
			    sp->ac->highest_zone);
}

/* The request waits while @work runs: that time is a stall. */
static void stalled(struct slowpath *sp, void (*work)(struct slowpath *))
{
	uint64_t before = sp->task->spent_ps;

	work(sp);
	sp->req->stall_ps += sp->task->spent_ps - before;
	sp->req->stall_ns = sp->req->stall_ps / 1000;
}

static enum state state_enter(struct slowpath *sp)
{
	enum state next = RETRY;

	task_charge(sp->task, sp->node->costs.slowpath_entry_ps);
	wake_kswapd(sp);
	if (has(sp, GFP_DIRECT_RECLAIM) && sp->ac->order > 0 &&
	    (sp->costly || sp->ac->mt != MT_MOVABLE))
		next = ASYNC_COMPACT;
	return from_freelist(sp, next);
}

/* __alloc_pages_direct_compact() at sp->compact_priority */
static void compact(struct slowpath *sp)
{
	struct node *node = sp->node;
	uint32_t pfn;

	sp->compact_result =
		compaction_try(sp->task, node, sp->ac, sp->alloc_flags,
			       sp->compact_priority, &pfn);
	if (sp->compact_result == COMPACT_SKIPPED)
		return;
	count_event(node, VMSTAT_compact_stall, 1);
	sp->req->n_compact_stall++;
	if (pfn == NO_PFN)
		pfn = freelist_alloc(sp->task, node, sp->ac, sp->alloc_flags);
	sp->pfn = pfn;
	if (pfn == NO_PFN) {
		count_event(node, VMSTAT_compact_fail, 1);
		return;
	}
	node_zone_of(node, pfn)->compact_blockskip_flush = false;
	compaction_defer_reset(node_zone_of(node, pfn), (int)sp->ac->order,
			       true);
	count_event(node, VMSTAT_compact_success, 1);
}

static enum state state_async_compact(struct slowpath *sp)
{
	enum compact_priority after = sp->compact_priority;

	sp->compact_priority = COMPACT_PRIO_ASYNC;
	stalled(sp, compact);
	sp->compact_priority = after;
	if (sp->pfn != NO_PFN)
		return DONE;
	if (sp->costly && has(sp, GFP_NORETRY)) {
		/* it should not cost much: reclaim only if that may help */
		if (sp->compact_result <= COMPACT_DEFERRED)
			return NO_PAGE;
		sp->compact_priority = COMPACT_PRIO_ASYNC;
	}
	return RETRY;
}

static enum state state_retry(struct slowpath *sp)
{
	wake_kswapd(sp);
	return from_freelist(sp, has(sp, GFP_DIRECT_RECLAIM) ? DIRECT_RECLAIM
							     : NO_PAGE);
}

/* __alloc_pages_direct_reclaim() */
static void reclaim(struct slowpath *sp)
{
	sp->req->n_allocstall++;
	sp->did_some_progress = reclaim_direct(sp->task, sp->node, sp->ac);
	if (!sp->did_some_progress)
		return;
	sp->pfn = freelist_alloc(sp->task, sp->node, sp->ac, sp->alloc_flags);
	if (sp->pfn != NO_PFN)
		return;
	/* what was reclaimed may sit on per-CPU lists */
	pcp_drain_all(sp->task, sp->node);
	sp->pfn = freelist_alloc(sp->task, sp->node, sp->ac, sp->alloc_flags);
}

static enum state state_direct_reclaim(struct slowpath *sp)
{
	stalled(sp, reclaim);
	if (sp->pfn != NO_PFN)
		return DONE;
	return sp->ac->order > 0 ? DIRECT_COMPACT : DECIDE;
}

static enum state state_direct_compact(struct slowpath *sp)
{
	stalled(sp, compact);
	return sp->pfn != NO_PFN ? DONE : DECIDE;
}

/* should_reclaim_retry(): would all that is reclaimable be enough? */
static bool should_reclaim_retry(struct slowpath *sp)
{
	const struct alloc_context *ac = sp->ac;

	if (sp->did_some_progress && !sp->costly)
		sp->no_progress_loops = 0;
	else
		sp->no_progress_loops++;
	if (sp->no_progress_loops > RECLAIM_MAX_RETRIES)
		return false;
	for (unsigned int i = ac->highest_zone + 1; i-- > 0;) {
		const struct zone *zone = &sp->node->zones[i];
		uint64_t available =
			reclaim_zone_pages(zone) + zone->free_pages;

		if (watermark_ok(zone, ac->order, zone_wmark(zone, WMARK_MIN),
				 ac->highest_zone, (uint32_t)available))
			return true;
	}
	return false;
}

/* compaction_zonelist_suitable() */
static bool reclaim_helps_compaction(const struct slowpath *sp)
{
	const struct alloc_context *ac = sp->ac;

	for (unsigned int i = ac->highest_zone + 1; i-- > 0;) {
		const struct zone *zone = &sp->node->zones[i];
		uint64_t available =
			reclaim_zone_pages(zone) / ac->order + zone->free_pages;

		if (compaction_suitable_pages(zone, (int)ac->order,
					      sp->alloc_flags, ac->highest_zone,
					      (uint32_t)available) !=
		    COMPACT_SKIPPED)
			return true;
	}
	return false;
}

/* should_compact_retry() */
static bool should_compact_retry(struct slowpath *sp)
{
	enum compact_priority least =
		sp->costly ? COMPACT_PRIO_SYNC_LIGHT : COMPACT_PRIO_SYNC_FULL;
	int retries =
		sp->costly ? MAX_COMPACT_RETRIES / 4 : MAX_COMPACT_RETRIES;

	if (sp->ac->order == 0)
		return false;
	switch (sp->compact_result) {
	case COMPACT_SUCCESS:
		if (++sp->compaction_retries <= retries)
			return true;
		break;
	case COMPACT_SKIPPED:
		return reclaim_helps_compaction(sp);
	default: /* failed, deferred, contended: try harder */
		break;
	}
	if (sp->compact_priority <= least)
		return false;
	sp->compact_priority--;
	sp->compaction_retries = 0;
	return true;
}

static enum state state_decide(struct slowpath *sp)
{
	if (has(sp, GFP_NORETRY))
		return NO_PAGE;
	if (sp->costly && !has(sp, GFP_RETRY_MAYFAIL))
		return NO_PAGE;
	if (should_reclaim_retry(sp))
		return RETRY;
	if (sp->did_some_progress && should_compact_retry(sp))
		return RETRY;
	return OOM;
}

/* __alloc_pages_may_oom() */
static void kill_occupant(struct slowpath *sp)
{
	/* a parallel kill may have helped: down to the high mark only */
	sp->pfn = freelist_alloc(sp->task, sp->node, sp->ac, WMARK_HIGH);
	sp->did_some_progress = 0;
	if (sp->pfn != NO_PFN || sp->costly || has(sp, GFP_RETRY_MAYFAIL))
		return;
	sp->did_some_progress = occupant_oom_kill(sp->task, sp->node);
}

static enum state state_oom(struct slowpath *sp)
{
	stalled(sp, kill_occupant);
	if (sp->pfn != NO_PFN)
		return DONE;
	if (!sp->did_some_progress)
		return NO_PAGE;
	sp->no_progress_loops = 0;
	return RETRY;
}

/*
 * Where the kernel would loop for ever, the model stops once nothing changes:
 * NOFAIL may use the memory below the marks, and that is all there is.
 */
static enum state state_no_page(struct slowpath *sp)
{
	if (has(sp, GFP_NOFAIL))
		sp->pfn = freelist_alloc(sp->task, sp->node, sp->ac,
					 ALLOC_NO_WATERMARKS);
	return DONE;
}

static enum state (*const states[])(struct slowpath *) = {
	[ENTER] = state_enter,
	[ASYNC_COMPACT] = state_async_compact,
	[RETRY] = state_retry,
	[DIRECT_RECLAIM] = state_direct_reclaim,
	[DIRECT_COMPACT] = state_direct_compact,
	[DECIDE] = state_decide,
	[OOM] = state_oom,
	[NO_PAGE] = state_no_page,
};

uint32_t slowpath_alloc(struct task *task, struct node *node,
			const struct alloc_context *ac,
			struct node_request *req)
{
	struct slowpath sp = {
		.task = task,
		.node = node,
		.ac = ac,
		.req = req,
		.alloc_flags =
			WMARK_MIN |
			(ac->gfp & GFP_KSWAPD_RECLAIM ? ALLOC_KSWAPD : 0),
		.costly = ac->order > COSTLY_ORDER,
		.pfn = NO_PFN,
		.compact_result = COMPACT_SKIPPED,
		.compact_priority = COMPACT_PRIO_SYNC_LIGHT,
	};

	for (enum state state = ENTER; state != DONE;) {
		state = states[state](&sp);
		node_run_threads(node, task_now_ns(task));
	}
	return sp.pfn;
}
