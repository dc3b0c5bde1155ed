/* SPDX-License-Identifier: MIT */
#include "heap/heap_private.h"

/*
 * A parked buffer keeps its blocks and, with its owner, its zeroed memory. It
 * is on heap::parked in the order of parking and in one bucket by uid and size;
 * its blocks count in page_pool::n_parked of their orders.
 */

static struct list_node *parked_bucket(struct heap *heap, uint32_t uid,
				       uint64_t len_bytes)
{
	uint64_t key = (len_bytes / heap->set->page_size_bytes) ^
		       ((uint64_t)uid << 32);

	/* Multiplicative hashing: the high bits are the mixed ones. */
	key *= UINT64_C(0x9e3779b97f4a7c15);
	return &heap->parked_by_size[(key >> 32) % HEAP_PARKED_BUCKETS];
}

static void parked_count(struct buffer *buffer, int sign)
{
	struct heap *heap = buffer->heap;

	for (unsigned int order = 0; order < POLICY_ORDER_COUNT; order++) {
		uint32_t n = buffer->composition[order];

		if (sign > 0)
			heap->pools[order].n_parked += n;
		else
			heap->pools[order].n_parked -= n;
	}
	if (sign > 0) {
		heap->stats.parked_buffers++;
		heap->stats.parked_bytes += buffer->len_bytes;
	} else {
		heap->stats.parked_buffers--;
		heap->stats.parked_bytes -= buffer->len_bytes;
	}
}

static void parked_remove(struct buffer *buffer)
{
	assert(buffer->state == BUFFER_PARKED);
	parked_count(buffer, -1);
	list_remove(&buffer->park_link);
	list_remove(&buffer->bucket_link);
}

void parked_break_up(struct buffer *buffer, enum parked_to to)
{
	struct heap *heap;
	struct heap_set *set;

	assert(buffer);
	heap = buffer->heap;
	set = heap->set;
	parked_remove(buffer);
	if (set->ops && set->ops->unpark)
		set->ops->unpark(set->ctx, buffer);
	if (to == PARKED_TO_POOLS)
		buffer_give_to_pools(buffer);
	else
		buffer_give_to_node(buffer, NULL);
	buffer_destroy(buffer);
}

struct buffer *parked_with_order(const struct heap *heap, unsigned int order)
{
	list_for_each(pos, &heap->parked)
	{
		struct buffer *buffer =
			list_entry(pos, struct buffer, park_link);

		if (buffer->composition[order])
			return buffer;
	}
	return NULL;
}

static bool parked_fits(const struct buffer *buffer)
{
	for (unsigned int order = 0; order < POLICY_ORDER_COUNT; order++) {
		uint32_t n = buffer->composition[order];

		if (n && n > heap_pool_limit_blocks(buffer->heap, order))
			return false;
	}
	return true;
}

/* Older blocks of @order leave until @n more have room. */
static void parked_make_room(struct heap *heap, unsigned int order, uint32_t n)
{
	struct page_pool *pool = &heap->pools[order];
	uint64_t limit = heap_pool_limit_blocks(heap, order);
	uint64_t pfn;

	while (page_pool_total(pool) + n > limit) {
		if (page_pool_pop(pool, &pfn))
			node_free_block(heap->set->node, NULL, pfn, order);
		else
			parked_break_up(parked_with_order(heap, order),
					PARKED_TO_NODE);
	}
}

/* Into its bucket, before those of its kind that are no better. */
static void parked_insert(struct buffer *buffer)
{
	struct list_node *bucket =
		parked_bucket(buffer->heap, buffer->uid, buffer->len_bytes);
	struct list_node *before = bucket->next;

	for (; before != bucket; before = before->next) {
		struct buffer *other =
			list_entry(before, struct buffer, bucket_link);

		if (other->uid == buffer->uid &&
		    other->len_bytes == buffer->len_bytes &&
		    composition_compare(other->composition,
					buffer->composition) <= 0)
			break;
	}
	list_add_tail(before, &buffer->bucket_link);
}

bool parked_add(struct buffer *buffer)
{
	struct heap *heap = buffer->heap;

	if (!parked_fits(buffer))
		return false;
	for (unsigned int order = 0; order < POLICY_ORDER_COUNT; order++) {
		if (buffer->composition[order])
			parked_make_room(heap, order,
					 buffer->composition[order]);
	}
	buffer->state = BUFFER_PARKED;
	list_add_tail(&heap->parked, &buffer->park_link);
	parked_insert(buffer);
	parked_count(buffer, +1);
	return true;
}

/*
 * The free lists give @n blocks of @order besides @taken_pages that the walk
 * has taken from them at larger orders.
 */
static uint64_t dry_run_node(const struct heap *heap, unsigned int order,
			     uint64_t n, uint64_t taken_pages)
{
	uint64_t taken = taken_pages >> order;
	uint64_t available =
		node_count_available(heap->set->node, order,
				     heap->policy.gfp[order], n + taken);

	return available > taken ? MIN(available - taken, n) : 0;
}

void heap_dry_run(const struct heap *heap, uint64_t n_pages,
		  uint32_t composition[POLICY_ORDER_COUNT])
{
	uint64_t taken_pages = 0;

	for (unsigned int order = 0; order < POLICY_ORDER_COUNT; order++)
		composition[order] = 0;
	for (uint32_t i = 0; i < heap->policy.n_steps; i++) {
		unsigned int order = heap->policy.order[i];
		uint64_t want = n_pages >> order;
		uint64_t pooled = page_pool_total(&heap->pools[order]);
		uint64_t before = composition[order];
		uint64_t got = before < pooled ? pooled - before : 0;
		uint64_t from_node;

		if (want == 0)
			continue;
		got = MIN(got, want);
		from_node = dry_run_node(heap, order, want - got, taken_pages);
		taken_pages += from_node << order;
		got += from_node;
		composition[order] += (uint32_t)got;
		n_pages -= got << order;
	}
}

struct buffer *heap_find_parked(struct heap *heap, uint32_t uid,
				uint64_t len_bytes)
{
	uint32_t page_size = heap->set->page_size_bytes;
	uint32_t other[POLICY_ORDER_COUNT];
	struct buffer *found = NULL;

	if (len_bytes == 0 || len_bytes > heap->set->n_node_pages * page_size)
		return NULL;
	len_bytes = align_up(len_bytes, page_size);
	list_for_each(pos, parked_bucket(heap, uid, len_bytes))
	{
		struct buffer *buffer =
			list_entry(pos, struct buffer, bucket_link);

		if (buffer->uid == uid && buffer->len_bytes == len_bytes) {
			found = buffer;
			break;
		}
	}
	if (!found)
		return NULL;
	heap_dry_run(heap, len_bytes / page_size, other);
	return composition_compare(other, found->composition) > 0 ? NULL
								  : found;
}

void heap_take_parked(struct heap *heap, struct buffer *buffer)
{
	assert(buffer->heap == heap);
	parked_remove(buffer);
	for (unsigned int order = 0; order < POLICY_ORDER_COUNT; order++) {
		heap->pools[order].hits += buffer->composition[order];
	}
	heap_count_alloc(buffer);
	objtrack_activate(heap->set->track, 0, heap->set->track_buffer,
			  (uintptr_t)buffer);
	buffer->state = BUFFER_LIVE;
	buffer->source = BUFFER_SOURCE_PARKED;
	buffer->name[0] = '\0';
}
