/* SPDX-License-Identifier: MIT */
#include "mm/snapshot.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "mm/snapshot_parse.h"

#define BLOCK_PAGES UINT64_C(512)
#define DMA_PAGES   UINT64_C(4096) /* ZONE_DMA of x86: 16 MiB */

static const struct snapshot_options no_options;

static int read_file(struct snapshot_work *w, const char *file,
		     const char *text, const struct snapshot_options *options,
		     int (*read)(struct snapshot_reader *,
				 struct snapshot_work *),
		     struct snapshot_error *err)
{
	struct snapshot_reader r = {
		.file = file,
		.next = text,
		.options = options,
		.err = err,
	};

	return text ? read(&r, w) : 0;
}

static int refuse(struct snapshot_error *err, const char *file,
		  const char *zone, const char *what)
{
	(void)snprintf(err->file, sizeof(err->file), "%s", file);
	err->line = 0;
	(void)snprintf(err->text, sizeof(err->text), "zone %s: %s", zone, what);
	return SNAPSHOT_E_INVALID;
}

/*
 * Free counts of the types. ">100000" is what buddyinfo has more than the other
 * types together. Without pagetypeinfo all is movable.
 */
static int settle_free(struct snapshot_work *w, unsigned int i,
		       struct snapshot_error *err)
{
	struct snapshot_zone *zone = &w->snap->zone[i];

	for (unsigned int o = 0; o < SNAPSHOT_ORDERS; o++) {
		uint64_t others = 0;
		int open = -1;

		if (!w->typed[i]) {
			zone->free[1][o] = w->buddyinfo[i][o];
			continue;
		}
		for (unsigned int mt = 0; mt < SNAPSHOT_TYPES; mt++) {
			if (!w->more[i][mt][o]) {
				others += zone->free[mt][o];
				continue;
			}
			if (open >= 0)
				return refuse(err, "pagetypeinfo", zone->name,
					      "two types of one order are "
					      "\">100000\"");
			open = (int)mt;
		}
		if (open < 0)
			continue;
		if (w->buddyinfo[i][o] < others)
			return refuse(err, "pagetypeinfo", zone->name,
				      "\">100000\" stands for the rest of "
				      "buddyinfo, which has less than the "
				      "other types");
		zone->free[open][o] = w->buddyinfo[i][o] - others;
	}
	return 0;
}

static uint64_t free_pages(const struct snapshot_zone *zone)
{
	uint64_t n = 0;

	for (unsigned int mt = 0; mt < SNAPSHOT_TYPES; mt++)
		for (unsigned int o = 0; o < SNAPSHOT_ORDERS; o++)
			n += zone->free[mt][o] << o;
	return n;
}

/* Size by pageblocks, else by zoneinfo. Return: false if neither is there. */
static bool span_from_texts(struct snapshot_work *w, unsigned int i)
{
	struct snapshot_zone *zone = &w->snap->zone[i];
	uint64_t blocks = 0;

	for (unsigned int mt = 0; mt < SNAPSHOT_TYPES; mt++)
		blocks += zone->pageblocks[mt];
	zone->span_pages = blocks ? blocks * BLOCK_PAGES
				  : align_up(w->present[i], BLOCK_PAGES);
	if (w->has_managed[i])
		zone->span_pages = MAX(zone->span_pages,
				       align_up(w->managed[i], BLOCK_PAGES));
	return zone->span_pages > 0;
}

/*
 * Sizes of zones that no text gave: the node's size, ZONE_DMA having 16 MiB and
 * the others shares by what is free in them.
 */
static int span_from_size(struct snapshot_work *w, uint64_t total,
			  struct snapshot_error *err)
{
	struct snapshot *snap = w->snap;
	uint64_t left = total, sum = 0;

