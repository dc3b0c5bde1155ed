/* SPDX-License-Identifier: MIT */
#include "heap/heap_private.h"

/*
 * The books: what each counter must be, computed again from the buffers.
 */

struct tally {
	uint64_t live_buffers;
	uint64_t live_bytes;
	uint64_t parked_buffers;
	uint64_t parked_bytes;
	uint64_t parked_blocks[POLICY_ORDER_COUNT];
};

static bool buffer_check(const struct buffer *buffer)
{
	uint32_t counted[POLICY_ORDER_COUNT] = {0};
	unsigned int last = POLICY_ORDER_COUNT;

	for (uint32_t i = 0; i < buffer->n_runs; i++) {
		const struct buffer_run *run = &buffer->runs[i];

		if (run->n_blocks == 0 || run->order > last ||
		    run->pfn & ((UINT32_C(1) << run->order) - 1))
			return false;
		last = run->order;
		counted[run->order] += run->n_blocks;
	}
	return composition_compare(counted, buffer->composition) == 0 &&
	       composition_bytes(counted, buffer->heap->set->page_size_bytes) ==
		       buffer->len_bytes;
}

static void tally_add(struct tally *tally, const struct buffer *buffer)
{
	if (buffer->state != BUFFER_PARKED) {
		tally->live_buffers++;
		tally->live_bytes += buffer->len_bytes;
		return;
	}
	tally->parked_buffers++;
	tally->parked_bytes += buffer->len_bytes;
	for (unsigned int order = 0; order < POLICY_ORDER_COUNT; order++)
		tally->parked_blocks[order] += buffer->composition[order];
}

static bool heap_check(const struct heap *heap)
{
	struct tally tally = {0};
	uint64_t on_list = 0, on_buckets = 0;

	list_for_each(pos, &heap->set->buffers)
	{
		const struct buffer *buffer =
			list_entry(pos, struct buffer, set_link);

		if (buffer->heap == heap)
			tally_add(&tally, buffer);
	}
	list_for_each(pos, &heap->parked) on_list++;
	for (unsigned int i = 0; i < HEAP_PARKED_BUCKETS; i++) {
		list_for_each(pos, &heap->parked_by_size[i]) on_buckets++;
	}
	for (unsigned int order = 0; order < POLICY_ORDER_COUNT; order++) {
		const struct page_pool *pool = &heap->pools[order];

		if (pool->n_parked != tally.parked_blocks[order] ||
		    page_pool_total(pool) > heap_pool_limit_blocks(heap, order))
			return false;
	}
	return tally.live_buffers == heap->stats.buffers &&
	       tally.live_bytes == heap->stats.bytes &&
	       tally.parked_buffers == heap->stats.parked_buffers &&
	       tally.parked_bytes == heap->stats.parked_bytes &&
	       on_list == tally.parked_buffers &&
	       on_buckets == tally.parked_buffers;
}

bool heap_set_check(const struct heap_set *set)
{
	struct node_page_counts counts;
	uint64_t last_id = 0, sum = 0;

	list_for_each(pos, &set->buffers)
	{
		const struct buffer *buffer =
			list_entry(pos, struct buffer, set_link);

		if (buffer->id <= last_id || buffer->id >= set->next_id ||
		    !buffer_check(buffer))
			return false;
		last_id = buffer->id;
	}
	list_for_each(pos, &set->heaps)
	{
		if (!heap_check(list_entry(pos, struct heap, set_link)))
			return false;
	}
	node_page_counts(set->node, &counts);
	for (unsigned int i = 0; i < NODE_OCCUPANTS; i++)
		sum += counts.occupant_pages[i];
	return kvalloc_check(&set->kv) && metadata_check(set) &&
	       counts.allocated_pages == heap_set_pages(set) &&
	       counts.free_pages + counts.reserved_pages +
			       counts.allocated_pages + sum ==
		       counts.total_pages &&
	       node_check(set->node, NULL);
}
