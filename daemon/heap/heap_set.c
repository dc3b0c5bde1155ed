/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "heap/heap_private.h"
#include "heap/shrinker.h"

/*
 * Names and aliases of all heaps of a set are one name space. A set has few
 * heaps and is asked for one per request: a list is enough.
 */

static uint64_t set_shrinker_count(void *ctx)
{
	return shrinker_count(ctx);
}

static uint64_t set_shrinker_scan(void *ctx, uint64_t n_pages)
{
	return shrinker_scan(ctx, n_pages);
}

static const struct node_shrinker_ops set_shrinker_ops = {
	.count = set_shrinker_count,
	.scan = set_shrinker_scan,
};

int heap_set_new(struct heap_set **ret, struct node *node,
		 const struct heap_set_ops *ops, void *ctx)
{
	struct node_page_counts counts;
	struct heap_set *set;
	int r;

	set = calloc(1, sizeof(*set));
	if (!set)
		return err_raise(-ENOMEM);
	node_page_counts(node, &counts);
	set->node = node;
	set->ops = ops;
	set->ctx = ctx;
	set->page_size_bytes = node_params(node)->page_size_bytes;
	set->n_node_pages = counts.total_pages;
	set->next_id = 1;
	list_init(&set->heaps);
	list_init(&set->buffers);
	kvalloc_init(&set->kv, node, KVALLOC_CONTIGUOUS_FIRST);
	r = metadata_init(set);
	if (r) {
		metadata_fini(set);
		free(set);
		return err_trace(r);
	}
	node_set_shrinker(node, &set_shrinker_ops, set);
	*ret = set;
	return 0;
}

static void heap_free(struct heap *heap)
{
	list_remove(&heap->set_link);
	(void)heap_pools_give_back(heap, UINT64_MAX);
	for (unsigned int order = 0; order < POLICY_ORDER_COUNT; order++)
		page_pool_fini(&heap->pools[order]);
	free(heap);
}

struct heap_set *heap_set_free(struct heap_set *set)
{
	if (!set)
		return NULL;
	node_set_shrinker(set->node, NULL, NULL);
	set->ops = NULL;
	list_for_each_safe(pos, &set->buffers)
	{
		struct buffer *buffer =
			list_entry(pos, struct buffer, set_link);

		if (buffer->state == BUFFER_PARKED)
			continue; /* goes with its heap's pools */
		if (buffer->state == BUFFER_LIVE)
			heap_release(buffer->heap, buffer);
		buffer_give_to_node(buffer, NULL);
		buffer_destroy(buffer);
	}
	list_for_each_safe(pos, &set->heaps)
		heap_free(list_entry(pos, struct heap, set_link));
	kvalloc_fini(&set->kv);
	metadata_fini(set);
	free(set);
	return NULL;
}

/* Return: true if @name is a word of @list, which blanks separate. */
static bool list_has_name(const char *list, const char *name)
{
	size_t len = strlen(name);

	while (*list) {
		size_t n = strcspn(list, " ");

		if (n == len && !memcmp(list, name, n))
			return true;
		list += n + strspn(list + n, " ");
	}
	return false;
}

struct heap *heap_set_find(struct heap_set *set, const char *name)
{
	if (!*name)
		return NULL;
	list_for_each(pos, &set->heaps)
	{
		struct heap *heap = list_entry(pos, struct heap, set_link);

		if (!strcmp(heap->name, name) ||
		    list_has_name(heap->aliases, name))
			return heap;
	}
	return NULL;
}

struct heap *heap_set_get(struct heap_set *set, unsigned int i)
{
	list_for_each(pos, &set->heaps)
	{
		if (i-- == 0)
			return list_entry(pos, struct heap, set_link);
	}
	return NULL;
}

struct buffer *heap_set_next_buffer(struct heap_set *set, uint64_t after_id)
{
	list_for_each(pos, &set->buffers)
	{
		struct buffer *buffer =
			list_entry(pos, struct buffer, set_link);

		if (buffer->id > after_id)
			return buffer;
	}
	return NULL;
}

struct buffer *heap_set_buffer_after(const struct heap_set *set,
				     const struct buffer *buffer)
{
	struct list_node *next = buffer->set_link.next;

	return next == &set->buffers
		       ? NULL
		       : list_entry(next, struct buffer, set_link);
}

static bool name_is_valid(const char *name, size_t len)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789._,-";

	/* A name becomes a file name below /dev/dma_heap. */
	return len > 0 && len < HEAP_NAME_BYTES && name[0] != '.' &&
	       strspn(name, allowed) >= len;
}

/* Copies the valid, unused names of @aliases with single blanks between. */
static int take_aliases(struct heap *heap, struct heap_set *set,
			const char *aliases)
{
	size_t used = 0;

	while (*(aliases += strspn(aliases, " \t"))) {
		size_t len = strcspn(aliases, " \t");
		char word[HEAP_NAME_BYTES];

		if (!name_is_valid(aliases, len) ||
		    used + len + 2 > sizeof(heap->aliases))
			return HEAP_E_BAD_NAME;
		memcpy(word, aliases, len);
		word[len] = '\0';
		if (!strcmp(word, heap->name) || heap_set_find(set, word) ||
		    list_has_name(heap->aliases, word))
			return HEAP_E_EXISTS;
		used += (size_t)snprintf(heap->aliases + used,
					 sizeof(heap->aliases) - used, "%s%s",
					 used ? " " : "", word);
		aliases += len;
	}
	return 0;
}

int heap_new(struct heap **ret, struct heap_set *set,
	     const struct heap_params *params)
{
	struct heap *heap;
	int r;

	if (!name_is_valid(params->name, strlen(params->name)))
		return HEAP_E_BAD_NAME;
	if (heap_set_find(set, params->name))
		return HEAP_E_EXISTS;
	heap = calloc(1, sizeof(*heap));
	if (!heap)
		return err_raise(-ENOMEM);
	(void)snprintf(heap->name, sizeof(heap->name), "%s", params->name);
	r = params->aliases ? take_aliases(heap, set, params->aliases) : 0;
	if (r) {
		free(heap);
		return r;
	}
	heap->set = set;
	heap->flags = params->flags;
	heap->policy = *params->policy;
	for (unsigned int order = 0; order < POLICY_ORDER_COUNT; order++)
		page_pool_init(&heap->pools[order]);
	list_init(&heap->parked);
	for (unsigned int i = 0; i < HEAP_PARKED_BUCKETS; i++)
		list_init(&heap->parked_by_size[i]);
	list_add_tail(&set->heaps, &heap->set_link);
	*ret = heap;
	return 0;
}

bool heap_set_above_low(const struct heap_set *set)
{
	struct node_level level;

	node_level(set->node, &level);
	return level.free_pages > level.wmark_low_pages;
}

bool heap_set_above_high(const struct heap_set *set, uint64_t n_pages)
{
	struct node_level level;

	node_level(set->node, &level);
	return level.free_pages > level.wmark_high_pages + n_pages;
}

uint64_t heap_set_pages(const struct heap_set *set)
{
	uint64_t pages = set->kv.n_pages + set->n_metadata_pages;

	list_for_each(pos, &set->buffers) pages +=
		list_entry(pos, struct buffer, set_link)->len_bytes /
		set->page_size_bytes;
	list_for_each(pos, &set->heaps)
	{
		const struct heap *heap =
			list_entry(pos, struct heap, set_link);

		for (unsigned int o = 0; o < POLICY_ORDER_COUNT; o++)
			pages += (uint64_t)heap->pools[o].n_blocks << o;
	}
	return pages;
}