	if (total == 0)
		return refuse(err, "buddyinfo", snap->zone[0].name,
			      "its size is not known; give pagetypeinfo, "
			      "zoneinfo, meminfo or the key size");
	for (unsigned int i = 0; i < snap->n_zones; i++) {
		struct snapshot_zone *zone = &snap->zone[i];

		if (strcmp(zone->name, "DMA") == 0 && snap->n_zones > 1) {
			zone->span_pages = MIN(DMA_PAGES, left);
			left -= zone->span_pages;
		} else {
			sum += free_pages(zone) + 1;
		}
	}
	for (unsigned int i = 0; i < snap->n_zones; i++) {
		struct snapshot_zone *zone = &snap->zone[i];

		if (zone->span_pages == 0)
			zone->span_pages =
				align_up(left * (free_pages(zone) + 1) / sum,
					 BLOCK_PAGES);
		if (zone->span_pages < free_pages(zone))
			return refuse(err, "buddyinfo", zone->name,
				      "more is free than the size has room "
				      "for");
	}
	return 0;
}

/*
 * How many frames of a zone were never managed, of @reserved in all: the
 * frames' own descriptors (struct page, 64 bytes each) come from the top of
 * memory, swiotlb's 64 MiB from the top of DMA32 where memory lies above 4 GiB;
 * the rest is shared out by size.
 */
static void share_reserved(const struct snapshot *snap, uint64_t reserved,
			   uint64_t ret[SNAPSHOT_ZONES_MAX])
{
	unsigned int top = snap->n_zones - 1;
	uint64_t span = 0, left, n;

	for (unsigned int i = 0; i < snap->n_zones; i++)
		span += snap->zone[i].span_pages;
	n = MIN(reserved,
		span * SNAPSHOT_STRUCT_PAGE_BYTES / snap->page_size_bytes);
	ret[top] = n;
	left = reserved - n;
	for (unsigned int i = 0; i < top; i++) {
		if (strcmp(snap->zone[i].name, "DMA32") != 0)
			continue;
		n = MIN(left, SNAPSHOT_SWIOTLB_BYTES / snap->page_size_bytes);
		ret[i] = n;
		left -= n;
	}
	for (unsigned int i = 0; i < snap->n_zones; i++)
		ret[i] += left * snap->zone[i].span_pages / span;
}

/* managed pages: zoneinfo's; else without its part of what MemTotal lacks, but
 * never less than is free; ZONE_DMA is taken as unused. */
static void settle_managed(struct snapshot_work *w)
{
	struct snapshot *snap = w->snap;
	uint64_t sum = 0, reserved[SNAPSHOT_ZONES_MAX] = {0};

	for (unsigned int i = 0; i < snap->n_zones; i++) {
		struct snapshot_zone *zone = &snap->zone[i];
		bool dma = strcmp(zone->name, "DMA") == 0 && snap->n_zones > 1;

		zone->managed_pages = w->has_managed[i] ? w->managed[i]
				      : dma             ? free_pages(zone)
							: zone->span_pages;
		sum += zone->managed_pages;
	}
	if (snap->total_pages == SNAPSHOT_UNKNOWN || sum <= snap->total_pages)
		return;
	share_reserved(snap, sum - snap->total_pages, reserved);
	for (unsigned int i = 0; i < snap->n_zones; i++) {
		struct snapshot_zone *zone = &snap->zone[i];
		uint64_t used = zone->span_pages -
				MIN(zone->span_pages, free_pages(zone));

		if (!w->has_managed[i] &&
		    zone->managed_pages == zone->span_pages)
			zone->managed_pages -= MIN(used, reserved[i]);
	}
}

/*
 * The hole between a zone's frames and the next zone's: what zoneinfo's spanned
 * has more than present. Without zoneinfo DMA32, if memory goes on above it,
 * ends where its devices' reach ends, at 4 GiB.
 */
