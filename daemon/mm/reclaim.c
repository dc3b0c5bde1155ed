/* SPDX-License-Identifier: MIT */
#include "mm/reclaim.h"

#include "mm/compaction.h"
#include "mm/kthread.h"
#include "mm/occupants.h"
#include "mm/watermark.h"

#define SWAPPINESS 60u /* vm.swappiness, of 200 for both lists together */
#define ZRAM_RATIO 3u  /* pages that zram packs into one */

/* can_reclaim_anon_pages() */
static bool can_reclaim_anon(const struct node *node)
{
	return node->params.swap != NODE_SWAP_NONE && node->swap_pages > 0;
}

uint64_t reclaim_zone_pages(const struct zone *zone)
{
	uint64_t n = (uint64_t)zone->occupants[NODE_OCCUPANT_FILE] +
		     zone->occupants[NODE_OCCUPANT_DIRTY] +
		     zone->occupants[NODE_OCCUPANT_ACTIVE];

	if (can_reclaim_anon(zone->node))
		n += zone->occupants[NODE_OCCUPANT_ANON];
	return n;
}

static uint64_t inactive_file(const struct node *node)
{
	return occupant_pages(node, NODE_OCCUPANT_FILE) +
	       occupant_pages(node, NODE_OCCUPANT_DIRTY);
}

/* inactive_is_low(): the larger the lists, the smaller the inactive share. */
static bool inactive_is_low(const struct node *node)
{
	uint64_t inactive = inactive_file(node);
	uint64_t active = occupant_pages(node, NODE_OCCUPANT_ACTIVE);
	uint64_t gib = (inactive + active) * node->params.page_size_bytes >> 30;
	uint64_t ratio = 1;

	while (gib && (ratio + 1) * (ratio + 1) <= 10 * gib)
		ratio++;
	return inactive * ratio < active;
}

void reclaim_begin_pass(struct scan_control *sc)
{
	const struct node *node = sc->node;
	uint64_t inactive = inactive_file(node);
	uint64_t active = occupant_pages(node, NODE_OCCUPANT_ACTIVE);
	uint64_t anon = occupant_pages(node, NODE_OCCUPANT_ANON);
	int p = sc->priority;

	task_charge(sc->task, node->costs.reclaim_pass_ps);
	sc->pass_reclaimed = sc->nr_reclaimed;
	sc->proportional = !sc->kswapd && p == RECLAIM_DEF_PRIORITY;
	sc->left_inactive = inactive >> p;
	sc->left_active = active >> p;
	sc->left_anon = 0;
	if (!sc->may_swap || !can_reclaim_anon(node))
		return; /* SCAN_FILE */
	sc->left_anon = anon >> p;
	/* plenty of used-once cache: cache_trim_mode; at last all equally */
	if (p == 0)
		return;
	if (!inactive_is_low(node) && inactive >> p) {
		sc->left_anon = 0;
		return;
	}
	sc->left_anon = sc->left_anon * SWAPPINESS / 200;
	sc->left_inactive = sc->left_inactive * (200 - SWAPPINESS) / 200;
	sc->left_active = sc->left_active * (200 - SWAPPINESS) / 200;
}

static void count_reclaim(struct scan_control *sc, uint64_t scanned,
			  uint64_t reclaimed)
{
	count_event(sc->node,
		    sc->kswapd ? VMSTAT_pgscan_kswapd : VMSTAT_pgscan_direct,
		    scanned);
	count_event(sc->node,
		    sc->kswapd ? VMSTAT_pgsteal_kswapd : VMSTAT_pgsteal_direct,
		    reclaimed);
	sc->nr_scanned += scanned;
	sc->nr_reclaimed += reclaimed;
	task_charge(sc->task, sc->node->costs.scan_page_ps * scanned);
	/* progress: kswapd is worth waking again */
	if (reclaimed)
		kswapd_reset_failures(sc->node);
}

