/* SPDX-License-Identifier: MIT */
#include "base/slab_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int slab_registry_new(struct slab_registry **ret)
{
	struct slab_registry *registry = calloc(1, sizeof(*registry));
	int r;

	if (!registry)
		return -ENOMEM;
	r = pthread_mutex_init(&registry->lock, NULL);
	if (r) {
		free(registry);
		return -r;
	}
	list_init(&registry->caches);
	*ret = registry;
	return 0;
}

struct slab_registry *slab_registry_free(struct slab_registry *registry)
{
	if (!registry)
		return NULL;
	assert(list_is_empty(&registry->caches));
	pthread_mutex_destroy(&registry->lock);
	free(registry);
	return NULL;
}

static uint64_t front_objects(const struct slab_cache *cache)
{
	uint64_t n = 0;

	for (unsigned int i = 0; i < cache->n_fronts; i++)
		n += slab_front_count(slab_front_of(cache, i));
	return n;
}

void slab_cache_stats(const struct slab_cache *cache, struct slab_stats *ret)
{
	struct slab_stats stats = {
		.object_bytes = cache->stride_bytes,
		.objects_per_slab = cache->objects_per_slab,
		.pages_per_slab = 1u << cache->order,
	};

	memcpy(stats.name, cache->name, sizeof(stats.name));
	pthread_mutex_lock(cache->lock);
	/* Fronts move meanwhile: their count may be a moment older or newer. */
	stats.front_objects = MIN(front_objects(cache), cache->n_taken);
	stats.active_objects = cache->n_taken - stats.front_objects +
			       atomic_load(&cache->n_malloced);
	stats.total_objects = cache->n_slabs * cache->objects_per_slab;
	stats.active_slabs = cache->n_slabs - cache->n_free_slabs;
	stats.total_slabs = cache->n_slabs;
	stats.total_bytes = cache->n_slabs * cache->slab_bytes;
	stats.pages_allocated = cache->pages_allocated;
	stats.pages_freed = cache->pages_freed;
	pthread_mutex_unlock(cache->lock);
	*ret = stats;
}

static void count_list(const struct list_node *head, uint64_t *ret)
{
	list_for_each(node, head)
		ret[list_entry(node, struct slab, link)->n_taken]++;
}

void slab_occupancy(const struct slab_cache *cache, uint64_t *ret, size_t n)
{
	assert(n > cache->objects_per_slab);

	memset(ret, 0, n * sizeof(*ret));
	pthread_mutex_lock(cache->lock);
	count_list(&cache->full, ret);
	count_list(&cache->partial, ret);
	count_list(&cache->free, ret);
	pthread_mutex_unlock(cache->lock);
}

static void render_cache(const struct slab_cache *cache, struct strbuf *sb)
{
	struct slab_stats s;

	slab_cache_stats(cache, &s);
	strbuf_append(sb, "%-17s %6llu %6llu %6zu %4u %4u", s.name,
		      (unsigned long long)s.active_objects,
		      (unsigned long long)s.total_objects, s.object_bytes,
		      s.objects_per_slab, s.pages_per_slab);
	strbuf_append(sb, " : tunables %4u %4u %4u", 2 * cache->front_batch,
		      cache->front_batch, cache->n_fronts);
	strbuf_append(sb, " : slabdata %6llu %6llu %6llu\n",
		      (unsigned long long)s.active_slabs,
		      (unsigned long long)s.total_slabs,
		      (unsigned long long)s.front_objects);
}

void slab_render_slabinfo(const struct slab_registry *registry,
			  struct strbuf *sb)
{
	/* const for the caller; the lock inside is taken all the same. */
	struct slab_registry *locked =
		(struct slab_registry *)(uintptr_t)registry;

	strbuf_append_string(sb, "slabinfo - version: 2.1\n"
				 "# name            <active_objs> <num_objs> "
				 "<objsize> <objperslab> <pagesperslab> : "
				 "tunables <limit> <batchcount> <sharedfactor> "
				 ": slabdata <active_slabs> <num_slabs> "
				 "<sharedavail>\n");
	pthread_mutex_lock(&locked->lock);
	list_for_each(node, &locked->caches)
		render_cache(list_entry(node, struct slab_cache, registry_link),
			     sb);
	pthread_mutex_unlock(&locked->lock);
}