static void settle_holes(struct snapshot_work *w)
{
	struct snapshot *snap = w->snap;
	uint64_t start = 0, end = GIB(4) / snap->page_size_bytes;

	for (unsigned int i = 0; i < snap->n_zones; i++) {
		struct snapshot_zone *zone = &snap->zone[i];

		if (w->spanned[i] > w->present[i])
			zone->hole_pages =
				align_down(w->spanned[i] - w->present[i],
					   BLOCK_PAGES);
		start += align_up(zone->span_pages, BLOCK_PAGES * 2);
		if (w->spanned[i] == 0 && i + 1 < snap->n_zones &&
		    strcmp(zone->name, "DMA32") == 0 && start < end)
			zone->hole_pages = end - start;
	}
}

static int settle(struct snapshot_work *w,
		  const struct snapshot_options *options,
		  struct snapshot_error *err)
{
	struct snapshot *snap = w->snap;
	uint64_t size = options->size_bytes / snap->page_size_bytes;
	bool known = true;
	int r;

	for (unsigned int i = 0; i < snap->n_zones; i++) {
		r = settle_free(w, i, err);
		if (r)
			return r;
		known &= span_from_texts(w, i);
	}
	if (!known) {
		if (size == 0 && snap->total_pages != SNAPSHOT_UNKNOWN)
			size = snap->total_pages;
		for (unsigned int i = 0; i < snap->n_zones; i++)
			snap->zone[i].span_pages = 0;
		r = span_from_size(w, size, err);
		if (r)
			return r;
	}
	settle_managed(w);
	settle_holes(w);
	for (unsigned int i = 0; i < snap->n_zones; i++)
		snap->zone[i].pcp_pages =
			w->has_pcp[i] ? w->pcp[i] : SNAPSHOT_UNKNOWN;
	for (unsigned int i = 0; i < snap->n_zones; i++)
		if (free_pages(&snap->zone[i]) > snap->zone[i].managed_pages ||
		    snap->zone[i].managed_pages > snap->zone[i].span_pages)
			return refuse(err, "buddyinfo", snap->zone[i].name,
				      "more pages are free than it has");
	return 0;
}

int snapshot_parse(struct snapshot **ret, const struct snapshot_texts *texts,
		   const struct snapshot_options *options,
		   struct snapshot_error *err)
{
	_cleanup_(snapshot_freep) struct snapshot *snap = NULL;
	struct snapshot_work *w;
	int r;

	if (!options)
		options = &no_options;
	if (!texts->buddyinfo) {
		*err = (struct snapshot_error){.file = "buddyinfo",
					       .text = "is needed"};
		return SNAPSHOT_E_INVALID;
	}
	snap = calloc(1, sizeof(*snap));
	w = calloc(1, sizeof(*w));
	if (!snap || !w) {
		free(w);
		return err_raise(-ENOMEM);
	}
	w->snap = snap;
	snap->page_size_bytes =
		options->page_size_bytes ? options->page_size_bytes : 4096;
	snap->total_pages = snap->file_pages = snap->active_pages =
		SNAPSHOT_UNKNOWN;
	snap->dirty_pages = snap->anon_pages = SNAPSHOT_UNKNOWN;
	snap->mlocked_pages = snap->slab_pages = SNAPSHOT_UNKNOWN;

	r = read_file(w, "buddyinfo", texts->buddyinfo, options,
		      snapshot_read_buddyinfo, err);
	if (!r)
		r = read_file(w, "pagetypeinfo", texts->pagetypeinfo, options,
			      snapshot_read_pagetypeinfo, err);
	if (!r)
		r = read_file(w, "zoneinfo", texts->zoneinfo, options,
			      snapshot_read_zoneinfo, err);
	if (!r)
		r = read_file(w, "meminfo", texts->meminfo, options,
			      snapshot_read_meminfo, err);
	if (!r)
		r = read_file(w, "vmstat", texts->vmstat, options,
			      snapshot_read_vmstat, err);
	if (!r)
		r = settle(w, options, err);
	free(w);
	if (r)
		return r;
	*ret = TAKE_PTR(snap);
	return 0;
}

struct snapshot *snapshot_free(struct snapshot *snapshot)
{
	free(snapshot);
	return NULL;
}
