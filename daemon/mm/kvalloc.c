/* SPDX-License-Identifier: MIT */
#include "mm/kvalloc.h"

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "mm/node.h"

/*
 * Objects of at most half a page share the pages of their class. They have no
 * addresses here, so the class is always packed: it holds exactly the pages
 * that its objects fill, and gives the last one back as soon as the others
 * suffice.
 */

#define CLASS_MIN_SHIFT 3u /* 8 bytes, as kmalloc-8 */

/*
 * As cheap as can be: no direct reclaim, and kswapd is not woken either. A
 * table is not worth a background compaction; the system heap's own (chained
 * pages of scatterlist entries) never causes one.
 */
#define GFP_KV_CONTIGUOUS (GFP_NORETRY | GFP_NOWARN)
/* GFP_KERNEL */
#define GFP_KV_PAGE (GFP_DIRECT_RECLAIM | GFP_KSWAPD_RECLAIM)

void kvalloc_init(struct kvalloc *kv, struct node *node, enum kvalloc_mode mode)
{
	*kv = (struct kvalloc){
		.node = node,
		.mode = mode,
		.page_size_bytes = node_params(node)->page_size_bytes,
	};
}

void kvalloc_fini(struct kvalloc *kv)
{
	assert(kv->n_pages == 0);
	for (unsigned int i = 0; i < KVALLOC_CLASSES; i++) {
		free(kv->classes[i].pfns);
		kv->classes[i] = (struct kvalloc_class){};
	}
}

static unsigned int class_of(uint64_t size_bytes)
{
	unsigned int i = 0;

	while (UINT64_C(1) << (i + CLASS_MIN_SHIFT) < size_bytes)
		i++;
	return i;
}

/* Objects of class @i in one page. */
static uint64_t class_per_page(const struct kvalloc *kv, unsigned int i)
{
	return kv->page_size_bytes >> (i + CLASS_MIN_SHIFT);
}

static int class_reserve_slot(struct kvalloc_class *class)
{
	uint32_t capacity = class->capacity ? class->capacity * 2 : 4;
	uint32_t *pfns;

	if (class->n_pages < class->capacity)
		return 0;
	pfns = realloc(class->pfns, capacity * sizeof(*pfns));
	if (!pfns)
		return err_raise(-ENOMEM);
	class->pfns = pfns;
	class->capacity = capacity;
	return 0;
}

/*
 * Reclaim on the way to @pfn may have made the pools give buffers back, and
 * with them objects of this very class: then there is room without the page.
 */
static void class_add_page(struct kvalloc *kv, struct node_request *req,
			   unsigned int i, uint64_t pfn)
{
	struct kvalloc_class *class = &kv->classes[i];

	if (class->n_objects < class->n_pages * class_per_page(kv, i)) {
		node_free_block(kv->node, req, pfn, 0);
		return;
	}
	class->pfns[class->n_pages++] = (uint32_t)pfn;
	kv->n_pages++;
}

static int class_alloc(struct kvalloc *kv, struct node_request *req,
		       unsigned int i)
{
	struct kvalloc_class *class = &kv->classes[i];
	uint64_t pfn;
	int r;

	if (class->n_objects == class->n_pages * class_per_page(kv, i)) {
		r = class_reserve_slot(class);
		if (r)
			return err_trace(r);
		if (node_alloc(kv->node, req, 0, GFP_KV_PAGE, &pfn))
			return KVALLOC_E_NO_MEMORY;
		class_add_page(kv, req, i, pfn);
	}
	class->n_objects++;
	return 0;
}

static void class_release(struct kvalloc *kv, struct node_request *req,
			  unsigned int i)
{
	struct kvalloc_class *class = &kv->classes[i];

	assert(class->n_objects > 0);
	class->n_objects--;
	if (class->n_objects > (class->n_pages - 1) * class_per_page(kv, i))
		return;
	kv->n_pages--;
	class->n_pages--;
	node_free_block(kv->node, req, class->pfns[class->n_pages], 0);
}

static unsigned int order_of(uint64_t n_pages)
{
	unsigned int order = 0;

	while (UINT64_C(1) << order < n_pages)
		order++;
	return order;
}

/* Return: true if one block of the node holds all of @block. */
static bool take_contiguous(struct kvalloc *kv, struct node_request *req,
			    struct kv_block *block)
{
	unsigned int order = order_of(block->n_pages);
	uint32_t gfp = GFP_KV_CONTIGUOUS;
	uint64_t pfn;

