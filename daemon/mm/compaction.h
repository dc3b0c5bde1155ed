/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Compaction: moves occupants' pages from the bottom of a zone to free frames
 * at its top, so that large blocks become free. Counterpart: mm/compaction.c;
 * functions name theirs.
 *
 * A run is begun, stepped and ended, so that kcompactd can be interrupted by
 * time; direct compaction does all of it at once.
 *
 * Units:     frames, orders.
 * Ownership: a compact_control belongs to its caller and holds isolated frames
 *            between steps; compact_end() gives them back.
 * Threads:   as the node.
 */

#include "mm/zone.h"

enum compact_result {
	COMPACT_SKIPPED, /* too little free memory, or not fragmentation's fault
			  */
	COMPACT_DEFERRED,
	COMPACT_CONTINUE,
	COMPACT_COMPLETE, /* the scanners met, having begun at the bottom */
	COMPACT_PARTIAL_SKIPPED, /* they met, having begun further up */
	COMPACT_CONTENDED,       /* no target was to be had */
	COMPACT_SUCCESS,
};

/* enum compact_priority: less is more. */
enum compact_priority {
	COMPACT_PRIO_SYNC_FULL,
	COMPACT_PRIO_SYNC_LIGHT,
	COMPACT_PRIO_ASYNC,
};

#define COMPACT_CLUSTER_MAX 32u
#define COMPACT_MAX_DEFER   6u
#define COMPACT_WHOLE       (-1) /* order of a run that is not for a block */

struct compact_control {
	struct zone *zone;
	struct task *task;
	int order;
	int search_order;
	unsigned int mt;
	unsigned int alloc_flags;
	unsigned int highest_zone;
	bool async;
	bool direct; /* for a request, not by kcompactd */
	bool proactive;
	bool whole_zone;
	bool ignore_skip_hint;
	bool ignore_block_suitable;

	uint32_t migrate_pfn;
	uint32_t free_pfn;
	uint32_t last_migrated_pfn; /* NO_PFN: nothing since a drain */
	uint32_t fast_start_pfn;    /* 0: none yet; UINT32_MAX: used */
	uint32_t fast_search_fail;
	bool rescan; /* the pageblock was visited before: take all of it */
	bool update_cached;
	uint64_t migrate_scanned;
	uint64_t free_scanned;

	uint32_t free_head; /* list head of isolated targets, order 0 */
	uint32_t n_free;
	uint32_t n_migrate;
	bool migrating; /* between the parts of a turn of the loop */
	uint32_t migrate[PAGEBLOCK_PAGES]; /* isolated sources, newest first */
};

/* compaction_suitable() with @free_pages for NR_FREE_PAGES.
 * Return: SKIPPED, SUCCESS (a block is there already) or CONTINUE. */
enum compact_result compaction_suitable(const struct zone *zone, int order,
					unsigned int alloc_flags,
					unsigned int highest_zone);
/* __compaction_suitable(): without the fragmentation index. */
enum compact_result compaction_suitable_pages(const struct zone *zone,
					      int order,
					      unsigned int alloc_flags,
					      unsigned int highest_zone,
					      uint32_t free_pages);

/* First part of compact_zone(). Return: CONTINUE, or why not to begin. */
enum compact_result compact_begin(struct compact_control *cc);
/* A part of a turn of its loop: collects sources, or moves a few of them.
 * Return: CONTINUE, or the run's result. */
enum compact_result compact_step(struct compact_control *cc);
/* Last part: gives the targets back, counts. */
void compact_end(struct compact_control *cc);

/**
 * compaction_try() - try_to_compact_pages(): zone by zone for one request
 * @ret_pfn:    a block captured on the way, or NO_PFN
 */
enum compact_result compaction_try(struct task *task, struct node *node,
				   const struct alloc_context *ac,
				   unsigned int alloc_flags,
				   enum compact_priority prio,
				   uint32_t *ret_pfn);

/* compaction_capture() is declared in buddy.h, which calls it.
 * Return: true if @task took the block. */

/* Deferral: defer_compaction(), compaction_deferred(),
 * compaction_defer_reset(). */
void compaction_defer(struct zone *zone, int order);
bool compaction_deferred(struct zone *zone, int order);
void compaction_defer_reset(struct zone *zone, int order, bool allocated);

/* reset_isolation_suitable() of one zone, if a flush is due. */
void compaction_reset_skip(struct zone *zone);
void compaction_reset_positions(struct zone *zone);

/* ---- scanners, compact_migrate.c and compact_free.c ---- */

bool compact_scanners_met(const struct compact_control *cc);
unsigned int compact_scan_limit(const struct compact_control *cc);
/* isolate_migratepages(). Return: true if cc->migrate has pages. */
bool compact_isolate_sources(struct compact_control *cc);
/* putback_movable_pages() */
void compact_put_back(struct compact_control *cc);
/* migrate_pages(), at most @n of them. Return: false when targets ran out; the
 * rest is put back then. */
bool compact_migrate(struct compact_control *cc, uint32_t n);
/* isolate_freepages() */
void compact_isolate_targets(struct compact_control *cc);

/* ---- proactive compaction ---- */

/* fragmentation_score_zone(), fragmentation_score_node(): 0..100. */
unsigned int compaction_score_zone(const struct zone *zone);
unsigned int compaction_score_node(const struct node *node);
/* fragmentation_score_wmark() */
unsigned int compaction_score_wmark(const struct node *node, bool low);
