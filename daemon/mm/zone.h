/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What the model's own files share: the node, its zones, and the task that runs
 * in them. Counterparts: pg_data_t, struct zone, struct per_cpu_pages,
 * current, struct alloc_context. Nobody outside mm/ includes this.
 *
 * Units:     *_pages and counts of frames; *_ps picoseconds; pfn from 0.
 * Ownership: everything belongs to the node.
 * Threads:   as the node.
 */

#include "mm/frame.h"
#include "mm/node.h"
#include "mm/vmstat.h"

#define PAGEBLOCK_ORDER 9u
#define PAGEBLOCK_PAGES (1u << PAGEBLOCK_ORDER)
#define MAX_BLOCK_PAGES (1u << NODE_MAX_ORDER)

/* PAGE_ALLOC_COSTLY_ORDER: above it an allocation may fail rather than kill. */
#define COSTLY_ORDER 3u

enum migrate_type {
	MT_UNMOVABLE,
	MT_MOVABLE,
	MT_RECLAIMABLE,
	MT_COUNT,
};

/* A pageblock's byte. */
#define BLOCK_MT_MASK 0x3u
#define BLOCK_SKIP    0x4u /* compaction found nothing there lately */

enum wmark { WMARK_MIN, WMARK_LOW, WMARK_HIGH, WMARK_COUNT };

/* alloc_flags of the kernel; the low bits are an enum wmark. */
#define ALLOC_WMARK_MASK    0x03u
#define ALLOC_NO_WATERMARKS 0x04u
#define ALLOC_NOFRAGMENT    0x08u
#define ALLOC_KSWAPD        0x10u

/* Orders 0..3 have per-CPU lists, and the huge page's. */
#define PCP_LISTS (MT_COUNT * (COSTLY_ORDER + 2u))

struct pcp {
	uint32_t heads; /* index of the first of PCP_LISTS list heads */
	uint32_t count; /* pages on them */
	uint32_t high;
	uint32_t batch;
	uint32_t free_factor; /* doublings of batch while only freeing */
};

struct zone {
	struct node *node;
	char name[16];
	unsigned int index;
	bool is_normal; /* ZONE_NORMAL: requests avoid fragmentation in it */
	uint32_t start_pfn;
	uint32_t end_pfn; /* both multiples of MAX_BLOCK_PAGES */
	uint32_t managed_pages;
	uint32_t hole_pages; /* behind end_pfn: spanned, but not present */

	uint32_t heads; /* index of the first of MT_COUNT * NODE_ORDERS heads */
	uint32_t free_blocks[MT_COUNT][NODE_ORDERS];
	uint32_t free_mask[MT_COUNT]; /* bit n: a block of order n is free */
	uint32_t free_pages;          /* NR_FREE_PAGES: without per-CPU lists */
	uint32_t occupants[NODE_OCCUPANTS];

	uint32_t wmark[WMARK_COUNT]; /* without the boost */
	uint32_t wmark_boost;
	uint32_t lowmem_reserve[NODE_ZONES_MAX];
	bool boosted;        /* ZONE_BOOSTED_WATERMARK: kswapd to be woken */
	bool reclaim_active; /* ZONE_RECLAIM_ACTIVE: keep per-CPU lists short */

	struct pcp *pcp; /* one per CPU */

	/* compaction: where scanners restart, and deferral */
	uint32_t compact_cached_migrate_pfn[2]; /* async, sync */
	uint32_t compact_cached_free_pfn;
	uint32_t compact_init_migrate_pfn;
	uint32_t compact_init_free_pfn;
	uint32_t compact_considered;
	uint32_t compact_defer_shift;
	uint32_t compact_order_failed;
	bool compact_blockskip_flush;
};

struct compact_control;

/* Who runs: a request, or one of the node's threads. */
struct task {
	unsigned int cpu;
	bool is_kthread;
	struct node_request *req; /* NULL for threads and free helpers */
	uint64_t base_ns;         /* when it began, on the node's clock */
	uint64_t spent_ps;        /* since then */
	struct compact_control *capture_cc; /* capture_control: whose */
	uint32_t captured_pfn;              /* NO_PFN: nothing yet */
};

/* What one allocation wants. */
struct alloc_context {
	unsigned int order;
	uint32_t gfp;
	unsigned int mt;
	unsigned int highest_zone;
};

#define NO_PFN UINT32_MAX

struct kswapd;
struct kcompactd;

struct node {
	struct node_params params;
	struct cost_profile costs;
	uint64_t now_ns;
	bool advancing; /* threads run: they do not run each other */

	uint32_t n_frames;
	uint16_t *state;
	uint8_t *blocks;          /* per pageblock */
	struct frame_link *links; /* n_frames, then the list heads */
	uint32_t n_links;

	unsigned int n_zones;
	struct zone zones[NODE_ZONES_MAX];
	struct zone *top_zone; /* the last of them: where requests begin */
	unsigned int n_cpus;

	uint32_t lru_heads; /* one list per enum node_occupant */
	uint32_t allocated_pages;
	uint32_t reserved_pages;
	uint32_t isolated_pages; /* targets held by compaction */
	uint32_t compact_heads;  /* two list heads for them */
	struct compact_control *direct_cc;
	uint64_t swap_pages; /* still free */

	const struct node_shrinker_ops *shrinker_ops;
	void *shrinker_ctx;

	struct kswapd *kswapd;
	struct kcompactd *kcompactd;
	uint64_t next_work_ns; /* when a thread has something to do */
	uint64_t vmstat[VMSTAT_COUNT];
};

static inline struct zone *node_zone_of(struct node *node, uint32_t pfn)
{
	struct zone *zone = node->top_zone;

	while (pfn < zone->start_pfn)
		zone--;
	return zone;
}

static inline unsigned int block_mt(const struct node *node, uint32_t pfn)
{
	return node->blocks[pfn >> PAGEBLOCK_ORDER] & BLOCK_MT_MASK;
}

static inline void block_set_mt(struct node *node, uint32_t pfn,
				unsigned int mt)
{
	uint8_t *b = &node->blocks[pfn >> PAGEBLOCK_ORDER];

	*b = (uint8_t)((*b & ~BLOCK_MT_MASK) | mt);
}

static inline uint32_t zone_head(const struct zone *zone, unsigned int mt,
				 unsigned int order)
{
	return zone->heads + mt * NODE_ORDERS + order;
}

static inline uint32_t block_start(uint32_t pfn)
{
	return pfn & ~(PAGEBLOCK_PAGES - 1);
}

static inline uint32_t block_end(uint32_t pfn)
{
	return block_start(pfn) + PAGEBLOCK_PAGES;
}

/* zone_end_pfn(): the hole's frames have no state. */
static inline uint32_t zone_span_end(const struct zone *zone)
{
	return zone->end_pfn + zone->hole_pages;
}

/* min_wmark_pages() and its like: with the boost. */
static inline uint32_t zone_wmark(const struct zone *zone, unsigned int w)
{
	return zone->wmark[w] + zone->wmark_boost;
}

static inline void task_charge(struct task *task, uint64_t ps)
{
	task->spent_ps += ps;
}

static inline uint64_t task_now_ns(const struct task *task)
{
	return task->base_ns + task->spent_ps / 1000;
}

static inline void count_event(struct node *node, enum vmstat_item item,
			       uint64_t n)
{
	node->vmstat[item] += n;
}