	if (order > NODE_MAX_ORDER)
		return false;
	if (order == 0 || kv->mode == KVALLOC_CONTIGUOUS_ONLY)
		gfp = GFP_KV_PAGE;
	if (node_alloc(kv->node, req, order, gfp, &pfn))
		return false;
	block->order = order;
	block->n_pages = UINT32_C(1) << order;
	block->pfn = (uint32_t)pfn;
	kv->n_contiguous++;
	return true;
}

static void give_single_pages(struct kvalloc *kv, struct node_request *req,
			      struct kv_block *block)
{
	for (uint32_t i = 0; i < block->n_pages; i++)
		node_free_block(kv->node, req, block->pfns[i], 0);
	free(block->pfns);
	block->pfns = NULL;
}

static int take_single_pages(struct kvalloc *kv, struct node_request *req,
			     struct kv_block *block)
{
	uint32_t want = block->n_pages;
	uint64_t pfn;

	block->pfns = calloc(want, sizeof(*block->pfns));
	if (!block->pfns)
		return err_raise(-ENOMEM);
	for (block->n_pages = 0; block->n_pages < want; block->n_pages++) {
		if (node_alloc(kv->node, req, 0, GFP_KV_PAGE, &pfn)) {
			give_single_pages(kv, req, block);
			return KVALLOC_E_NO_MEMORY;
		}
		block->pfns[block->n_pages] = (uint32_t)pfn;
	}
	kv->n_fallback++;
	return 0;
}

static int pages_alloc(struct kvalloc *kv, struct node_request *req,
		       struct kv_block *block)
{
	int r;

	if (!take_contiguous(kv, req, block)) {
		if (kv->mode == KVALLOC_CONTIGUOUS_ONLY || block->n_pages == 1)
			return KVALLOC_E_NO_MEMORY;
		r = take_single_pages(kv, req, block);
		if (r)
			return r < 0 ? err_trace(r) : r;
	}
	kv->n_pages += block->n_pages;
	return 0;
}

static bool is_small(const struct kvalloc *kv, uint64_t size_bytes)
{
	return size_bytes <= kv->page_size_bytes / 2;
}

int kvalloc(struct kvalloc *kv, struct node_request *req, uint64_t size_bytes,
	    struct kv_block *ret)
{
	struct kv_block block = {.size_bytes = size_bytes};
	uint64_t stall_ns = req->stall_ns;
	uint64_t n_pages;
	int r;

	assert(size_bytes > 0);
	n_pages = (size_bytes - 1) / kv->page_size_bytes + 1;
	if (n_pages > NODE_MAX_PAGES) {
		r = KVALLOC_E_NO_MEMORY;
	} else if (is_small(kv, size_bytes)) {
		r = class_alloc(kv, req, class_of(size_bytes));
	} else {
		block.n_pages = (uint32_t)n_pages;
		r = pages_alloc(kv, req, &block);
	}
	stall_ns = req->stall_ns - stall_ns;
	if (r) {
		kv->n_failed++;
		kv->failed_stall_ns += stall_ns;
		return r < 0 ? err_trace(r) : r;
	}
	if (block.pfns)
		kv->fallback_stall_ns += stall_ns;
	else
		kv->contiguous_stall_ns += stall_ns;
	*ret = block;
	return 0;
}

void kvalloc_release(struct kvalloc *kv, struct node_request *req,
		     struct kv_block *block)
{
	uint32_t n_pages = block->n_pages;

	if (block->size_bytes == 0)
		return;
	if (n_pages == 0) {
		class_release(kv, req, class_of(block->size_bytes));
	} else if (block->pfns) {
		give_single_pages(kv, req, block);
	} else {
		node_free_block(kv->node, req, block->pfn, block->order);
	}
	kv->n_pages -= n_pages;
	*block = (struct kv_block){};
}

bool kvalloc_check(const struct kvalloc *kv)
{
	uint64_t class_pages = 0;

	for (unsigned int i = 0; i < KVALLOC_CLASSES; i++) {
		const struct kvalloc_class *class = &kv->classes[i];
		uint64_t per_page = class_per_page(kv, i);

		if (class->n_pages == 0 && class->n_objects == 0)
			continue;
		if (class->n_objects > class->n_pages * per_page ||
		    class->n_objects <= (class->n_pages - 1) * per_page)
			return false;
		class_pages += class->n_pages;
	}
	return class_pages <= kv->n_pages;
}
