/* SPDX-License-Identifier: MIT */
#include "heap/shrinker.h"

#include "heap/heap_private.h"

uint64_t shrinker_count(const struct heap_set *set)
{
	uint64_t pages = 0;

	list_for_each(pos, &set->heaps) pages +=
		heap_pool_pages(list_entry(pos, struct heap, set_link));
	return pages;
}

uint64_t shrinker_scan(struct heap_set *set, uint64_t n_pages)
{
	uint64_t given = 0;

	list_for_each(pos, &set->heaps)
	{
		if (given >= n_pages)
			break;
		given += heap_pools_give_back(list_entry(pos, struct heap,
							 set_link),
					      n_pages - given);
	}
	return given;
}
