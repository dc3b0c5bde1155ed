/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Fair queue: items wait in their source (a uid), and sources take turns, so
 * that one with a thousand items delays another's single one by one item.
 *
 * Ownership: items and sources are embedded in their owners; the queue owns
 *            nothing. An owner removes its item before it goes away.
 * Threads:   not locked.
 */

#include "base/base.h"
#include "base/list.h"

struct fair_source {
	struct list_node items;      /* fair_item::link, oldest first */
	struct list_node ready_link; /* fair_queue::ready, while items wait */
};

struct fair_item {
	struct list_node link; /* fair_source::items */
	struct fair_source *source;
};

struct fair_queue {
	struct list_node ready; /* fair_source::ready_link, next turn first */
};

static inline void fair_queue_init(struct fair_queue *queue)
{
	list_init(&queue->ready);
}

static inline bool fair_queue_is_empty(const struct fair_queue *queue)
{
	return list_is_empty(&queue->ready);
}

static inline void fair_source_init(struct fair_source *source)
{
	list_init(&source->items);
	list_init(&source->ready_link);
}

static inline bool fair_source_is_empty(const struct fair_source *source)
{
	return list_is_empty(&source->items);
}

static inline void fair_item_init(struct fair_item *item)
{
	list_init(&item->link);
	item->source = NULL;
}

/* Puts @item, which waits nowhere, at the end of @source's. */
static inline void fair_push(struct fair_queue *queue,
			     struct fair_source *source, struct fair_item *item)
{
	item->source = source;
	if (list_is_empty(&source->items))
		list_add_tail(&queue->ready, &source->ready_link);
	list_add_tail(&source->items, &item->link);
}

/* Takes @item out again; harmless when it waits nowhere. */
static inline void fair_remove(struct fair_item *item)
{
	if (!item->source)
		return;
	list_remove(&item->link);
	if (list_is_empty(&item->source->items))
		list_remove(&item->source->ready_link);
	item->source = NULL;
}

/* Return: the next item of the source whose turn it is, or NULL. */
static inline struct fair_item *fair_pop(struct fair_queue *queue)
{
	struct list_node *n = list_first(&queue->ready), *first;
	struct fair_source *source;
	struct fair_item *item;

	if (!n)
		return NULL;
	source = list_entry(n, struct fair_source, ready_link);
	first = list_first(&source->items);
	assert(first); /* only sources with items are ready */
	item = list_entry(first, struct fair_item, link);
	fair_remove(item);
	if (!list_is_empty(&source->items)) {
		list_remove(&source->ready_link);
		list_add_tail(&queue->ready, &source->ready_link);
	}
	return item;
}
