/* SPDX-License-Identifier: MIT */
#include "base/pages.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/list.h"

/*
 * A chunk of 64 pages is aligned to its own size, so that a page's address
 * tells its chunk; its first page holds the header. One empty chunk is kept,
 * the others go back.
 */
#define CHUNK_PAGES 64u
#define CHUNK_BYTES (CHUNK_PAGES * PAGES_BYTES)
#define ALL_USED    UINT64_MAX
#define HEADER      UINT64_C(1)

struct chunk {
	uint64_t used; /* a bit per page */
	struct list_node link;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct list_node with_room = {&with_room, &with_room};
static unsigned int n_empty;

static uint64_t group_mask(unsigned int order)
{
	return (UINT64_C(1) << (1u << order)) - 1;
}

/* Return: the first page of a free group, or 0: there is none. */
static unsigned int find_group(const struct chunk *chunk, unsigned int order)
{
	for (unsigned int i = 0; i < CHUNK_PAGES; i += 1u << order)
		if (!(chunk->used & group_mask(order) << i))
			return i;
	return 0;
}

static struct chunk *chunk_new(void)
{
	struct chunk *chunk = aligned_alloc(CHUNK_BYTES, CHUNK_BYTES);

	if (!chunk)
		return NULL;
	chunk->used = HEADER;
	list_init(&chunk->link);
	list_add_head(&with_room, &chunk->link);
	n_empty++;
	return chunk;
}

static void *take(struct chunk *chunk, unsigned int page, unsigned int order)
{
	n_empty -= chunk->used == HEADER;
	chunk->used |= group_mask(order) << page;
	if (chunk->used == ALL_USED)
		list_remove(&chunk->link);
	return (char *)chunk + (size_t)page * PAGES_BYTES;
}

static void *alloc_locked(unsigned int order)
{
	struct chunk *chunk;
	unsigned int page;

	list_for_each(pos, &with_room)
	{
		chunk = list_entry(pos, struct chunk, link);
		page = find_group(chunk, order);
		if (page)
			return take(chunk, page, order);
	}
	chunk = chunk_new();
	return chunk ? take(chunk, find_group(chunk, order), order) : NULL;
}

void *pages_alloc(unsigned int order)
{
	void *pages;

	assert(order <= PAGES_ORDER_MAX);
	pthread_mutex_lock(&lock);
	pages = alloc_locked(order);
	pthread_mutex_unlock(&lock);
	return pages;
}

static void free_locked(void *pages, unsigned int order)
{
	uintptr_t address = (uintptr_t)pages;
	struct chunk *chunk =
		(void *)(uintptr_t)align_down(address, CHUNK_BYTES);
	uint64_t mask = group_mask(order)
			<< (address - (uintptr_t)chunk) / PAGES_BYTES;

	assert((chunk->used & mask) == mask);
	if (chunk->used == ALL_USED)
		list_add_head(&with_room, &chunk->link);
	chunk->used &= ~mask;
	if (chunk->used != HEADER)
		return;
	if (n_empty > 0) {
		list_remove(&chunk->link);
		free(chunk);
	} else {
		n_empty++;
	}
}

void pages_free(void *pages, unsigned int order)
{
	if (!pages)
		return;
	pthread_mutex_lock(&lock);
	free_locked(pages, order);
	pthread_mutex_unlock(&lock);
}
