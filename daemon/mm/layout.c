/* SPDX-License-Identifier: MIT */
#include "mm/layout.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/parse.h"
#include "mm/buddy.h"
#include "mm/layout_frames.h"

int layout_error(struct node_error *err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(err->text, sizeof(err->text), format, args);
	va_end(args);
	return NODE_E_INVALID;
}

/* List heads behind the frames: free lists, per-CPU lists, occupants, targets.
 */
static uint32_t n_list_heads(const struct node *node)
{
	return node->n_zones *
		       (MT_COUNT * NODE_ORDERS + node->n_cpus * PCP_LISTS) +
	       NODE_OCCUPANTS + 2;
}

static void place_heads(struct node *node)
{
	uint32_t next = node->n_frames;

	for (unsigned int i = 0; i < node->n_zones; i++) {
		struct zone *zone = &node->zones[i];

		zone->heads = next;
		next += MT_COUNT * NODE_ORDERS;
		for (unsigned int cpu = 0; cpu < node->n_cpus; cpu++) {
			zone->pcp[cpu].heads = next;
			next += PCP_LISTS;
		}
	}
	node->lru_heads = next;
	next += NODE_OCCUPANTS;
	node->compact_heads = next;
	next += 2;
	assert(next == node->n_links);
	for (uint32_t i = node->n_frames; i < node->n_links; i++)
		link_init(node->links, i);
}

/* With zones' ranges known: everything allocated, every frame FRAME_BODY. */
static int allocate(struct node *node)
{
	node->n_links = node->n_frames + n_list_heads(node);
	node->state = calloc(node->n_frames, sizeof(*node->state));
	node->links = calloc(node->n_links, sizeof(*node->links));
	node->blocks = calloc(node->n_frames >> PAGEBLOCK_ORDER, 1);
	if (!node->state || !node->links || !node->blocks)
		return err_raise(-ENOMEM);
	for (unsigned int i = 0; i < node->n_zones; i++) {
		struct zone *zone = &node->zones[i];

		zone->node = node;
		zone->index = i;
		zone->pcp = calloc(node->n_cpus, sizeof(*zone->pcp));
		if (!zone->pcp)
			return err_raise(-ENOMEM);
		zone->compact_cached_migrate_pfn[0] = zone->start_pfn;
		zone->compact_cached_migrate_pfn[1] = zone->start_pfn;
		zone->compact_cached_free_pfn =
			zone_span_end(zone) - PAGEBLOCK_PAGES;
		/* compact_init_*_pfn are 0 until skip marks are first flushed:
		 * so each search of the free lists is a deep one, and when it
		 * fails a request goes on from the middle of what is left.
		 * A machine that ran for long has had its flush, and a node
		 * that was made from a size stands for one. */
		if (!node->params.snapshot ||
		    node->params.snapshot->has_compacted) {
			zone->compact_init_migrate_pfn = zone->start_pfn;
			zone->compact_init_free_pfn =
				zone->compact_cached_free_pfn;
		}
	}
	place_heads(node);
	return 0;
}

int layout_from_size(struct node *node, struct node_error *err)
{
	uint64_t pages = align_down(node->params.size_bytes /
					    node->params.page_size_bytes,
				    MAX_BLOCK_PAGES);
	struct zone *zone = &node->zones[0];
	int r;

	if (node->params.size_bytes < NODE_MIN_BYTES || pages == 0 ||
	    pages > NODE_MAX_PAGES)
		return layout_error(
			err,
			"size: %llu bytes; allowed: from %llu to %llu bytes "
			"with pages of %u bytes",
			(unsigned long long)node->params.size_bytes,
			(unsigned long long)
				MAX(NODE_MIN_BYTES,
				    (uint64_t)MAX_BLOCK_PAGES *
					    node->params.page_size_bytes),
			(unsigned long long)(NODE_MAX_PAGES *
					     node->params.page_size_bytes),
			node->params.page_size_bytes);
	node->n_zones = 1;
	node->top_zone = zone;
	node->n_frames = (uint32_t)pages;
	(void)snprintf(zone->name, sizeof(zone->name), "Normal");
	zone->is_normal = true;
	zone->end_pfn = node->n_frames;
	zone->managed_pages = node->n_frames;
	r = allocate(node);
	if (r)
		return err_trace(r);
	/* as memblock hands memory over at boot: ascending */
	for (uint32_t i = 0; i < node->n_frames; i += MAX_BLOCK_PAGES) {
		block_set_mt(node, i, MT_MOVABLE);
		block_set_mt(node, i + PAGEBLOCK_PAGES, MT_MOVABLE);
		buddy_add(zone, i, NODE_MAX_ORDER, MT_MOVABLE, true);
	}
	return 0;
}

static uint64_t zone_free_pages(const struct snapshot_zone *z)
{
	uint64_t n = 0;

	for (unsigned int mt = 0; mt < SNAPSHOT_TYPES; mt++)
		for (unsigned int o = 0; o < SNAPSHOT_ORDERS; o++)
			n += z->free[mt][o] << o;
	return n;
}

/* Zones' ranges; a span is rounded up to whole blocks with frames that are
 * reserved. */
static int place_zones(struct node *node, const struct snapshot *snap,
		       struct node_error *err)
{
	uint64_t pfn = 0;

