/* SPDX-License-Identifier: MIT */
#include "mm/watermark.h"

#define MIN_FREE_MIN_KIB     UINT64_C(128)
#define MIN_FREE_MAX_KIB     UINT64_C(262144)
#define WATERMARK_SCALE      10u  /* of 10 000: vm.watermark_scale_factor */
#define LOWMEM_RESERVE_RATIO 256u /* vm.lowmem_reserve_ratio, below Normal */

static uint64_t int_sqrt(uint64_t x)
{
	uint64_t root = 0;

	for (uint64_t bit = UINT64_C(1) << 31; bit; bit >>= 1)
		if ((root + bit) * (root + bit) <= x)
			root += bit;
	return root;
}

uint64_t watermark_min_free_bytes(uint64_t managed_bytes)
{
	uint64_t kib = int_sqrt((managed_bytes >> 10) * 16);

	return MIN(MAX(kib, MIN_FREE_MIN_KIB), MIN_FREE_MAX_KIB) << 10;
}

void watermark_setup(struct node *node, uint64_t min_free_bytes)
{
	uint64_t min_pages = min_free_bytes / node->params.page_size_bytes;
	uint64_t managed = 0;

	for (unsigned int i = 0; i < node->n_zones; i++)
		managed += node->zones[i].managed_pages;
	assert(managed > 0);
	for (unsigned int i = 0; i < node->n_zones; i++) {
		struct zone *zone = &node->zones[i];
		uint64_t own = zone->managed_pages;
		uint64_t min = min_pages * own / managed;
		uint64_t gap = MAX(min / 4, own * WATERMARK_SCALE / 10000);
		uint64_t above = 0;

		zone->wmark[WMARK_MIN] = (uint32_t)min;
		zone->wmark[WMARK_LOW] = (uint32_t)(min + gap);
		zone->wmark[WMARK_HIGH] = (uint32_t)(min + 2 * gap);
		zone->wmark_boost = 0;
		/* what requests that could go higher must leave here */
		for (unsigned int j = 0; j < node->n_zones; j++) {
			if (j > i)
				above += node->zones[j].managed_pages;
			zone->lowmem_reserve[j] =
				(uint32_t)(above / LOWMEM_RESERVE_RATIO);
		}
	}
}

struct contig {
	uint64_t free_pages;
	uint64_t free_blocks;
	uint64_t suitable_blocks; /* of @order, in blocks of it and above */
};

/* fill_contig_page_info() */
static struct contig contig_info(const struct zone *zone, unsigned int order)
{
	struct contig info = {0};

	for (unsigned int o = 0; o < NODE_ORDERS; o++) {
		uint64_t n = 0;

		for (unsigned int mt = 0; mt < MT_COUNT; mt++)
			n += zone->free_blocks[mt][o];
		info.free_blocks += n;
		info.free_pages += n << o;
		if (o >= order)
			info.suitable_blocks += n << (o - order);
	}
	return info;
}

int watermark_fragmentation_index(const struct zone *zone, unsigned int order)
{
	struct contig info = contig_info(zone, order);
	uint64_t wanted = UINT64_C(1) << order;

	if (info.free_blocks == 0)
		return 0;
	if (info.suitable_blocks > 0)
		return -1000;
	return (int)(1000 - (1000 + info.free_pages * 1000 / wanted) /
				    info.free_blocks);
}

int watermark_unusable_index(const struct zone *zone, unsigned int order)
{
	struct contig info = contig_info(zone, order);

	if (info.free_pages == 0)
		return 1000;
	return (int)((info.free_pages - (info.suitable_blocks << order)) *
		     1000 / info.free_pages);
}
