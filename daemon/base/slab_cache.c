/* SPDX-License-Identifier: MIT */
#include "base/slab_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/pages.h"

#define FRONT_BATCH_DEFAULT 16u
#define FRONT_BATCH_MAX     256u
#define FRONTS_MAX          256u
#define TABLE_SIZE_FIRST    64u

static bool malloc_instead;

void slab_use_malloc(bool on)
{
	malloc_instead = on;
}

static void *default_pages_alloc(void *ctx, unsigned int order,
				 uint64_t *ret_cookie)
{
	(void)ctx;
	*ret_cookie = 0;
	return pages_alloc(order);
}

static void default_pages_free(void *ctx, void *pages, unsigned int order,
			       uint64_t cookie)
{
	(void)ctx;
	(void)cookie;
	pages_free(pages, order);
}

static const struct slab_page_ops default_page_ops = {
	.alloc = default_pages_alloc,
	.free = default_pages_free,
};

static int check_params(const char *name, const struct slab_params *params)
{
	size_t len = strlen(name), align = params->align_bytes;

	if (len == 0 || len >= SLAB_NAME_MAX_BYTES || strchr(name, ' '))
		return -EINVAL;
	if (params->size_bytes == 0 || params->order > SLAB_ORDER_MAX)
		return -EINVAL;
	if (align && (!is_power_of_2(align) || align > SLAB_PAGE_BYTES))
		return -EINVAL;
	if (params->size_bytes > (size_t)SLAB_PAGE_BYTES << params->order)
		return -EINVAL;
	if (params->front_batch > FRONT_BATCH_MAX ||
	    params->n_fronts > FRONTS_MAX)
		return -EINVAL;
	return 0;
}

static bool wants_debug(enum slab_debug debug)
{
#ifdef DMAHEAP_DEBUG
	return debug != SLAB_DEBUG_OFF;
#else
	return debug == SLAB_DEBUG_ON;
#endif
}

static unsigned int slab_capacity(const struct slab_cache *cache)
{
	return (unsigned int)(((size_t)SLAB_PAGE_BYTES << cache->order) /
			      cache->stride_bytes);
}

static int lay_out(struct slab_cache *cache, const struct slab_params *params)
{
	size_t align = MAX(params->align_bytes, sizeof(void *));
	size_t bytes = MAX(params->size_bytes, sizeof(void *));

	cache->size_bytes = params->size_bytes;
	cache->align_bytes = align;
	cache->order = params->order;
	cache->debug = wants_debug(params->debug);
	if (cache->debug)
		bytes += slab_debug_extra_bytes(bytes, &cache->link_offset);
	cache->stride_bytes = align_up(bytes, align);
	while (slab_capacity(cache) < params->n_per_slab &&
	       cache->order < SLAB_ORDER_MAX)
		cache->order++;
	cache->slab_bytes = (size_t)SLAB_PAGE_BYTES << cache->order;
	cache->objects_per_slab =
		params->n_per_slab ? params->n_per_slab : slab_capacity(cache);
	if (cache->objects_per_slab == 0 ||
	    cache->objects_per_slab > slab_capacity(cache))
		return -EINVAL;
	return 0;
}

static int make_fronts(struct slab_cache *cache,
		       const struct slab_params *params)
{
	size_t bytes;

	cache->front_batch =
		params->front_batch ? params->front_batch : FRONT_BATCH_DEFAULT;
	bytes = sizeof(struct slab_front) +
		2 * cache->front_batch * sizeof(void *);
	cache->front_bytes = align_up(bytes, SLAB_CACHE_LINE_BYTES);
	if (params->n_fronts == 0)
		return 0;
	bytes = params->n_fronts * cache->front_bytes;
	cache->fronts = aligned_alloc(SLAB_CACHE_LINE_BYTES, bytes);
	if (!cache->fronts)
		return -ENOMEM;
	memset(cache->fronts, 0, bytes);
	cache->n_fronts = params->n_fronts;
	return 0;
}

static int make_lock(struct slab_cache *cache)
{
	pthread_mutex_t *lock = malloc(sizeof(*lock));
	int r;

	if (!lock)
		return -ENOMEM;
	r = pthread_mutex_init(lock, NULL);
	if (r) {
		free(lock);
		return -r;
	}
	cache->lock = lock;
	return 0;
}

void slab_cache_enlist(struct slab_cache *cache, struct slab_registry *registry)
{
	if (!registry)
		return;
	assert(!cache->registry);
	pthread_mutex_lock(&registry->lock);
	cache->registry = registry;
	list_add_tail(&registry->caches, &cache->registry_link);
	pthread_mutex_unlock(&registry->lock);
}

static void delist(struct slab_cache *cache)
{
	if (!cache->registry)
		return;
	pthread_mutex_lock(&cache->registry->lock);
	list_remove(&cache->registry_link);
	pthread_mutex_unlock(&cache->registry->lock);
}

int slab_cache_new(struct slab_cache **ret, const char *name,
		   const struct slab_params *params)
{
	_cleanup_(slab_cache_freep) struct slab_cache *cache = NULL;
	int r = check_params(name, params);

	if (r)
		return r;
	cache = calloc(1, sizeof(*cache));
	if (!cache)
		return -ENOMEM;
	list_init(&cache->full);
	list_init(&cache->partial);
	list_init(&cache->free);
	memcpy(cache->name, name, strlen(name) + 1);
	cache->page_ops =
		params->page_ops.alloc ? params->page_ops : default_page_ops;
	cache->n_keep_free = params->n_keep_free;
	cache->uses_malloc = malloc_instead;
	r = lay_out(cache, params);
	if (r)
		return r;
	cache->table_size = TABLE_SIZE_FIRST;
	cache->table = calloc(cache->table_size, sizeof(struct slab *));
	if (!cache->table)
		return -ENOMEM;
	r = make_fronts(cache, params);
	if (r == 0)
		r = make_lock(cache);
	if (r)
		return r;
	slab_cache_enlist(cache, params->registry);
	*ret = TAKE_PTR(cache);
	return 0;
}

struct slab_cache *slab_cache_free(struct slab_cache *cache)
{
	if (!cache)
		return NULL;
	delist(cache);
	slab_flush_fronts(cache);
	/* every object is back */
	assert(cache->n_taken == 0 && cache->n_malloced == 0);
	list_for_each_safe(node, &cache->free)
		slab_destroy(cache, list_entry(node, struct slab, link));
	if (cache->lock) {
		pthread_mutex_destroy(cache->lock);
		free(cache->lock);
	}
	free(cache->table);
	free(cache->fronts);
	free(cache);
	return NULL;
}