/* shrink_active_list(): a batch of the active list becomes inactive. */
static void shrink_active(struct scan_control *sc, uint64_t n)
{
	struct node *node = sc->node;
	uint32_t head = occupant_list(node, NODE_OCCUPANT_ACTIVE);
	uint64_t moved = 0;

	for (; moved < n && !link_is_empty(node->links, head); moved++)
		occupant_change(node, node->links[head].prev,
				NODE_OCCUPANT_FILE);
	task_charge(sc->task, node->costs.scan_page_ps * moved);
	count_event(node, VMSTAT_pgdeactivate, moved);
}

/*
 * shrink_inactive_list(): clean pages go, a dirty one is written and comes back
 * to the other end of the list.
 */
static void shrink_file(struct scan_control *sc, uint64_t n)
{
	struct node *node = sc->node;
	uint32_t head = occupant_list(node, NODE_OCCUPANT_FILE);
	uint64_t scanned = 0, reclaimed = 0;

	for (; scanned < n && !link_is_empty(node->links, head); scanned++) {
		uint32_t pfn = node->links[head].prev;

		if (frame_occupant(node->state[pfn]) == NODE_OCCUPANT_DIRTY) {
			occupant_change(node, pfn, NODE_OCCUPANT_FILE);
			count_event(node, VMSTAT_nr_vmscan_write, 1);
			task_charge(sc->task, node->costs.reclaim_disk_ps);
			continue;
		}
		occupant_free(sc->task, node, pfn);
		task_charge(sc->task, node->costs.reclaim_clean_ps);
		reclaimed++;
	}
	count_event(node, VMSTAT_pgsteal_file, reclaimed);
	count_reclaim(sc, scanned, reclaimed);
}

/* Anonymous pages: to the swap device, or packed three to one by zram. */
static void shrink_anon(struct scan_control *sc, uint64_t n)
{
	struct node *node = sc->node;
	uint32_t head = occupant_list(node, NODE_OCCUPANT_ANON);
	bool zram = node->params.swap == NODE_SWAP_ZRAM;
	uint64_t scanned = 0, reclaimed = 0;

	for (; scanned < n && !link_is_empty(node->links, head) &&
	       node->swap_pages > 0;
	     scanned++) {
		uint32_t pfn = node->links[head].prev;

		node->swap_pages--;
		count_event(node, VMSTAT_pswpout, 1);
		task_charge(sc->task, zram ? node->costs.reclaim_zram_ps
					   : node->costs.reclaim_disk_ps);
		if (zram && node->swap_pages % ZRAM_RATIO == 0) {
			occupant_change(node, pfn, NODE_OCCUPANT_KERNEL);
			continue;
		}
		occupant_free(sc->task, node, pfn);
		reclaimed++;
	}
	count_event(node, VMSTAT_pgsteal_anon, reclaimed);
	count_reclaim(sc, scanned, reclaimed);
}

bool reclaim_batch(struct scan_control *sc)
{
	uint64_t anon = MIN(sc->left_anon, RECLAIM_BATCH);
	uint64_t active = MIN(sc->left_active, RECLAIM_BATCH);
	uint64_t file = MIN(sc->left_inactive, RECLAIM_BATCH);

	if (!anon && !file && !active)
		return false;
	sc->left_anon -= anon;
	sc->left_active -= active;
	sc->left_inactive -= file;
	if (anon)
		shrink_anon(sc, anon);
	if (active && inactive_is_low(sc->node))
		shrink_active(sc, active);
	if (file)
		shrink_file(sc, file);
	return sc->proportional ||
	       sc->nr_reclaimed - sc->pass_reclaimed < sc->nr_to_reclaim;
}

/* do_shrink_slab() of the system's slab: twice the share that the lists gave.
 */
static void shrink_slab(struct scan_control *sc)
{
	struct node *node = sc->node;
	uint32_t head = occupant_list(node, NODE_OCCUPANT_SLAB);
	uint64_t n =
		occupant_pages(node, NODE_OCCUPANT_SLAB) * 2 >> sc->priority;
	uint64_t freed = 0;

	for (; freed < n && !link_is_empty(node->links, head); freed++)
		occupant_free(sc->task, node, node->links[head].prev);
	count_event(node, VMSTAT_slabs_scanned, freed);
	task_charge(sc->task, node->costs.shrink_slab_ps * freed);
	sc->nr_reclaimed += freed; /* reclaim_state->reclaimed_slab */
	if (freed)
		kswapd_reset_failures(node);
}

