/* SPDX-License-Identifier: MIT */
#include "base/slab_class.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The classes of kmalloc(). */
static const uint16_t class_bytes[] = {8,   16,  32,   64,   96,   128, 192,
				       256, 512, 1024, 2048, 4096, 8192};

#define N_CLASSES       ARRAY_SIZE(class_bytes)
#define OBJECTS_WANTED  16u /* per slab: sets its order, as SLUB chooses it */
#define CLASS_ORDER_MAX 3u

struct slab_classes {
	struct slab_cache *cache[N_CLASSES];
};

/* Return: index of the class, N_CLASSES above the last. */
static size_t class_of(size_t bytes)
{
	size_t i = 0;

	while (i < N_CLASSES && class_bytes[i] < bytes)
		i++;
	return i;
}

size_t slab_class_bytes(size_t size_bytes)
{
	size_t i = class_of(size_bytes);

	return i < N_CLASSES ? class_bytes[i] : size_bytes;
}

static unsigned int order_of(size_t bytes)
{
	unsigned int order = 0;

	while (order < CLASS_ORDER_MAX &&
	       ((size_t)SLAB_PAGE_BYTES << order) / bytes < OBJECTS_WANTED)
		order++;
	return order;
}

int slab_classes_new(struct slab_classes **ret,
		     const struct slab_params *params)
{
	_cleanup_(slab_classes_freep) struct slab_classes *classes = NULL;

	classes = calloc(1, sizeof(*classes));
	if (!classes)
		return -ENOMEM;
	for (size_t i = 0; i < N_CLASSES; i++) {
		struct slab_params one = {
			.size_bytes = class_bytes[i],
			.order = order_of(class_bytes[i]),
			.n_keep_free = params->n_keep_free,
			.debug = params->debug,
			.page_ops = params->page_ops,
			.registry = params->registry,
		};
		char name[SLAB_NAME_MAX_BYTES];
		int r;

		(void)snprintf(name, sizeof(name), "size-%u", class_bytes[i]);
		r = slab_cache_new(&classes->cache[i], name, &one);
		if (r)
			return r;
	}
	*ret = TAKE_PTR(classes);
	return 0;
}

struct slab_classes *slab_classes_free(struct slab_classes *classes)
{
	if (!classes)
		return NULL;
	for (size_t i = 0; i < N_CLASSES; i++)
		slab_cache_free(classes->cache[i]);
	free(classes);
	return NULL;
}

void slab_classes_enlist(struct slab_classes *classes,
			 struct slab_registry *registry)
{
	for (size_t i = 0; i < N_CLASSES; i++)
		slab_cache_enlist(classes->cache[i], registry);
}

static void *take(struct slab_classes *classes, size_t bytes)
{
	size_t i = class_of(bytes);

	return i < N_CLASSES ? slab_alloc(classes->cache[i], SLAB_NO_FRONT)
			     : malloc(bytes);
}

static void give(struct slab_classes *classes, void *object, size_t bytes)
{
	size_t i = class_of(bytes);

	if (i < N_CLASSES)
		slab_free(classes->cache[i], SLAB_NO_FRONT, object);
	else
		free(object);
}

void *slab_classes_resize(struct slab_classes *classes, void *old,
			  size_t old_bytes, size_t new_bytes)
{
	void *object;

	if (new_bytes == 0) {
		if (old)
			give(classes, old, old_bytes);
		return NULL;
	}
	if (old && class_of(old_bytes) == class_of(new_bytes) &&
	    class_of(new_bytes) < N_CLASSES)
		return old;
	object = take(classes, new_bytes);
	if (object && old) {
		memcpy(object, old, MIN(old_bytes, new_bytes));
		give(classes, old, old_bytes);
	}
	return object;
}

void slab_classes_stats(const struct slab_classes *classes, size_t size_bytes,
			struct slab_stats *ret)
{
	size_t i = class_of(size_bytes);

	assert(i < N_CLASSES);
	slab_cache_stats(classes->cache[i], ret);
}

bool slab_classes_check(const struct slab_classes *classes)
{
	for (size_t i = 0; i < N_CLASSES; i++)
		if (!slab_check(classes->cache[i]))
			return false;
	return true;
}
