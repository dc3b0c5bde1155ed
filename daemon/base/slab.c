/* SPDX-License-Identifier: MIT */
#include "base/slab_internal.h"

#include <stdlib.h>
#include <string.h>

/*
 * A slab is on exactly one list, by how many of its objects are taken: all
 * (full), some (partial), none (free). Free objects of a slab are chained
 * through themselves. From an object's address the slab is found by rounding
 * down to the slab's size and looking that up in the table.
 *
 * "Taken" counts objects that left their slab, whether a caller has them or a
 * front keeps them.
 */

static size_t hash(const struct slab_cache *cache, const void *base)
{
	uint64_t number = (uintptr_t)base / cache->slab_bytes;

	return (size_t)(number * UINT64_C(0x9e3779b97f4a7c15) >> 32) &
	       (cache->table_size - 1);
}

static const void *base_of(const struct slab_cache *cache, const void *object)
{
	return (const char *)object - (uintptr_t)object % cache->slab_bytes;
}

struct slab *slab_lookup(const struct slab_cache *cache, const void *object)
{
	const void *base = base_of(cache, object);
	struct slab *slab = cache->table[hash(cache, base)];

	while (slab && slab->base != base)
		slab = slab->table_next;
	return slab;
}

static void table_insert(struct slab_cache *cache, struct slab *slab)
{
	struct slab **slot = &cache->table[hash(cache, slab->base)];

	slab->table_next = *slot;
	*slot = slab;
}

static void table_remove(struct slab_cache *cache, struct slab *slab)
{
	struct slab **slot = &cache->table[hash(cache, slab->base)];

	while (*slot != slab)
		slot = &(*slot)->table_next;
	*slot = slab->table_next;
}

/* Without memory the table stays as it is: slower, not wrong. */
static void table_grow(struct slab_cache *cache)
{
	size_t old_size = cache->table_size;
	struct slab **old = cache->table, **table;

	table = calloc(old_size * 2, sizeof(*table));
	if (!table)
		return;
	cache->table = table;
	cache->table_size = old_size * 2;
	for (size_t i = 0; i < old_size; i++) {
		for (struct slab *slab = old[i], *next; slab; slab = next) {
			next = slab->table_next;
			table_insert(cache, slab);
		}
	}
	free(old);
}

/* Chains all objects so that the lowest is taken first. */
static void chain_objects(const struct slab_cache *cache, struct slab *slab)
{
	slab->free = NULL;
	for (unsigned int i = cache->objects_per_slab; i-- > 0;) {
		void *object = slab->base + i * cache->stride_bytes;

		if (cache->debug)
			slab_debug_init(cache, object);
		*slab_next_free(cache, object) = slab->free;
		slab->free = object;
	}
}

/* Return: a new slab that is on no list yet, or NULL. Without the lock: getting
 * pages may free objects of this very cache. */
static struct slab *slab_create(struct slab_cache *cache)
{
	struct slab *slab = calloc(1, sizeof(*slab));

	if (!slab)
		return NULL;
	slab->base = cache->page_ops.alloc(cache->page_ops.ctx, cache->order,
					   &slab->cookie);
	if (!slab->base) {
		free(slab);
		return NULL;
	}
	assert((uintptr_t)slab->base % cache->slab_bytes == 0);
	chain_objects(cache, slab);
	return slab;
}

static void slab_insert(struct slab_cache *cache, struct slab *slab)
{
	if (cache->n_slabs >= cache->table_size)
		table_grow(cache);
	table_insert(cache, slab);
	list_add_head(&cache->free, &slab->link);
	cache->n_slabs++;
	cache->n_free_slabs++;
	cache->pages_allocated += UINT64_C(1) << cache->order;
}

void slab_destroy(struct slab_cache *cache, struct slab *slab)
{
	assert(slab->n_taken == 0);

	list_remove(&slab->link);
	table_remove(cache, slab);
	cache->n_slabs--;
	cache->n_free_slabs--;
	cache->pages_freed += UINT64_C(1) << cache->order;
	cache->page_ops.free(cache->page_ops.ctx, slab->base, cache->order,
			     slab->cookie);
	free(slab);
}

static void lock(const struct slab_cache *cache)
{
	int r = pthread_mutex_lock(cache->lock);

	assert(r == 0);
	(void)r;
}

static void unlock(const struct slab_cache *cache)
{
	int r = pthread_mutex_unlock(cache->lock);

	assert(r == 0);
	(void)r;
}

/* Return: a slab with a free object, or NULL when there are no pages. The lock
 * is given up while pages are fetched. */
static struct slab *slab_with_room(struct slab_cache *cache)
{
	for (;;) {
		struct list_node *node = list_first(&cache->partial);
		struct slab *slab;

		if (!node)
			node = list_first(&cache->free);
		if (node)
			return list_entry(node, struct slab, link);
		unlock(cache);
		slab = slab_create(cache);
		lock(cache);
		if (!slab)
			return NULL;
		slab_insert(cache, slab);
	}
}

static void *take_locked(struct slab_cache *cache)
{
	struct slab *slab = slab_with_room(cache);
	void *object;

	if (!slab)
		return NULL;
	object = slab->free;
	slab->free = *slab_next_free(cache, object);
	if (slab->n_taken++ == 0) {
		cache->n_free_slabs--;
		list_remove(&slab->link);
		list_add_head(&cache->partial, &slab->link);
	}
	if (slab->n_taken == cache->objects_per_slab) {
		list_remove(&slab->link);
		list_add_tail(&cache->full, &slab->link);
	}
	cache->n_taken++;
	return object;
}

