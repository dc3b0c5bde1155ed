/* SPDX-License-Identifier: MIT */
#include <inttypes.h>

#include "base/err.h"
#include "base/pages.h"
#include "base/strbuf.h"
#include "heap/heap_private.h"

/*
 * What a kernel would keep per buffer (its struct, the dma_buf, the sg_table)
 * is struct buffer here, and the pages that hold it are charged to the node:
 * each slab is one page frame of the node, unmovable, for as long as one buffer
 * in it lives. The bytes themselves are the daemon's own.
 */

/* GFP_KERNEL */
#define GFP_METADATA (GFP_DIRECT_RECLAIM | GFP_KSWAPD_RECLAIM)

static void *metadata_alloc(void *ctx, unsigned int order, uint64_t *ret_cookie)
{
	struct heap_set *set = ctx;
	struct node_request nobody = {.start_ns = node_now_ns(set->node)};
	void *pages = pages_alloc(order);

	if (!pages)
		return NULL;
	if (node_alloc(set->node,
		       set->metadata_req ? set->metadata_req : &nobody, 0,
		       GFP_METADATA, ret_cookie)) {
		set->metadata_refused = true;
		pages_free(pages, order);
		return NULL;
	}
	set->n_metadata_pages++;
	return pages;
}

static void metadata_free(void *ctx, void *pages, unsigned int order,
			  uint64_t cookie)
{
	struct heap_set *set = ctx;

	node_free_block(set->node, NULL, cookie, 0);
	set->n_metadata_pages--;
	pages_free(pages, order);
}

/* The order at which one slab is one page frame of the node. */
static unsigned int slab_order(const struct heap_set *set)
{
	unsigned int order = 0;

	while ((SLAB_PAGE_BYTES << order) < set->page_size_bytes)
		order++;
	return order;
}

int metadata_init(struct heap_set *set)
{
	const struct slab_params buffers = {
		.size_bytes = sizeof(struct buffer),
		.order = slab_order(set),
		/* Not more with debugging: what the node sees is the same. */
		.n_per_slab = set->page_size_bytes / sizeof(struct buffer),
		.page_ops = {metadata_alloc, metadata_free, set},
	};
	const struct slab_params runs = {0};
	int r = slab_cache_new(&set->buffer_slab, "buffer", &buffers);

	if (r == 0)
		r = slab_classes_new(&set->run_slabs, &runs);
	return r ? err_trace(r) : 0;
}

void metadata_fini(struct heap_set *set)
{
	set->buffer_slab = slab_cache_free(set->buffer_slab);
	set->run_slabs = slab_classes_free(set->run_slabs);
	assert(set->n_metadata_pages == 0);
}

bool metadata_check(const struct heap_set *set)
{
	struct slab_stats stats;

	slab_cache_stats(set->buffer_slab, &stats);
	return stats.total_slabs == set->n_metadata_pages &&
	       slab_check(set->buffer_slab) &&
	       slab_classes_check(set->run_slabs);
}

void heap_set_render_vmstat(const struct heap_set *set, struct strbuf *out)
{
	const struct kvalloc *kv = &set->kv;
	const struct {
		const char *name;
		uint64_t value;
	} items[] = {
		{"metadata_pages", set->n_metadata_pages + kv->n_pages},
		{"kvalloc_contiguous", kv->n_contiguous},
		{"kvalloc_contiguous_stall_ns", kv->contiguous_stall_ns},
		{"kvalloc_fallback", kv->n_fallback},
		{"kvalloc_fallback_stall_ns", kv->fallback_stall_ns},
		{"kvalloc_failed", kv->n_failed},
		{"kvalloc_failed_stall_ns", kv->failed_stall_ns},
	};

	for (size_t i = 0; i < ARRAY_SIZE(items); i++)
		strbuf_append(out, "model_%s %" PRIu64 "\n", items[i].name,
			      items[i].value);
}

void heap_set_enlist(struct heap_set *set, struct slab_registry *registry)
{
	slab_cache_enlist(set->buffer_slab, registry);
	slab_classes_enlist(set->run_slabs, registry);
}

void heap_set_track(struct heap_set *set, struct objtrack *track,
		    unsigned int buffer_kind, unsigned int block_kind)
{
	assert(list_is_empty(&set->buffers));
	set->track = track;
	set->track_buffer = buffer_kind;
	set->track_block = block_kind;
}
