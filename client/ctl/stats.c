/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <time.h>

#include "ctl/histogram.h"
#include "ctl/openmetrics.h"
#include "ctl/pools.h"
#include "ctl/quota.h"
#include "ctl/table.h"
#include "ctl/units.h"
#include "ctl/verbs.h"

static bool openmetrics;

static const struct option options[] = {
	{.name = "--openmetrics",
	 .kind = OPTION_SWITCH,
	 .value = &openmetrics,
	 .help = "print in the OpenMetrics text format"},
	{0},
};

/* The section's own uptime_ns is as old as the section. */
static uint64_t uptime_s(const struct dmaheap_stats_daemon *d)
{
	struct timespec ts;
	uint64_t now_ns;

	clock_gettime(CLOCK_REALTIME, &ts);
	now_ns = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
	if (now_ns < d->start_realtime_ns) /* the clock was set back */
		return d->uptime_ns / 1000000000u;
	return (now_ns - d->start_realtime_ns) / 1000000000u;
}

static json_t *daemon_json(const struct dmaheap_stats_daemon *d)
{
	return json_pack("{s:o, s:o, s:o, s:i, s:o}", "version",
			 json_text(d->version), "uptime_s",
			 json_u64(uptime_s(d)), "loop", json_text(d->loop),
			 "pid", d->pid, "clock", json_text(d->clock));
}

static json_t *zone_json(const struct dmaheap_stats_zone *z)
{
	json_t *index = json_array();

	for (unsigned int i = 0; i < DMAHEAP_ORDER_COUNT; i++)
		json_array_append_new(index,
				      json_real(z->fragmentation_index[i] /
						1000.0));
	return json_pack("{s:o, s:o, s:o, s:{s:o, s:o, s:o, s:o}, s:o, s:o}",
			 "name", json_text(z->name), "size_bytes",
			 json_u64(z->size_bytes), "free_bytes",
			 json_u64(z->free_bytes), "watermark", "min",
			 json_u64(z->watermark_min_bytes), "low",
			 json_u64(z->watermark_low_bytes), "high",
			 json_u64(z->watermark_high_bytes), "boost",
			 json_u64(z->watermark_boost_bytes), "free_blocks",
			 json_orders(z->free_blocks), "fragmentation_index",
			 index);
}

static json_t *zones_json(const struct dmaheap_stats_node *node)
{
	json_t *array = json_array();

	for (uint32_t i = 0; i < node->n_zones; i++)
		json_array_append_new(array, zone_json(&node->zone[i]));
	return array;
}

static json_t *vmstat_json(const struct dmaheap_stats_vmstat *vmstat)
{
	json_t *object = json_object();

	for (uint64_t i = 0; i < vmstat->n_items; i++)
		json_object_set_new(object, vmstat->item[i].name,
				    json_u64(vmstat->item[i].value));
	return object;
}

static json_t *heaps_json(const struct dmaheap_stats *stats)
{
	json_t *array = json_array();

	for (uint32_t i = 0; i < stats->n_heaps; i++) {
		const struct dmaheap_stats_heap *h = &stats->heap[i];

		json_array_append_new(
			array,
			json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
				  "s:o, s:o}",
				  "name", json_text(h->name), "policy",
				  json_text(h->policy), "buffers",
				  json_u64(h->buffers), "bytes",
				  json_u64(h->bytes), "allocs",
				  json_u64(h->allocs), "failures",
				  json_u64(h->failures), "failures_though_free",
				  json_u64(h->failures_though_free), "pools",
				  pools_json(h), "measured_ns",
				  histogram_json(&h->measured_ns),
				  "modelled_stall_ns",
				  histogram_json(&h->modelled_stall_ns)));
	}
	return array;
}

static json_t *backing_json(const struct dmaheap_stats_backing *b)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "mode",
			 json_text(b->mode), "reason", json_text(b->reason),
			 "resident_bytes", json_u64(b->resident_bytes),
			 "parked_bytes", json_u64(b->parked_bytes),
			 "parked_hits", json_u64(b->parked_hits),
			 "parked_misses", json_u64(b->parked_misses),
			 "budget_bytes", json_u64(b->budget_bytes));
}

static json_t *clients_json(const struct dmaheap_stats_daemon *d)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o}", "connections",
			 json_u64(d->n_connections), "uids",
			 json_u64(d->n_uids), "requests", json_u64(d->requests),
			 "bad_requests", json_u64(d->bad_requests), "denied",
			 json_u64(d->denied));
}

static int show_json(struct ctl *ctl, const struct dmaheap_stats *stats)
{
	struct dmaheap_quota_record *quota;
	json_t *root;
	size_t n;

	if (quota_fetch(ctl, &quota, &n))
		return CTL_FAILED;
	root = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "daemon",
			 daemon_json(&stats->daemon), "zones",
			 zones_json(&stats->node), "vmstat",
			 vmstat_json(&stats->vmstat), "heaps",
			 heaps_json(stats), "backing",
			 backing_json(&stats->backing), "clients",
			 clients_json(&stats->daemon), "quota",
			 quota_json(quota, n));
	free(quota);
	return json_show(root);
}

