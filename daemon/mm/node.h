/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Node: one simulated memory node, the facade of the model. It hands out
 * power-of-two blocks of page frames as the Linux page allocator would
 * (__alloc_pages() and what it calls), among occupants that stand for the rest
 * of the system, and says how long that would have taken.
 * docs/zone-model.md walks through it.
 *
 * Units:     pfn counts frames of page_size_bytes; order is log2 of frames;
 *            *_ns is the node's virtual time.
 * Ownership: node_new() gives the caller the only reference. A block belongs
 *            to who allocated it until node_free_block().
 * Threads:   not locked. One node is used by one thread at a time.
 *
 * Pure: no system call, no clock, no log. Equal parameters and calls give equal
 * results, bit for bit, on every compiler.
 */

#include "base/base.h"
#include "base/strbuf.h"
#include "mm/cost.h"
#include "mm/gfp.h"
#include "mm/snapshot.h"

#define NODE_MAX_ORDER           10u
#define NODE_ORDERS              (NODE_MAX_ORDER + 1u)
#define NODE_ZONES_MAX           SNAPSHOT_ZONES_MAX
#define NODE_CPUS_MAX            64u
#define NODE_OCCUPANTS_MAX_BYTES 256u
#define NODE_MIN_BYTES           MIB(16)
#define NODE_MAX_PAGES           (UINT64_C(1) << 28)

/* Outcomes. */
enum {
	NODE_E_OK_,
	NODE_E_NO_BLOCK, /* node_alloc(): nothing, after all that gfp allows */
	NODE_E_INVALID,  /* node_new() and others: node_error says why */
	NODE_E_BUSY,     /* blocks are still allocated */
};

/* Why a request failed; same values as enum dmaheap_fallback. */
enum node_fallback {
	NODE_FALLBACK_NONE = 0,
	NODE_FALLBACK_NO_BLOCK = 2,  /* no free block of this order or above */
	NODE_FALLBACK_WATERMARK = 3, /* free, but below the watermark */
	NODE_FALLBACK_RECLAIM = 4,   /* reclaim and compaction failed too */
};

enum node_swap {
	NODE_SWAP_NONE, /* anonymous pages cannot be reclaimed */
	NODE_SWAP_ZRAM, /* at the cost of compressing them */
	NODE_SWAP_DISK,
};

/* What the rest of the system uses frames for. */
enum node_occupant {
	NODE_OCCUPANT_FILE,    /* clean page cache, inactive */
	NODE_OCCUPANT_ACTIVE,  /* clean page cache, on the active list */
	NODE_OCCUPANT_DIRTY,   /* page cache that needs writeback */
	NODE_OCCUPANT_ANON,    /* anonymous memory of processes */
	NODE_OCCUPANT_SLAB,    /* reclaimable slab */
	NODE_OCCUPANT_KERNEL,  /* unmovable */
	NODE_OCCUPANT_MLOCKED, /* anonymous and mlocked */
	NODE_OCCUPANTS,
};

struct node_error {
	char text[320];
};

/* A parameter that is all zero has the default named here. */
struct node_params {
	uint32_t page_size_bytes; /* 4096 (default), 16384 or 65536 */
	uint64_t size_bytes;      /* of one zone; ignored with a snapshot */
	const struct snapshot *snapshot; /* borrowed for node_new() only */
	/*
	 * "file:20% anon:10% kernel:64M": kinds file active dirty anon slab
	 * kernel mlocked; the amount is a share of the node or a size. With a
	 * snapshot, one kind may be given without an amount: the used pages
	 * that meminfo does not explain are of it (else kernel).
	 */
	char occupants[NODE_OCCUPANTS_MAX_BYTES];
	uint64_t min_free_bytes; /* 0: as the kernel computes it */
	enum node_swap swap;
	uint64_t swap_bytes;                   /* 0: as much as the node has */
	unsigned int compaction_proactiveness; /* 0..100 */
	/*
	 * How far a stolen pageblock may raise the watermarks, in 1/10000 of
	 * the high one; 0: 15000, the kernel's; NODE_NO_BOOST: not at all, as
	 * phones are often set up (vm.watermark_boost_factor = 0).
	 */
	uint32_t watermark_boost_factor;
	bool compact_unevictable_denied; /* compact_unevictable_allowed = 0 */
	unsigned int pcp_batch;          /* 0: as the kernel computes it */
	unsigned int pcp_high;           /* 0: likewise */
	unsigned int n_cpus;             /* 0: 1 */
	struct cost_profile costs;       /* all zero: cost_profile_default() */
	uint64_t seed;
};

