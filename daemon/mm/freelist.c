/* SPDX-License-Identifier: MIT */
#include "mm/freelist.h"

/* The @n lowest zones, highest first, each down to its mark. */
static uint32_t walk(struct task *task, struct node *node, unsigned int n,
		     const struct alloc_context *ac, unsigned int alloc_flags)
{
	while (n-- > 0) {
		uint32_t pfn = freelist_try_zone(task, &node->zones[n], ac,
						 alloc_flags);

		if (pfn != NO_PFN)
			return pfn;
	}
	return NO_PFN;
}

uint32_t freelist_walk(struct task *task, struct node *node, unsigned int n,
		       const struct alloc_context *ac, unsigned int alloc_flags)
{
	uint32_t pfn = walk(task, node, n, ac, alloc_flags);

	if (pfn == NO_PFN && (alloc_flags & ALLOC_NOFRAGMENT))
		pfn = walk(task, node, ac->highest_zone + 1, ac,
			   alloc_flags & ~ALLOC_NOFRAGMENT);
	return pfn;
}

enum node_fallback freelist_reason(const struct node *node,
				   const struct alloc_context *ac)
{
	for (unsigned int i = 0; i <= ac->highest_zone; i++)
		for (unsigned int mt = 0; mt < MT_COUNT; mt++)
			if (node->zones[i].free_mask[mt] >> ac->order)
				return NODE_FALLBACK_WATERMARK;
	return NODE_FALLBACK_NO_BLOCK;
}