/* The page pools' shrinker, by the same share. */
static void shrink_pools(struct scan_control *sc)
{
	struct node *node = sc->node;
	uint64_t n, freed;

	if (!node->shrinker_ops)
		return;
	n = node->shrinker_ops->count(node->shrinker_ctx) * 2 >> sc->priority;
	if (n == 0)
		return;
	freed = node->shrinker_ops->scan(node->shrinker_ctx, n);
	count_event(node, VMSTAT_model_shrinker_pages, freed);
	sc->nr_reclaimed += freed;
	if (freed)
		kswapd_reset_failures(node);
}

/* should_continue_reclaim(): for a large block, until compaction can run. */
static bool should_continue(const struct scan_control *sc)
{
	const struct node *node = sc->node;
	uint64_t inactive;

	if (sc->order == 0 || (sc->order <= COSTLY_ORDER &&
			       sc->priority >= RECLAIM_DEF_PRIORITY - 2))
		return false;
	if (sc->nr_reclaimed == sc->pass_reclaimed)
		return false;
	for (unsigned int i = 0; i <= sc->highest_zone; i++)
		if (compaction_suitable(&node->zones[i], (int)sc->order, 0,
					sc->highest_zone) >= COMPACT_CONTINUE)
			return false;
	inactive = inactive_file(node);
	if (can_reclaim_anon(node))
		inactive += occupant_pages(node, NODE_OCCUPANT_ANON);
	return inactive > UINT64_C(2) << sc->order;
}

bool reclaim_end_pass(struct scan_control *sc)
{
	shrink_slab(sc);
	shrink_pools(sc);
	return should_continue(sc);
}

/* compaction_ready(): the zone has all that compaction needs, and a buffer. */
static bool compaction_ready(const struct scan_control *sc,
			     const struct zone *zone)
{
	enum compact_result r =
		compaction_suitable(zone, (int)sc->order, 0, sc->highest_zone);

	if (r == COMPACT_SUCCESS)
		return true;
	if (r == COMPACT_SKIPPED)
		return false;
	return watermark_ok(zone, 0,
			    zone_wmark(zone, WMARK_HIGH) + (2u << sc->order),
			    sc->highest_zone, zone->free_pages);
}

/* shrink_zones(): one node, so its lists are shrunk once, if any zone needs. */
static void shrink_zones(struct scan_control *sc)
{
	bool needed = false;

	for (unsigned int i = 0; i <= sc->highest_zone; i++) {
		if (sc->order > COSTLY_ORDER &&
		    compaction_ready(sc, &sc->node->zones[i]))
			sc->compaction_ready = true;
		else
			needed = true;
	}
	if (!needed)
		return;
	do {
		reclaim_begin_pass(sc);
		while (reclaim_batch(sc))
			node_run_threads(sc->node, task_now_ns(sc->task));
	} while (reclaim_end_pass(sc));
}

uint64_t reclaim_direct(struct task *task, struct node *node,
			const struct alloc_context *ac)
{
	struct scan_control sc = {
		.task = task,
		.node = node,
		.order = ac->order,
		.highest_zone = ac->highest_zone,
		.priority = RECLAIM_DEF_PRIORITY,
		.may_swap = true,
		.nr_to_reclaim = RECLAIM_BATCH,
	};

	count_event(node, VMSTAT_allocstall_normal, 1);
	task_charge(task, node->costs.reclaim_entry_ps);
	for (; sc.priority >= 0; sc.priority--) {
		shrink_zones(&sc);
		if (sc.nr_reclaimed >= sc.nr_to_reclaim || sc.compaction_ready)
			break;
	}
	if (sc.nr_reclaimed)
		return sc.nr_reclaimed;
	return sc.compaction_ready ? 1 : 0;
}