#define NODE_NO_BOOST UINT32_MAX

/*
 * One request of a heap: its place in time, and what the node did for it. The
 * caller zeroes it and fills in the first two.
 */
struct node_request {
	uint64_t start_ns; /* when the request came, on the node's clock */
	unsigned int cpu;  /* whose per-CPU lists it uses, modulo n_cpus */
	/* accumulated by the node over all calls of the request */
	uint64_t spent_ns;     /* modelled time in all */
	uint64_t stall_ns;     /* of it, in direct reclaim and compaction */
	uint32_t n_allocstall; /* entries into direct reclaim */
	uint32_t n_compact_stall;
	enum node_fallback last_fallback; /* of the last failed node_alloc() */
	/* the node's own */
	uint64_t spent_ps;
	uint64_t stall_ps;
	bool begun;
};

struct node;

/**
 * node_new() - build a node
 * @ret:        receives the node on success; untouched on failure
 * @params:     see there
 * @err:        receives one sentence on NODE_E_INVALID
 *
 * Return: 0, NODE_E_INVALID (a parameter out of range, or a snapshot that no
 * memory can look like), or -ENOMEM.
 */
int node_new(struct node **ret, const struct node_params *params,
	     struct node_error *err) _must_check_;

/* Return: NULL, always. @node may be NULL; blocks may still be allocated. */
struct node *node_free(struct node *node);
DEFINE_CLEANUP(struct node *, node_free);

/* Return: the parameters in force. */
const struct node_params *node_params(const struct node *node);

/* ---- time ---- */

/* Virtual time: 0 for a new node, never backwards. */
uint64_t node_now_ns(const struct node *node);

/**
 * node_advance() - let time pass until @now_ns
 *
 * kswapd and kcompactd do the work that they could have done by then. A time
 * that is not after node_now_ns() does nothing.
 */
void node_advance(struct node *node, uint64_t now_ns);

/* ---- blocks ---- */

/**
 * node_alloc() - take one block, as alloc_pages(gfp, order)
 * @req:        the request it belongs to
 * @order:      0..NODE_MAX_ORDER (asserted)
 * @gfp:        flags of gfp.h; unmovable unless they say otherwise
 * @ret_pfn:    receives the first frame on success
 *
 * May run reclaim and compaction, call the shrinker and kill occupants.
 *
 * Return: 0 or NODE_E_NO_BLOCK. Never negative.
 */
int node_alloc(struct node *node, struct node_request *req, unsigned int order,
	       uint32_t gfp, uint64_t *ret_pfn) _must_check_;

/* Gives a block back, as __free_pages(). @req may be NULL: then it costs the
 * caller nothing. A pfn or order that node_alloc() did not give is asserted. */
void node_free_block(struct node *node, struct node_request *req, uint64_t pfn,
		     unsigned int order);

/**
 * node_count_available() - a dry run without side effects
 *
 * Return: how many blocks of @order the free lists would give one after the
 * other, at most @upto, without reclaim or compaction (per-CPU lists apart).
 */
uint64_t node_count_available(const struct node *node, unsigned int order,
			      uint32_t gfp, uint64_t upto);

/* ---- the shrinker of the page pools (register_shrinker()) ---- */

struct node_shrinker_ops {
	/* Return: pages that scan() could give back now. */
	uint64_t (*count)(void *ctx);
	/* Gives about @n_pages back by node_free_block(). Return: how many. */
	uint64_t (*scan)(void *ctx, uint64_t n_pages);
};

/* What reclaim asks for pages; NULL: nobody. @ops must outlive the node. */
void node_set_shrinker(struct node *node, const struct node_shrinker_ops *ops,
		       void *ctx);

/* ---- occupants and pressure: they only change who occupies which frame ----
 */

/**
 * node_occupy() - frames for the rest of the system
 * @n_pages:    how many; fewer when the free lists give no more
 *
 * Order 0 from the free lists, with the migrate type of the kind, down to the
 * last page if need be; no reclaim.
 *
 * Return: how many it took.
 */
uint64_t node_occupy(struct node *node, enum node_occupant kind,
		     uint64_t n_pages);

/* The same until at most @leave_bytes are free. Return: pages taken. */
uint64_t node_occupy_fill(struct node *node, enum node_occupant kind,
			  uint64_t leave_bytes);

