/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Objects of any size from slab caches of a few sizes, as kmalloc() takes them:
 * each request is served by the smallest class that is large enough.
 *
 * Units:     *_bytes.
 * Ownership: a set owns its caches; slab_classes_free() needs every object back
 *            (asserted). The caller remembers the size that it asked for.
 * Threads:   as slab_alloc() with SLAB_NO_FRONT: any thread at any time.
 *
 * Requests above SLAB_CLASS_MAX_BYTES go to malloc(), as large kmalloc() does
 * to the page allocator.
 */

#include "base/slab.h"

#define SLAB_CLASS_MAX_BYTES 8192u

struct slab_classes;

/**
 * slab_classes_new() - one cache per class
 * @params:     debug, n_keep_free, page_ops and registry are used
 *
 * Return: 0 or -ENOMEM.
 */
int slab_classes_new(struct slab_classes **ret,
		     const struct slab_params *params) _must_check_;

/* Return: NULL, always. @classes may be NULL. */
struct slab_classes *slab_classes_free(struct slab_classes *classes);
DEFINE_CLEANUP(struct slab_classes *, slab_classes_free);

/* Lists the caches of a set made without a registry. */
void slab_classes_enlist(struct slab_classes *classes,
			 struct slab_registry *registry);

/* Return: bytes of the class that serves @size_bytes; itself above the last. */
size_t slab_class_bytes(size_t size_bytes);

/**
 * slab_classes_resize() - allocate, resize or free, as realloc()
 * @old:        NULL, or an object of @old_bytes
 * @new_bytes:  0 frees
 *
 * Within one class the object stays where it is.
 *
 * Return: the object, or NULL (freed, or no memory: @old is untouched then).
 */
void *slab_classes_resize(struct slab_classes *classes, void *old,
			  size_t old_bytes, size_t new_bytes);

/* Statistics of the class that serves @size_bytes (<= SLAB_CLASS_MAX_BYTES). */
void slab_classes_stats(const struct slab_classes *classes, size_t size_bytes,
			struct slab_stats *ret);

/* Return: true if every cache is consistent. */
bool slab_classes_check(const struct slab_classes *classes);
