/* SPDX-License-Identifier: MIT */
#include "heap/buffer.h"

#include <errno.h>

#include "base/err.h"
#include "heap/heap_private.h"

#define RUN_BLOCKS_MAX ((UINT32_C(1) << 28) - 1)

uint64_t buffer_n_blocks(const struct buffer *buffer)
{
	uint64_t n = 0;

	for (unsigned int order = 0; order < POLICY_ORDER_COUNT; order++)
		n += buffer->composition[order];
	return n;
}

uint64_t composition_bytes(const uint32_t composition[POLICY_ORDER_COUNT],
			   uint32_t page_size_bytes)
{
	uint64_t pages = 0, bytes;

	/* 11 products below 2^42 cannot wrap; the last one can. */
	for (unsigned int order = 0; order < POLICY_ORDER_COUNT; order++)
		pages += (uint64_t)composition[order] << order;
	if (__builtin_mul_overflow(pages, (uint64_t)page_size_bytes, &bytes))
		return UINT64_MAX;
	return bytes;
}

int composition_compare(const uint32_t a[POLICY_ORDER_COUNT],
			const uint32_t b[POLICY_ORDER_COUNT])
{
	for (unsigned int order = POLICY_ORDER_COUNT; order-- > 0;) {
		if (a[order] != b[order])
			return a[order] < b[order] ? -1 : 1;
	}
	return 0;
}

static bool run_continues(const struct buffer_run *run, uint64_t pfn,
			  unsigned int order)
{
	return run->order == order && run->n_blocks < RUN_BLOCKS_MAX &&
	       run->pfn + ((uint64_t)run->n_blocks << order) == pfn;
}

/* The table's size is the next power of two of n_runs. */
static size_t runs_bytes(const struct buffer *buffer)
{
	size_t n = 1;

	if (buffer->n_runs == 0)
		return 0;
	while (n < buffer->n_runs)
		n *= 2;
	return n * sizeof(*buffer->runs);
}

/* It doubles: room for n_runs + 1 exists unless n_runs is 2^k. */
static int runs_reserve(struct buffer *buffer)
{
	size_t bytes = runs_bytes(buffer);
	struct buffer_run *runs;

	if (buffer->n_runs && !is_power_of_2(buffer->n_runs))
		return 0;
	runs = slab_classes_resize(buffer->heap->set->run_slabs, buffer->runs,
				   bytes, bytes ? 2 * bytes : sizeof(*runs));
	if (!runs)
		return err_raise(-ENOMEM);
	buffer->runs = runs;
	return 0;
}

static int runs_append(struct buffer *buffer, uint64_t pfn, unsigned int order)
{
	struct buffer_run *last;
	int r;

	if (buffer->n_runs) {
		last = &buffer->runs[buffer->n_runs - 1];
		assert(order <= last->order);
		if (run_continues(last, pfn, order)) {
			last->n_blocks++;
			return 0;
		}
	}
	r = runs_reserve(buffer);
	if (r)
		return err_trace(r);
	buffer->runs[buffer->n_runs++] =
		(struct buffer_run){.pfn = (uint32_t)pfn,
				    .n_blocks = 1,
				    .order = order & 0xfu};
	return 0;
}

int buffer_append(struct buffer *buffer, uint64_t pfn, unsigned int order)
{
	const struct heap_set *set = buffer->heap->set;
	int r;

	assert(pfn <= UINT32_MAX && order < POLICY_ORDER_COUNT);
	r = runs_append(buffer, pfn, order);
	if (r)
		return err_trace(r);
	buffer->composition[order]++;
	/* Two buffers with one block would be a double init. */
	objtrack_init(set->track, 0, set->track_block, pfn);
	return 0;
}

int buffer_new(struct buffer **ret, struct heap *heap, struct node_request *req,
	       uint32_t uid, uint64_t len_bytes)
{
	struct heap_set *set = heap->set;
	struct buffer *buffer;

	set->metadata_req = req;
	set->metadata_refused = false;
	buffer = slab_zalloc(set->buffer_slab, SLAB_NO_FRONT);
	set->metadata_req = NULL;
	if (!buffer)
		return set->metadata_refused ? HEAP_E_NO_MEMORY
					     : err_raise(-ENOMEM);
	buffer->heap = heap;
	buffer->uid = uid;
	buffer->len_bytes = len_bytes;
	list_init(&buffer->set_link);
	list_init(&buffer->park_link);
	list_init(&buffer->bucket_link);
	objtrack_init(set->track, 0, set->track_buffer, (uintptr_t)buffer);
	*ret = buffer;
	return 0;
}

void buffer_register(struct buffer *buffer, uint64_t id)
{
	struct heap_set *set = buffer->heap->set;
	struct list_node *after = set->buffers.prev;

	if (id == 0)
		id = set->next_id;
	/* New ids are the largest; only adopted ones look further. */
	while (after != &set->buffers &&
	       list_entry(after, struct buffer, set_link)->id > id)
		after = after->prev;
	if (after != &set->buffers &&
	    list_entry(after, struct buffer, set_link)->id == id) {
		id = set->next_id;
		after = set->buffers.prev;
	}
	buffer->id = id;
	set->next_id = MAX(set->next_id, id + 1);
	list_add_head(after, &buffer->set_link);
	objtrack_activate(set->track, 0, set->track_buffer, (uintptr_t)buffer);
}

static void forget_block(void *ctx, uint64_t pfn, unsigned int order)
{
	const struct heap_set *set = ctx;

	(void)order;
	objtrack_forget(set->track, 0, set->track_block, pfn);
}

/* Calls @fn for each block, from the first to the last. */
static void for_each_block(const struct buffer *buffer,
			   void (*fn)(void *ctx, uint64_t pfn,
				      unsigned int order),
			   void *ctx)
{
	for (uint32_t i = 0; i < buffer->n_runs; i++) {
		const struct buffer_run *run = &buffer->runs[i];

		for (uint64_t n = 0; n < run->n_blocks; n++)
			fn(ctx, run->pfn + (n << run->order), run->order);
	}
}

void buffer_destroy(struct buffer *buffer)
{
	struct heap_set *set = buffer->heap->set;

	if (objtrack_is_enabled(set->track))
		for_each_block(buffer, forget_block, set);
	objtrack_forget(set->track, 0, set->track_buffer, (uintptr_t)buffer);
	assert(buffer->table.size_bytes == 0);
	list_remove(&buffer->set_link);
	list_remove(&buffer->park_link);
	list_remove(&buffer->bucket_link);
	(void)slab_classes_resize(set->run_slabs, buffer->runs,
				  runs_bytes(buffer), 0);
	slab_free(set->buffer_slab, SLAB_NO_FRONT, buffer);
}

struct give_ctx {
	struct node *node;
	struct node_request *req;
};

static void give_block(void *ctx, uint64_t pfn, unsigned int order)
{
	const struct give_ctx *give = ctx;

	node_free_block(give->node, give->req, pfn, order);
}

void buffer_give_to_node(struct buffer *buffer, struct node_request *req)
{
	struct heap_set *set = buffer->heap->set;
	struct give_ctx give = {.node = set->node, .req = req};

	for_each_block(buffer, give_block, &give);
	kvalloc_release(&set->kv, req, &buffer->table);
}

static void pool_block(void *ctx, uint64_t pfn, unsigned int order)
{
	heap_pool_put(ctx, pfn, order);
}

void buffer_give_to_pools(struct buffer *buffer)
{
	struct heap *heap = buffer->heap;

	for_each_block(buffer, pool_block, heap);
	kvalloc_release(&heap->set->kv, NULL, &buffer->table);
}
