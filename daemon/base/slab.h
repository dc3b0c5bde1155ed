/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Caches of fixed-size objects: each cache carves slabs of a power of two of
 * pages into objects of one size, as mm/slub.c does, with its bookkeeping
 * outside of the slabs, so that 13 objects of 312 bytes fit a page.
 *
 * Units:     *_bytes; order is log2 of pages of SLAB_PAGE_BYTES; a front is a
 *            small stack of free objects that belongs to one worker.
 * Ownership: a cache owns its slabs and returns every page on
 *            slab_cache_free(), which needs all objects back (asserted). A
 *            cache must go before its registry.
 * Threads:   slab_alloc() and slab_free() with different fronts may run at
 *            once; one front is used by one thread at a time, SLAB_NO_FRONT by
 *            any. Statistics may be read at any time. slab_shrink() and
 *            slab_check() need that no other thread uses the cache's fronts.
 *
 * Debugging (params.debug): a red zone follows each object, free objects are
 * filled with poison, and both are verified on alloc and free; objects become
 * larger by it. With n_per_slab it is the slabs that become larger: their
 * number, and so the calls for pages, are the same with and without debugging.
 * A violation is a caller's bug: a message, then abort().
 */

#include "base/base.h"
#include "base/strbuf.h"

#define SLAB_PAGE_BYTES       4096u
#define SLAB_CACHE_LINE_BYTES 64u
#define SLAB_ORDER_MAX        5u
#define SLAB_NO_FRONT         UINT32_MAX
#define SLAB_NAME_MAX_BYTES   32u

/*
 * Where slabs come from. alloc() returns 2^@order pages aligned to their own
 * size, or NULL when there are none; @ret_cookie is the callback's own, given
 * back to free(). alloc() may free objects of the cache, as reclaim does, if
 * the cache has no fronts; free() runs under the cache's lock and may not.
 */
struct slab_page_ops {
	void *(*alloc)(void *ctx, unsigned int order, uint64_t *ret_cookie);
	void (*free)(void *ctx, void *pages, unsigned int order,
		     uint64_t cookie);
	void *ctx;
};

enum slab_debug {
	SLAB_DEBUG_DEFAULT, /* on in debug builds */
	SLAB_DEBUG_OFF,
	SLAB_DEBUG_ON,
};

struct slab_registry;
struct slab_cache;

struct slab_params {
	size_t size_bytes;        /* of an object, > 0 */
	size_t align_bytes;       /* power of two; 0: that of a pointer */
	unsigned int order;       /* of a slab, <= SLAB_ORDER_MAX */
	unsigned int n_per_slab;  /* exactly; 0: as many as fit */
	unsigned int n_fronts;    /* 0: every call takes the lock */
	unsigned int front_batch; /* objects moved at once; 0: 16 */
	unsigned int n_keep_free; /* empty slabs kept for the next time */
	enum slab_debug debug;
	struct slab_page_ops page_ops;  /* alloc NULL: pages.h */
	struct slab_registry *registry; /* where it is listed, or NULL */
};

/* A list of caches, for slab_render_slabinfo(). Return: 0 or -ENOMEM. */
int slab_registry_new(struct slab_registry **ret) _must_check_;
/* Return: NULL, always. May be NULL; asserts that no cache is left. */
struct slab_registry *slab_registry_free(struct slab_registry *registry);
DEFINE_CLEANUP(struct slab_registry *, slab_registry_free);

/**
 * slab_cache_new() - create an empty cache
 * @name:       copied, at most SLAB_NAME_MAX_BYTES - 1 bytes, no blanks
 *
 * Return: 0, -EINVAL (a parameter out of range, or not even one object, or not
 * n_per_slab of them, fit a slab), -ENOMEM.
 */
int slab_cache_new(struct slab_cache **ret, const char *name,
		   const struct slab_params *params) _must_check_;

/* Return: NULL, always. @cache may be NULL. All objects must be back. */
struct slab_cache *slab_cache_free(struct slab_cache *cache);
DEFINE_CLEANUP(struct slab_cache *, slab_cache_free);

/* Lists a cache that was made without a registry; NULL: leaves it so. */
void slab_cache_enlist(struct slab_cache *cache,
		       struct slab_registry *registry);

/* Every cache made from now on hands out malloc()ed objects: for a comparison,
 * and for sanitizers, which then see each object. Pages are not called for. */
void slab_use_malloc(bool on);

/**
 * slab_alloc() - take one object, its content undefined
 * @front:      < n_fronts, or SLAB_NO_FRONT
 *
 * From the front if it holds one; else a batch moves from the slabs to the
 * front, of the fullest lists first: partial, free, a new slab.
 *
 * Return: the object, or NULL when the page callback had no pages.
 */
void *slab_alloc(struct slab_cache *cache, unsigned int front) _must_check_;

/* The same, filled with zero. */
void *slab_zalloc(struct slab_cache *cache, unsigned int front) _must_check_;

/* Gives one object back; @object may be NULL. */
void slab_free(struct slab_cache *cache, unsigned int front, void *object);

/**
 * slab_shrink() - give pages back
 *
 * Empties the fronts, frees every empty slab and sorts the partial ones by
 * fullness, so that the emptiest have a chance to become empty. Objects cannot
 * move: one live object keeps its slab.
 *
 * Return: the number of slabs freed.
 */
size_t slab_shrink(struct slab_cache *cache);

struct slab_stats {
	char name[SLAB_NAME_MAX_BYTES];
	size_t object_bytes; /* distance between two objects in a slab */
	unsigned int objects_per_slab;
	unsigned int pages_per_slab;
	uint64_t active_objects; /* in callers' hands */
	uint64_t front_objects;  /* free, in a front */
	uint64_t total_objects;  /* room in all slabs */
	uint64_t active_slabs;   /* with at least one object taken */
	uint64_t total_slabs;
	uint64_t total_bytes;                  /* of the slabs */
	uint64_t pages_allocated, pages_freed; /* slabs, ever, in pages */
};

void slab_cache_stats(const struct slab_cache *cache, struct slab_stats *ret);

/**
 * slab_occupancy() - how many slabs hold how many objects
 * @ret:        receives at [i] the number of slabs with i objects taken (those
 *              in fronts count as taken), for i up to objects_per_slab
 * @n:          entries of @ret, > objects_per_slab (asserted)
 */
void slab_occupancy(const struct slab_cache *cache, uint64_t *ret, size_t n);

/* Appends the text of /proc/slabinfo, version 2.1, in order of creation. */
void slab_render_slabinfo(const struct slab_registry *registry,
			  struct strbuf *sb);

/* Verifies every invariant. Return: true if the cache is consistent. */
bool slab_check(const struct slab_cache *cache);
