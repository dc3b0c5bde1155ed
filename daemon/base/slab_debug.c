/* SPDX-License-Identifier: MIT */
#include "base/slab_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * An object in a debugging cache:
 *
 *   object (size_bytes, up to a multiple of 8) | red zone | next-free pointer
 *
 * The red zone holds one of two values and so tells whether the object is free
 * or in use; a write past the object's end destroys it, a second free finds
 * the wrong one. While free the object is filled with POISON_FREE.
 */

#define RED_ZONE_FREE   UINT64_C(0xbb5ec0debb5ec0de)
#define RED_ZONE_IN_USE UINT64_C(0xcc5ec0decc5ec0de)
#define POISON_FREE     0x6e
#define POISON_NEW      0xa3 /* not zero: who reads it before writing sees it */

static size_t red_zone_offset(size_t size_bytes)
{
	return align_up(size_bytes, sizeof(uint64_t));
}

size_t slab_debug_extra_bytes(size_t size_bytes, size_t *ret_link_offset)
{
	size_t red_zone = red_zone_offset(size_bytes);

	*ret_link_offset = red_zone + sizeof(uint64_t);
	return *ret_link_offset + sizeof(void *) - size_bytes;
}

static size_t object_bytes(const struct slab_cache *cache)
{
	return MAX(cache->size_bytes, sizeof(void *));
}

static uint64_t *red_zone(const struct slab_cache *cache, const void *object)
{
	const char *zone =
		(const char *)object + red_zone_offset(object_bytes(cache));

	return (uint64_t *)(uintptr_t)zone;
}

static bool is_poisoned(const struct slab_cache *cache, const void *object)
{
	const unsigned char *bytes = object;

	for (size_t i = 0; i < cache->size_bytes; i++)
		if (bytes[i] != POISON_FREE)
			return false;
	return true;
}

static _Noreturn void complain(const struct slab_cache *cache,
			       const void *object, const char *what)
{
	fprintf(stderr, "slab %s: object %p: %s\n", cache->name, object, what);
	abort();
}

bool slab_debug_is_free(const struct slab_cache *cache, const void *object)
{
	return *red_zone(cache, object) == RED_ZONE_FREE &&
	       is_poisoned(cache, object);
}

bool slab_debug_is_in_use(const struct slab_cache *cache, const void *object)
{
	return *red_zone(cache, object) == RED_ZONE_IN_USE;
}

void slab_debug_init(const struct slab_cache *cache, void *object)
{
	memset(object, POISON_FREE, cache->size_bytes);
	*red_zone(cache, object) = RED_ZONE_FREE;
}

void slab_debug_take(const struct slab_cache *cache, void *object)
{
	if (*red_zone(cache, object) != RED_ZONE_FREE)
		complain(cache, object, "red zone overwritten while free");
	if (!is_poisoned(cache, object))
		complain(cache, object, "written to after it was freed");
	memset(object, POISON_NEW, cache->size_bytes);
	*red_zone(cache, object) = RED_ZONE_IN_USE;
}

void slab_debug_give(const struct slab_cache *cache, void *object)
{
	uint64_t zone = *red_zone(cache, object);

	if (zone == RED_ZONE_FREE)
		complain(cache, object, "freed twice");
	if (zone != RED_ZONE_IN_USE)
		complain(cache, object, "written past its end");
	slab_debug_init(cache, object);
}
