/* SPDX-License-Identifier: MIT */
#include "mm/node.h"

#include "mm/occupants.h"
#include "mm/watermark.h"
#include "mm/zone.h"

/*
 * The texts of /proc, column by column as the kernel prints them, so that tools
 * and snapshot_parse() read them.
 */

static const char *const type_names[MT_COUNT] = {
	[MT_UNMOVABLE] = "Unmovable",
	[MT_MOVABLE] = "Movable",
	[MT_RECLAIMABLE] = "Reclaimable",
};

void node_render_buddyinfo(const struct node *node, struct strbuf *sb)
{
	for (unsigned int i = 0; i < node->n_zones; i++) {
		const struct zone *zone = &node->zones[i];

		strbuf_append(sb, "Node 0, zone %8s ", zone->name);
		for (unsigned int o = 0; o < NODE_ORDERS; o++) {
			uint32_t n = 0;

			for (unsigned int mt = 0; mt < MT_COUNT; mt++)
				n += zone->free_blocks[mt][o];
			strbuf_append(sb, "%6u ", n);
		}
		strbuf_append_char(sb, '\n');
	}
}

static void render_free_counts(const struct node *node, struct strbuf *sb)
{
	strbuf_append(sb, "%-43s ",
		      "Free pages count per migrate type at order");
	for (unsigned int o = 0; o < NODE_ORDERS; o++)
		strbuf_append(sb, "%6u ", o);
	strbuf_append_char(sb, '\n');
	for (unsigned int i = 0; i < node->n_zones; i++) {
		const struct zone *zone = &node->zones[i];

		for (unsigned int mt = 0; mt < MT_COUNT; mt++) {
			strbuf_append(sb, "Node %4d, zone %8s, type %12s ", 0,
				      zone->name, type_names[mt]);
			for (unsigned int o = 0; o < NODE_ORDERS; o++) {
				uint32_t n = zone->free_blocks[mt][o];

				/* the kernel stops counting there */
				strbuf_append(sb, n > 100000 ? ">%5u " : "%6u ",
					      MIN(n, 100000u));
			}
			strbuf_append_char(sb, '\n');
		}
	}
}

void node_render_pagetypeinfo(const struct node *node, struct strbuf *sb)
{
	strbuf_append(sb, "Page block order: %u\nPages per block:  %u\n\n",
		      PAGEBLOCK_ORDER, PAGEBLOCK_PAGES);
	render_free_counts(node, sb);
	strbuf_append(sb, "\n%-23s", "Number of blocks type ");
	for (unsigned int mt = 0; mt < MT_COUNT; mt++)
		strbuf_append(sb, "%12s ", type_names[mt]);
	strbuf_append_char(sb, '\n');
	for (unsigned int i = 0; i < node->n_zones; i++) {
		const struct zone *zone = &node->zones[i];
		uint32_t n[MT_COUNT] = {0};

		for (uint32_t pfn = zone->start_pfn; pfn < zone->end_pfn;
		     pfn += PAGEBLOCK_PAGES)
			n[block_mt(node, pfn)]++;
		strbuf_append(sb, "Node 0, zone %8s ", zone->name);
		for (unsigned int mt = 0; mt < MT_COUNT; mt++)
			strbuf_append(sb, "%12u ", n[mt]);
		strbuf_append_char(sb, '\n');
	}
}

static void render_pagesets(const struct zone *zone, struct strbuf *sb)
{
	strbuf_append_string(sb, "  pagesets\n");
	for (unsigned int cpu = 0; cpu < zone->node->n_cpus; cpu++) {
		const struct pcp *pcp = &zone->pcp[cpu];

		strbuf_append(sb,
			      "    cpu: %u\n"
			      "              count: %u\n"
			      "              high:  %u\n"
			      "              batch: %u\n",
			      cpu, pcp->count, pcp->high, pcp->batch);
	}
}

void node_render_zoneinfo(const struct node *node, struct strbuf *sb)
{
	for (unsigned int i = 0; i < node->n_zones; i++) {
		const struct zone *zone = &node->zones[i];
		uint32_t span = zone->end_pfn - zone->start_pfn;

		strbuf_append(sb,
			      "Node 0, zone %8s\n"
			      "  pages free     %u\n"
			      "        boost    %u\n"
			      "        min      %u\n"
			      "        low      %u\n"
			      "        high     %u\n"
			      "        spanned  %u\n"
			      "        present  %u\n"
			      "        managed  %u\n"
			      "        protection: (",
			      zone->name, zone->free_pages, zone->wmark_boost,
			      zone_wmark(zone, WMARK_MIN),
			      zone_wmark(zone, WMARK_LOW),
			      zone_wmark(zone, WMARK_HIGH),
			      span + zone->hole_pages, span,
			      zone->managed_pages);
		for (unsigned int j = 0; j < node->n_zones; j++)
			strbuf_append(sb, "%s%u", j ? ", " : "",
				      zone->lowmem_reserve[j]);
		strbuf_append_string(sb, ")\n");
		render_pagesets(zone, sb);
		strbuf_append(sb, "  start_pfn:           %u\n",
			      zone->start_pfn);
	}
}

void node_render_meminfo(const struct node *node, struct strbuf *sb)
{
	uint64_t kb = node->params.page_size_bytes / 1024;
	uint64_t file = occupant_pages(node, NODE_OCCUPANT_FILE);
	uint64_t active = occupant_pages(node, NODE_OCCUPANT_ACTIVE);
	uint64_t dirty = occupant_pages(node, NODE_OCCUPANT_DIRTY);
	uint64_t anon = occupant_pages(node, NODE_OCCUPANT_ANON);
	uint64_t mlocked = occupant_pages(node, NODE_OCCUPANT_MLOCKED);
	uint64_t managed = 0, free = 0;
	const struct {
		const char *name;
		uint64_t pages;
	} lines[] = {
		{"MemTotal:", 0},
		{"MemFree:", 0},
		{"Buffers:", 0},
		{"Cached:", file + active + dirty},
		{"Active(file):", active},
		{"Inactive(file):", file + dirty},
		{"Unevictable:", mlocked},
		{"Mlocked:", mlocked},
		{"Dirty:", dirty},
		{"AnonPages:", anon + mlocked},
		{"SReclaimable:", occupant_pages(node, NODE_OCCUPANT_SLAB)},
	};

	for (unsigned int i = 0; i < node->n_zones; i++) {
		managed += node->zones[i].managed_pages;
		free += node->zones[i].free_pages;
	}
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		uint64_t pages = i == 0   ? managed
				 : i == 1 ? free
					  : lines[i].pages;

		strbuf_append(sb, "%-16s%8llu kB\n", lines[i].name,
			      (unsigned long long)(pages * kb));
	}
}

void node_render_vmstat(const struct node *node, struct strbuf *sb)
{
	for (unsigned int i = 0; i < VMSTAT_COUNT; i++)
		strbuf_append(sb, "%s %llu\n", node_vmstat_name(i),
			      (unsigned long long)node->vmstat[i]);
}
