/* SPDX-License-Identifier: MIT */
#include "ctl/pools.h"

#include <stdlib.h>

#include "ctl/table.h"
#include "ctl/units.h"
#include "ctl/verbs.h"

json_t *pools_json(const struct dmaheap_stats_heap *h)
{
	json_t *array = json_array();

	for (uint32_t i = 0; i < h->n_pools; i++) {
		const struct dmaheap_stats_pool *p = &h->pool[i];

		json_array_append_new(
			array,
			json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "order",
				  json_u64(p->order), "blocks",
				  json_u64(p->blocks), "bytes",
				  json_u64(p->bytes), "hits", json_u64(p->hits),
				  "misses", json_u64(p->misses), "limit_bytes",
				  json_u64(p->limit_bytes)));
	}
	return array;
}

static json_t *to_json(const struct dmaheap_stats *stats)
{
	json_t *array = json_array();

	for (uint32_t i = 0; i < stats->n_heaps; i++)
		json_array_append_new(array,
				      json_pack("{s:o, s:o}", "heap",
						json_text(stats->heap[i].name),
						"pools",
						pools_json(&stats->heap[i])));
	return array;
}

static void add_rows(struct table *t, const struct dmaheap_stats_heap *h)
{
	struct units_text text;

	for (uint32_t i = 0; i < h->n_pools; i++) {
		const struct dmaheap_stats_pool *p = &h->pool[i];

		table_cell(t, "%s", h->name);
		table_cell(t, "%u", p->order);
		table_cell(t, "%ju", (uintmax_t)p->blocks);
		table_cell(t, "%s", units_size(p->bytes, &text));
		table_cell(t, "%s",
			   p->limit_bytes == UINT64_MAX
				   ? "none"
				   : units_size(p->limit_bytes, &text));
		table_cell(t, "%ju", (uintmax_t)p->hits);
		table_cell(t, "%ju", (uintmax_t)p->misses);
	}
}

static int run(struct ctl *ctl, int argc, char **argv)
{
	static const char *const headings[] = {"HEAP",    ">ORDER", ">BLOCKS",
					       ">BYTES",  ">LIMIT", ">HITS",
					       ">MISSES", NULL};
	struct dmaheap_stats *stats;
	int r;

	(void)argc;
	(void)argv;
	r = ctl_stats(ctl, &stats);
	if (r)
		return r;
	if (ctl->json) {
		r = json_show(to_json(stats));
	} else {
		struct table *t = table_new(headings);

		for (uint32_t i = 0; i < stats->n_heaps; i++)
			add_rows(t, &stats->heap[i]);
		table_print(t, ctl);
		table_free(t);
	}
	free(stats);
	return r;
}

const struct verb verb_pools = {
	.name = "pools",
	.arguments = "",
	.summary = "show the page pools of each heap",
	.run = run,
};