	node->n_zones = snap->n_zones;
	node->top_zone = &node->zones[snap->n_zones - 1];
	for (unsigned int i = 0; i < snap->n_zones; i++) {
		const struct snapshot_zone *z = &snap->zone[i];
		struct zone *zone = &node->zones[i];

		if (zone_free_pages(z) > z->managed_pages ||
		    z->managed_pages > z->span_pages || z->span_pages == 0)
			return layout_error(
				err,
				"zone %s: %llu pages free of %llu managed in "
				"%llu; allowed: no more free than managed",
				z->name, (unsigned long long)zone_free_pages(z),
				(unsigned long long)z->managed_pages,
				(unsigned long long)z->span_pages);
		zone->start_pfn = (uint32_t)pfn;
		pfn += align_up(z->span_pages, MAX_BLOCK_PAGES);
		if (pfn > NODE_MAX_PAGES)
			return layout_error(err,
					    "zone %s: the node has more than "
					    "%llu pages",
					    z->name,
					    (unsigned long long)NODE_MAX_PAGES);
		zone->end_pfn = (uint32_t)pfn;
		zone->managed_pages = (uint32_t)z->managed_pages;
		zone->hole_pages = (uint32_t)z->hole_pages;
		memcpy(zone->name, z->name, sizeof(zone->name));
		zone->is_normal = strcmp(z->name, "Normal") == 0;
	}
	node->n_frames = (uint32_t)pfn;
	return 0;
}

/* Amounts by kind: meminfo's, what the parameters add, and the rest. */
static int count_occupants(const struct node *node,
			   struct layout_occupants *ret, uint64_t n_used,
			   struct node_error *err)
{
	const struct snapshot *snap = node->params.snapshot;
	const uint64_t known[NODE_OCCUPANTS] = {
		[NODE_OCCUPANT_FILE] = snap->file_pages,
		[NODE_OCCUPANT_ACTIVE] = snap->active_pages,
		[NODE_OCCUPANT_DIRTY] = snap->dirty_pages,
		[NODE_OCCUPANT_ANON] = snap->anon_pages,
		[NODE_OCCUPANT_SLAB] = snap->slab_pages,
		[NODE_OCCUPANT_MLOCKED] = snap->mlocked_pages,
		[NODE_OCCUPANT_KERNEL] = SNAPSHOT_UNKNOWN,
	};
	uint64_t sum = 0;
	int r;

	r = layout_parse_occupants(node->params.occupants, n_used,
				   node->params.page_size_bytes, ret, err);
	if (r)
		return r;
	for (unsigned int i = 0; i < NODE_OCCUPANTS; i++) {
		if (ret->pages[i] == 0 && known[i] != SNAPSHOT_UNKNOWN)
			ret->pages[i] = known[i];
		/* a meminfo is not of the same instant: cut to what fits */
		ret->pages[i] = MIN(ret->pages[i], n_used - sum);
		sum += ret->pages[i];
	}
	ret->pages[ret->rest >= 0 ? ret->rest : NODE_OCCUPANT_KERNEL] +=
		n_used - sum;
	return 0;
}

int layout_from_snapshot(struct node *node, struct node_error *err)
{
	const struct snapshot *snap = node->params.snapshot;
	int r;

	if (snap->page_size_bytes != node->params.page_size_bytes)
		return layout_error(err,
				    "page_size: %u, but the snapshot was read "
				    "with %u",
				    node->params.page_size_bytes,
				    snap->page_size_bytes);
	r = place_zones(node, snap, err);
	if (r)
		return r;
	r = allocate(node);
	return r ? err_trace(r) : 0;
}

int layout_fill_from_snapshot(struct node *node, struct node_error *err)
{
	const struct snapshot *snap = node->params.snapshot;
	struct layout_occupants occupants;
	uint64_t n_used = 0;
	int r;

	for (unsigned int i = 0; i < snap->n_zones; i++)
		n_used += snap->zone[i].managed_pages -
			  zone_free_pages(&snap->zone[i]);
	r = count_occupants(node, &occupants, n_used, err);
	if (r)
		return r;
	return layout_frames(node, &occupants, err);
}

/* "20%" or "64M". Return: 0, -EINVAL, -ERANGE. */
static int parse_amount(const char *text, uint64_t node_pages,
			uint32_t page_size_bytes, uint64_t *ret_pages)
{
	size_t len = strlen(text);
	char number[32];
	uint64_t value;
	int r;

	if (len == 0 || len >= sizeof(number))
		return -EINVAL;
	if (text[len - 1] != '%') {
		r = parse_size(text, &value);
		if (r)
			return r;
		*ret_pages = value / page_size_bytes;
		return 0;
	}
	memcpy(number, text, len - 1);
	number[len - 1] = '\0';
	r = parse_u64(number, &value);
	if (r)
		return r;
	if (value > 100)
		return -ERANGE;
	*ret_pages = node_pages * value / 100;
	return 0;
}

int layout_parse_occupants(const char *text, uint64_t node_pages,
			   uint32_t page_size_bytes,
			   struct layout_occupants *ret, struct node_error *err)
{
	struct layout_occupants o = {.rest = -1};
	uint64_t sum = 0;
	char word[64];
	int r;

	while ((r = parse_word(&text, word, sizeof(word))) > 0) {
		char *colon = strchr(word, ':');
		enum node_occupant kind;

		if (colon)
			*colon = '\0';
		if (node_occupant_parse(word, &kind))
			return layout_error(err,
					    "occupants: no kind \"%s\"; "
					    "allowed: "
					    "file active dirty anon slab "
					    "kernel mlocked",
					    word);
		if (!colon) {
			o.rest = (int)kind;
			continue;
		}
		if (parse_amount(colon + 1, node_pages, page_size_bytes,
				 &o.pages[kind]))
			return layout_error(err,
					    "occupants: %s:%s; allowed: a "
					    "share "
					    "(20%%) or a size (64M)",
					    word, colon + 1);
		sum += o.pages[kind];
	}
	if (r < 0 || sum > node_pages)
		return layout_error(err, r < 0 ? "occupants: a word is too long"
					       : "occupants: more than there "
						 "is room for");
	*ret = o;
	return 0;
}
