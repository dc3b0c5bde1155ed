/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "base/err.h"
#include "heap/heap_private.h"

/*
 * How buffers end, and how those of an earlier daemon begin again. Counterpart
 * of the first: the deferred free list of the kernels that have page pools.
 */

void heap_release(struct heap *heap, struct buffer *buffer)
{
	objtrack_deactivate(heap->set->track, 0, heap->set->track_buffer,
			    (uintptr_t)buffer);
	assert(buffer->heap == heap && buffer->state == BUFFER_LIVE);
	buffer->state = BUFFER_RELEASED;
}

int heap_finish(struct heap *heap, struct buffer *buffer, enum heap_finish how)
{
	enum heap_finish may =
		heap_set_above_low(heap->set) ? how : HEAP_FINISH_NODE;

	assert(buffer->heap == heap && buffer->state == BUFFER_RELEASED);
	heap->stats.buffers--;
	heap->stats.bytes -= buffer->len_bytes;
	if (may == HEAP_FINISH_PARK && parked_add(buffer))
		return 0;
	if (may == HEAP_FINISH_NODE)
		buffer_give_to_node(buffer, NULL);
	else
		buffer_give_to_pools(buffer);
	buffer_destroy(buffer);
	return how == HEAP_FINISH_PARK ? HEAP_E_NOT_PARKED : 0;
}

/*
 * One block of @order or, when that is not free, its halves.
 * Return: 0, HEAP_E_NO_MEMORY or -ENOMEM.
 */
static int adopt_blocks(struct buffer *buffer, struct node_request *req,
			unsigned int order, uint64_t n)
{
	struct heap_set *set = buffer->heap->set;
	uint64_t pfn;
	int r;

	for (; n; n--) {
		if (node_alloc(set->node, req, order, GFP_HIGH_ORDER, &pfn))
			break;
		r = buffer_append(buffer, pfn, order);
		if (r) {
			node_free_block(set->node, req, pfn, order);
			return err_trace(r);
		}
	}
	return n == 0 ? 0 : HEAP_E_NO_MEMORY;
}

/* The old composition, from large to small; what is missing goes one down. */
static int adopt_fill(struct buffer *buffer, struct node_request *req,
		      const uint32_t composition[POLICY_ORDER_COUNT])
{
	struct heap_set *set = buffer->heap->set;
	uint64_t carried = 0;
	int r;

	for (unsigned int order = POLICY_ORDER_COUNT; order-- > 0;) {
		uint64_t want = composition[order] + 2 * carried;

		r = adopt_blocks(buffer, req, order, want);
		if (r < 0)
			return err_trace(r);
		carried = want - buffer->composition[order];
	}
	if (carried)
		return HEAP_E_NO_MEMORY;
	r = kvalloc(&set->kv, req,
		    buffer_n_blocks(buffer) * BUFFER_TABLE_ENTRY_BYTES,
		    &buffer->table);
	if (r == KVALLOC_E_NO_MEMORY)
		return HEAP_E_NO_MEMORY;
	return r ? err_fold(r) : 0;
}

int heap_adopt(struct heap *heap, uint32_t uid, uint64_t id, uint64_t len_bytes,
	       const uint32_t composition[POLICY_ORDER_COUNT],
	       struct buffer **ret)
{
	struct heap_set *set = heap->set;
	struct node_request req = {.start_ns = node_now_ns(set->node)};
	struct buffer *buffer;
	int r;

	if (len_bytes == 0 ||
	    composition_bytes(composition, set->page_size_bytes) != len_bytes)
		return HEAP_E_COMPOSITION;
	if (len_bytes / set->page_size_bytes > set->n_node_pages)
		return HEAP_E_NO_MEMORY;
	r = buffer_new(&buffer, heap, &req, uid, len_bytes);
	if (r)
		return r < 0 ? err_trace(r) : r;
	r = adopt_fill(buffer, &req, composition);
	if (r) {
		buffer_give_to_node(buffer, &req);
		buffer_destroy(buffer);
		return r;
	}
	buffer->source = BUFFER_SOURCE_ADOPTED;
	/* Ids above are for ever out of reach of next_id. */
	buffer_register(buffer, id < UINT64_MAX / 2 ? id : 0);
	heap_count_alloc(buffer);
	*ret = buffer;
	return 0;
}
