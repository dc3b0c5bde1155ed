/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Watermarks of a zone and what is judged by them.
 *
 * Units:     pages; indices of fragmentation in thousandths.
 * Ownership: nothing is kept.
 * Threads:   as the node.
 */

#include "mm/zone.h"

/* int_sqrt(lowmem_kbytes * 16) within 128 KiB..256 MiB, as
 * calculate_min_free_kbytes(). Return: bytes. */
uint64_t watermark_min_free_bytes(uint64_t managed_bytes);

/* __setup_per_zone_wmarks() and setup_per_zone_lowmem_reserve(). */
void watermark_setup(struct node *node, uint64_t min_free_bytes);

/**
 * watermark_ok() - __zone_watermark_ok()
 * @mark:           a mark, with or without boost as the caller decides
 * @highest_zone:   index of the highest zone that the request could use
 * @free_pages:     of the zone, or what they will be
 *
 * Return: true if a block of @order can be taken and @mark still holds.
 */
static inline bool watermark_ok(const struct zone *zone, unsigned int order,
				uint32_t mark, unsigned int highest_zone,
				uint32_t free_pages)
{
	/* the last page of the block must still be above the mark */
	if ((int64_t)free_pages - ((INT64_C(1) << order) - 1) <=
	    (int64_t)mark + zone->lowmem_reserve[highest_zone])
		return false;
	if (order == 0)
		return true;
	return (zone->free_mask[MT_UNMOVABLE] | zone->free_mask[MT_MOVABLE] |
		zone->free_mask[MT_RECLAIMABLE]) >>
		       order !=
	       0;
}

/* fragmentation_index(): 0 = for lack of memory, 1000 = by fragmentation,
 * -1000 = it would not fail. */
int watermark_fragmentation_index(const struct zone *zone, unsigned int order);

/* unusable_free_index(): share of the free pages that @order cannot use. */
int watermark_unusable_index(const struct zone *zone, unsigned int order);