/* Frees @n_pages of @kind, the oldest first. Return: pages freed. */
uint64_t node_vacate(struct node *node, enum node_occupant kind,
		     uint64_t n_pages);

/* Frees one page in @n (>= 1) of @kind, by address. Return: pages freed. */
uint64_t node_release_every(struct node *node, enum node_occupant kind,
			    unsigned int n);

/* Turns every page of one kind into another, in place (mlock(), writeback).
 * Return: pages changed. */
uint64_t node_convert(struct node *node, enum node_occupant from,
		      enum node_occupant to);

/* The same with one page in @n (>= 1), drawn by lot from the node's seed: pages
 * that cannot move, strewn over memory. Return: pages changed. */
uint64_t node_convert_some(struct node *node, enum node_occupant from,
			   enum node_occupant to, unsigned int n);

/*
 * The presets of `dmaheapctl pressure`. Their occupants are remembered, and
 * node_pressure_release() takes them away again.
 */

/* Few pages free, all small, and no cache to drop: MID_ORDER stalls, HIGH_ORDER
 * falls through. */
void node_pressure_low_memory(struct node *node);
/* Fills with anonymous pages until @leave_bytes are free. */
void node_pressure_fill(struct node *node, uint64_t leave_bytes);
/* Leaves no free block above @max_order where occupants can prevent it. */
void node_pressure_fragment(struct node *node, unsigned int max_order);
void node_pressure_release(struct node *node);
/* Appends one line: pages held by pressure, by preset. */
void node_pressure_render(const struct node *node, struct strbuf *sb);

/* ---- looking at it ---- */

struct node_zone_stats {
	char name[16];
	uint64_t size_pages; /* managed */
	uint64_t free_pages;
	uint64_t pcp_pages; /* of free frames, on per-CPU lists */
	uint64_t wmark_min_pages;
	uint64_t wmark_low_pages;
	uint64_t wmark_high_pages;
	uint64_t wmark_boost_pages;
	uint64_t free_blocks[NODE_ORDERS];
	int32_t fragmentation_index[NODE_ORDERS]; /* -1000..1000 */
	int32_t unusable_free_index[NODE_ORDERS]; /* 0..1000 */
};

unsigned int node_n_zones(const struct node *node);
/* @i < node_n_zones() (asserted). Zone 0 is the lowest. */
void node_zone_stats(const struct node *node, unsigned int i,
		     struct node_zone_stats *ret);

/* The part of it that is asked at every release: zones' sums, in O(zones). */
struct node_level {
	uint64_t free_pages;
	uint64_t wmark_low_pages;
	uint64_t wmark_high_pages;
};
void node_level(const struct node *node, struct node_level *ret);

/* Where every frame is; the parts add up to total_pages at every moment. */
struct node_page_counts {
	uint64_t total_pages;
	uint64_t free_pages;      /* free lists and per-CPU lists */
	uint64_t allocated_pages; /* blocks of node_alloc() */
	uint64_t occupant_pages[NODE_OCCUPANTS];
	uint64_t reserved_pages; /* never managed */
};

void node_page_counts(const struct node *node, struct node_page_counts *ret);

/* Counters with the kernel's names. Return: how many there are. */
unsigned int node_vmstat_count(void);
const char *node_vmstat_name(unsigned int i);
uint64_t node_vmstat_value(const struct node *node, unsigned int i);
/* Return: the counter of that name, or 0 when there is none. */
uint64_t node_vmstat(const struct node *node, const char *name);

/* The formats of /proc, as snapshot_parse() reads them. */
void node_render_buddyinfo(const struct node *node, struct strbuf *sb);
void node_render_pagetypeinfo(const struct node *node, struct strbuf *sb);
void node_render_zoneinfo(const struct node *node, struct strbuf *sb);
void node_render_meminfo(const struct node *node, struct strbuf *sb);
void node_render_vmstat(const struct node *node, struct strbuf *sb);

/* Return: the kind's name in config, or NULL for an unknown one. */
const char *node_occupant_name(enum node_occupant kind);
/* Return: 0, or -EINVAL. */
int node_occupant_parse(const char *name, enum node_occupant *ret) _must_check_;

/* Bytes of bookkeeping per frame, times 1000. */
uint64_t node_metadata_millibytes(const struct node *node);

/**
 * node_check() - verify every invariant (for tests and debug builds)
 *
 * Walks all lists and frames: O(pages). Return: true if consistent; else false
 * and *ret_what, if not NULL, says which invariant broke.
 */
bool node_check(const struct node *node, const char **ret_what);
