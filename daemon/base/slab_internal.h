/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What the files of the slab module share. Nobody else includes this.
 *
 * Units:     as in base/slab.h.
 * Ownership: as there; struct slab belongs to its cache's table.
 * Threads:   everything of a cache but its fronts is under cache->lock.
 */

#include <pthread.h>
#include <stdatomic.h>

#include "base/list.h"
#include "base/slab.h"

/* One slab, described outside of its own pages. */
struct slab {
	struct list_node link; /* slab_cache::full, partial or free */
	struct slab *table_next;
	char *base;
	void *free; /* first free object; each holds the next */
	unsigned int n_taken;
	uint64_t cookie;
};

/* A worker's stack of free objects. On cache lines of its own. */
struct slab_front {
	_Atomic uint32_t n; /* written by its worker, read by statistics */
	void *objects[];    /* 2 * slab_cache::front_batch */
};

struct slab_cache {
	char name[SLAB_NAME_MAX_BYTES];
	size_t size_bytes;
	size_t align_bytes;
	size_t stride_bytes;
	size_t slab_bytes;
	size_t link_offset; /* of the next-free pointer in a free object */
	unsigned int order;
	unsigned int objects_per_slab;
	bool debug;
	bool uses_malloc; /* then only n_malloced counts below */
	_Atomic uint64_t n_malloced;
	struct slab_page_ops page_ops;

	unsigned int n_fronts;
	unsigned int front_batch;
	size_t front_bytes;
	char *fronts;

	pthread_mutex_t *lock;
	struct list_node full, partial, free;
	unsigned int n_keep_free;
	uint64_t n_slabs, n_free_slabs, n_taken;
	uint64_t pages_allocated, pages_freed;
	struct slab **table; /* by address, chained */
	size_t table_size;   /* power of two */

	struct slab_registry *registry;
	struct list_node registry_link; /* slab_registry::caches */
};

struct slab_registry {
	pthread_mutex_t lock;
	struct list_node caches;
};

static inline struct slab_front *slab_front_of(const struct slab_cache *cache,
					       unsigned int i)
{
	assert(i < cache->n_fronts);
	return (struct slab_front *)(void *)(cache->fronts +
					     i * cache->front_bytes);
}

static inline uint32_t slab_front_count(const struct slab_front *front)
{
	return atomic_load_explicit(&front->n, memory_order_relaxed);
}

static inline void **slab_next_free(const struct slab_cache *cache,
				    void *object)
{
	return (void **)(void *)((char *)object + cache->link_offset);
}

/* Return: the slab whose pages hold @object, or NULL. Needs the lock. */
struct slab *slab_lookup(const struct slab_cache *cache, const void *object);

/* Gives an empty slab's pages back. Needs the lock. */
void slab_destroy(struct slab_cache *cache, struct slab *slab);

/* Gives all objects of all fronts back to their slabs. Needs the lock. */
void slab_flush_fronts(struct slab_cache *cache);

/* Debugging: extra bytes behind an object of @size_bytes. */
size_t slab_debug_extra_bytes(size_t size_bytes, size_t *ret_link_offset);
/* A free object becomes the caller's: verifies the poison. */
void slab_debug_take(const struct slab_cache *cache, void *object);
/* A caller's object becomes free: verifies the red zone, poisons. */
void slab_debug_give(const struct slab_cache *cache, void *object);
/* A new slab's object: poisons. */
void slab_debug_init(const struct slab_cache *cache, void *object);
/* Return: true if the object is as it has to be when free (or in use). */
bool slab_debug_is_free(const struct slab_cache *cache, const void *object);
bool slab_debug_is_in_use(const struct slab_cache *cache, const void *object);