static void show_daemon(const struct dmaheap_stats *stats)
{
	const struct dmaheap_stats_daemon *d = &stats->daemon;
	const struct dmaheap_stats_backing *b = &stats->backing;
	struct units_text x, y, z;

	printf("dmaheapd %s, pid %d, up %ju s, %s loop, clock %s, latency %s, "
	       "%s lifetime\n",
	       d->version, d->pid, (uintmax_t)uptime_s(d), d->loop, d->clock,
	       d->latency, d->lifetime);
	printf("%u connections of %u uids, %ju requests, %ju bad, %ju "
	       "denied\n",
	       d->n_connections, d->n_uids, (uintmax_t)d->requests,
	       (uintmax_t)d->bad_requests, (uintmax_t)d->denied);
	printf("backing %s%s%s%s: %s resident, %s parked, budget %s\n", b->mode,
	       b->reason[0] ? " (" : "", ctl_printable(b->reason),
	       b->reason[0] ? ")" : "", units_size(b->resident_bytes, &x),
	       units_size(b->parked_bytes, &y),
	       units_size(b->budget_bytes, &z));
}

static void show_zones(const struct ctl *ctl,
		       const struct dmaheap_stats_node *node)
{
	static const char *const headings[] = {"ZONE",   ">SIZE", ">FREE",
					       ">MIN",   ">LOW",  ">HIGH",
					       ">BOOST", NULL};
	struct table *t = table_new(headings);
	struct units_text text;

	for (uint32_t i = 0; i < node->n_zones; i++) {
		const struct dmaheap_stats_zone *z = &node->zone[i];

		table_cell(t, "%s", z->name);
		table_cell(t, "%s", units_size(z->size_bytes, &text));
		table_cell(t, "%s", units_size(z->free_bytes, &text));
		table_cell(t, "%s", units_size(z->watermark_min_bytes, &text));
		table_cell(t, "%s", units_size(z->watermark_low_bytes, &text));
		table_cell(t, "%s", units_size(z->watermark_high_bytes, &text));
		table_cell(t, "%s",
			   units_size(z->watermark_boost_bytes, &text));
	}
	putchar('\n');
	table_print(t, ctl);
	table_free(t);
}

static void show_heaps(const struct ctl *ctl, const struct dmaheap_stats *stats)
{
	static const char *const headings[] =
		{"HEAP",         "POLICY",
		 ">BUFFERS",     ">BYTES",
		 ">ALLOCS",      ">FAILED",
		 ">THOUGH FREE", ">MEASURED P50",
		 ">P99",         ">MODELLED STALL P50",
		 ">P99",         NULL};
	struct table *t = table_new(headings);
	struct units_text text;

	for (uint32_t i = 0; i < stats->n_heaps; i++) {
		const struct dmaheap_stats_heap *h = &stats->heap[i];
		const struct dmaheap_histogram *both[] =
			{&h->measured_ns, &h->modelled_stall_ns};

		table_cell(t, "%s", h->name);
		table_cell(t, "%s", h->policy);
		table_cell(t, "%ju", (uintmax_t)h->buffers);
		table_cell(t, "%s", units_size(h->bytes, &text));
		table_cell(t, "%ju", (uintmax_t)h->allocs);
		table_cell(t, "%ju", (uintmax_t)h->failures);
		table_cell(t, "%ju", (uintmax_t)h->failures_though_free);
		for (unsigned int k = 0; k < 2; k++) {
			table_cell(t, "%s",
				   units_time(histogram_quantile(both[k], 500),
					      &text));
			table_cell(t, "%s",
				   units_time(histogram_quantile(both[k], 990),
					      &text));
		}
	}
	putchar('\n');
	table_print(t, ctl);
	table_free(t);
}

static int run(struct ctl *ctl, int argc, char **argv)
{
	struct dmaheap_stats *stats;
	int r;

	(void)argc;
	(void)argv;
	if (openmetrics && ctl->json)
		return ctl_misuse(ctl, "--openmetrics and --json exclude each "
				       "other");
	r = ctl_stats(ctl, &stats);
	if (r)
		return r;
	if (openmetrics) {
		openmetrics_print(stats);
	} else if (ctl->json) {
		r = show_json(ctl, stats);
	} else {
		show_daemon(stats);
		show_zones(ctl, &stats->node);
		show_heaps(ctl, stats);
	}
	free(stats);
	return r;
}

const struct verb verb_stats = {
	.name = "stats",
	.arguments = "",
	.summary = "show counters and times of the daemon, node and heaps",
	.options = options,
	.run = run,
};