static void give_locked(struct slab_cache *cache, void *object)
{
	struct slab *slab = slab_lookup(cache, object);

	assert(slab); /* else it is no object of this cache */
	assert((size_t)((char *)object - slab->base) % cache->stride_bytes ==
	       0);
	assert(slab->n_taken > 0);

	*slab_next_free(cache, object) = slab->free;
	slab->free = object;
	cache->n_taken--;
	if (slab->n_taken == cache->objects_per_slab) {
		list_remove(&slab->link);
		list_add_tail(&cache->partial, &slab->link);
	}
	if (--slab->n_taken > 0)
		return;
	list_remove(&slab->link);
	list_add_head(&cache->free, &slab->link);
	if (++cache->n_free_slabs > cache->n_keep_free)
		slab_destroy(cache, slab);
}

static void set_front_count(struct slab_front *front, uint32_t n)
{
	atomic_store_explicit(&front->n, n, memory_order_relaxed);
}

static void *take_direct(struct slab_cache *cache)
{
	void *object;

	lock(cache);
	object = take_locked(cache);
	unlock(cache);
	return object;
}

static void *take_from_front(struct slab_cache *cache, struct slab_front *front)
{
	uint32_t n = slab_front_count(front);

	if (n == 0) {
		lock(cache);
		for (; n < cache->front_batch; n++) {
			void *object = take_locked(cache);

			if (!object)
				break;
			front->objects[n] = object;
		}
		unlock(cache);
		if (n == 0)
			return NULL;
	}
	set_front_count(front, n - 1);
	return front->objects[n - 1];
}

/* Gives the @n_give oldest objects of the front back to their slabs. */
static void flush_locked(struct slab_cache *cache, struct slab_front *front,
			 uint32_t n_give)
{
	uint32_t n = slab_front_count(front);

	for (uint32_t i = 0; i < n_give; i++)
		give_locked(cache, front->objects[i]);
	memmove(front->objects, front->objects + n_give,
		(n - n_give) * sizeof(front->objects[0]));
	set_front_count(front, n - n_give);
}

static void give_to_front(struct slab_cache *cache, struct slab_front *front,
			  void *object)
{
	uint32_t n = slab_front_count(front);

	if (n == 2 * cache->front_batch) {
		lock(cache);
		flush_locked(cache, front, cache->front_batch);
		unlock(cache);
		n = slab_front_count(front);
	}
	front->objects[n] = object;
	set_front_count(front, n + 1);
}

static void *take_malloced(struct slab_cache *cache)
{
	size_t align = cache->align_bytes;
	void *object;

	object = align > _Alignof(max_align_t)
			 ? aligned_alloc(align,
					 align_up(cache->size_bytes, align))
			 : malloc(cache->size_bytes);
	if (object)
		atomic_fetch_add_explicit(&cache->n_malloced, 1,
					  memory_order_relaxed);
	return object;
}

static void give_malloced(struct slab_cache *cache, void *object)
{
	atomic_fetch_sub_explicit(&cache->n_malloced, 1, memory_order_relaxed);
	free(object);
}

void *slab_alloc(struct slab_cache *cache, unsigned int front)
{
	void *object;

	if (cache->uses_malloc)
		return take_malloced(cache);
	if (front == SLAB_NO_FRONT || cache->n_fronts == 0)
		object = take_direct(cache);
	else
		object = take_from_front(cache, slab_front_of(cache, front));
	if (object && cache->debug)
		slab_debug_take(cache, object);
	return object;
}

void *slab_zalloc(struct slab_cache *cache, unsigned int front)
{
	void *object = slab_alloc(cache, front);

	if (object)
		memset(object, 0, cache->size_bytes);
	return object;
}

void slab_free(struct slab_cache *cache, unsigned int front, void *object)
{
	if (!object)
		return;
	if (cache->uses_malloc) {
		give_malloced(cache, object);
		return;
	}
	if (cache->debug)
		slab_debug_give(cache, object);
	if (front == SLAB_NO_FRONT || cache->n_fronts == 0) {
		lock(cache);
		give_locked(cache, object);
		unlock(cache);
	} else {
		give_to_front(cache, slab_front_of(cache, front), object);
	}
}

/* Puts the fuller slabs first, by one bucket per number of objects taken. */
static void sort_partial(struct slab_cache *cache)
{
	for (unsigned int n = 1; n < cache->objects_per_slab; n++) {
		list_for_each_safe(node, &cache->partial)
		{
			struct slab *slab = list_entry(node, struct slab, link);

			if (slab->n_taken == n) {
				list_remove(&slab->link);
				list_add_head(&cache->partial, &slab->link);
			}
		}
	}
}

void slab_flush_fronts(struct slab_cache *cache)
{
	for (unsigned int i = 0; i < cache->n_fronts; i++) {
		struct slab_front *front = slab_front_of(cache, i);

		flush_locked(cache, front, slab_front_count(front));
	}
}

size_t slab_shrink(struct slab_cache *cache)
{
	uint64_t n_before;
	size_t n_freed;

	lock(cache);
	n_before = cache->n_slabs;
	slab_flush_fronts(cache);
	list_for_each_safe(node, &cache->free)
		slab_destroy(cache, list_entry(node, struct slab, link));
	sort_partial(cache);
	n_freed = (size_t)(n_before - cache->n_slabs);
	unlock(cache);
	return n_freed;
}