/* Return: true if @object lies in @slab at a place where objects are. */
static bool is_object_of(const struct slab_cache *cache,
			 const struct slab *slab, const void *object)
{
	const char *p = object;

	return p >= slab->base && p < slab->base + cache->slab_bytes &&
	       (size_t)(p - slab->base) % cache->stride_bytes == 0;
}

/* Walks the chain of free objects, marking each. */
static bool check_chain(const struct slab_cache *cache, const struct slab *slab,
			bool *is_free)
{
	unsigned int n = 0;

	for (void *object = slab->free; object;
	     object = *slab_next_free(cache, object)) {
		size_t i;

		if (!is_object_of(cache, slab, object))
			return false;
		i = (size_t)((char *)object - slab->base) / cache->stride_bytes;
		if (is_free[i] ||
		    (cache->debug && !slab_debug_is_free(cache, object)))
			return false;
		is_free[i] = true;
		n++;
	}
	return n + slab->n_taken == cache->objects_per_slab;
}

static bool is_in_a_front(const struct slab_cache *cache, const void *object)
{
	for (unsigned int i = 0; i < cache->n_fronts; i++) {
		struct slab_front *front = slab_front_of(cache, i);

		for (uint32_t k = 0; k < slab_front_count(front); k++)
			if (front->objects[k] == object)
				return true;
	}
	return false;
}

/* Taken objects of a debugging cache are whole, wherever they are. */
static bool check_taken(const struct slab_cache *cache, const struct slab *slab,
			const bool *is_free)
{
	for (unsigned int i = 0; i < cache->objects_per_slab; i++) {
		const void *object = slab->base + i * cache->stride_bytes;

		if (is_free[i])
			continue;
		if (is_in_a_front(cache, object)
			    ? !slab_debug_is_free(cache, object)
			    : !slab_debug_is_in_use(cache, object))
			return false;
	}
	return true;
}

static bool check_slab(const struct slab_cache *cache, const struct slab *slab)
{
	bool is_free[(SLAB_PAGE_BYTES << SLAB_ORDER_MAX) / sizeof(void *)];

	memset(is_free, 0, cache->objects_per_slab * sizeof(is_free[0]));
	return slab_lookup(cache, slab->base) == slab &&
	       check_chain(cache, slab, is_free) &&
	       (!cache->debug || check_taken(cache, slab, is_free));
}

/* Return: true if each slab of the list is sound and belongs there. */
static bool check_list(const struct slab_cache *cache,
		       const struct list_node *head, unsigned int min_taken,
		       unsigned int max_taken, uint64_t *n_slabs,
		       uint64_t *n_taken)
{
	list_for_each(node, head)
	{
		const struct slab *slab = list_entry(node, struct slab, link);

		if (slab->n_taken < min_taken || slab->n_taken > max_taken ||
		    !check_slab(cache, slab))
			return false;
		++*n_slabs;
		*n_taken += slab->n_taken;
	}
	return true;
}

static bool check_fronts(const struct slab_cache *cache)
{
	for (unsigned int i = 0; i < cache->n_fronts; i++) {
		struct slab_front *front = slab_front_of(cache, i);
		uint32_t n = slab_front_count(front);

		if (n > 2 * cache->front_batch)
			return false;
		for (uint32_t k = 0; k < n; k++) {
			struct slab *slab =
				slab_lookup(cache, front->objects[k]);

			if (!slab ||
			    !is_object_of(cache, slab, front->objects[k]))
				return false;
		}
	}
	return front_objects(cache) <= cache->n_taken;
}

static bool check_locked(const struct slab_cache *cache)
{
	unsigned int per = cache->objects_per_slab;
	uint64_t n_slabs = 0, n_free_slabs = 0, n_taken = 0;

	if (!check_list(cache, &cache->full, per, per, &n_slabs, &n_taken) ||
	    !check_list(cache, &cache->partial, 1, per - 1, &n_slabs,
			&n_taken) ||
	    !check_list(cache, &cache->free, 0, 0, &n_free_slabs, &n_taken))
		return false;
	return n_slabs + n_free_slabs == cache->n_slabs &&
	       n_free_slabs == cache->n_free_slabs &&
	       n_taken == cache->n_taken && check_fronts(cache) &&
	       (cache->pages_allocated - cache->pages_freed) ==
		       cache->n_slabs << cache->order;
}

bool slab_check(const struct slab_cache *cache)
{
	bool ok;

	pthread_mutex_lock(cache->lock);
	ok = check_locked(cache);
	pthread_mutex_unlock(cache->lock);
	return ok;
}
