/* SPDX-License-Identifier: MIT */
/*
 * One family after the other, as the format wants it: TYPE, then every sample.
 * Measured and modelled times are families of their own.
 */
#include "ctl/openmetrics.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "ctl/ctl.h"

static void family(const char *name, const char *type, const char *help)
{
	printf("# TYPE dmaheap_%s %s\n# HELP dmaheap_%s %s\n", name, type, name,
	       help);
}

/* A label's value: backslash, quote and newline escaped. */
static void print_label(const char *key, const char *value)
{
	printf("%s=\"", key);
	for (; *value; value++) {
		if (*value == '\\' || *value == '"')
			printf("\\%c", *value);
		else if (*value == '\n')
			fputs("\\n", stdout);
		else
			putchar(*value);
	}
	putchar('"');
}

static void single(const char *name, bool counter, const char *help,
		   uint64_t value)
{
	family(name, counter ? "counter" : "gauge", help);
	printf("dmaheap_%s%s %ju\n", name, counter ? "_total" : "",
	       (uintmax_t)value);
}

/* One u64 member of a struct, for each heap or zone. */
struct member {
	const char *name;
	bool counter;
	size_t offset;
	const char *help;
};

static uint64_t member_of(const void *object, const struct member *m)
{
	return *(const uint64_t *)(const void *)((const char *)object +
						 m->offset);
}

#define HEAP(name, counter, member, help)                                      \
	{                                                                      \
		name, counter, offsetof(struct dmaheap_stats_heap, member),    \
			help                                                   \
	}
#define ZONE(name, member, help)                                               \
	{                                                                      \
		name, false, offsetof(struct dmaheap_stats_zone, member), help \
	}
#define POOL(name, counter, member, help)                                      \
	{                                                                      \
		name, counter, offsetof(struct dmaheap_stats_pool, member),    \
			help                                                   \
	}

static const struct member heap_members[] = {
	HEAP("heap_buffers", false, buffers, "Live buffers."),
	HEAP("heap_bytes", false, bytes, "Bytes of live buffers."),
	HEAP("heap_allocs", true, allocs, "Buffers handed out."),
	HEAP("heap_failures", true, failures,
	     "Requests refused, for whatever reason."),
	HEAP("heap_failures_though_free", true, failures_though_free,
	     "Requests the node refused though enough pages were free."),
};

static const struct member zone_members[] = {
	ZONE("zone_size_bytes", size_bytes, "Size of the zone."),
	ZONE("zone_free_bytes", free_bytes, "Free bytes of the zone."),
	ZONE("zone_watermark_min_bytes", watermark_min_bytes, "Min watermark."),
	ZONE("zone_watermark_low_bytes", watermark_low_bytes, "Low watermark."),
	ZONE("zone_watermark_high_bytes", watermark_high_bytes,
	     "High watermark."),
	ZONE("zone_watermark_boost_bytes", watermark_boost_bytes,
	     "Watermark boost."),
};

static const struct member pool_members[] = {
	POOL("pool_blocks", false, blocks, "Blocks in the pool."),
	POOL("pool_bytes", false, bytes, "Bytes in the pool."),
	POOL("pool_hits", true, hits, "Blocks taken from the pool."),
	POOL("pool_misses", true, misses, "Blocks not found in the pool."),
};

static void print_member(const struct member *m, const char *key,
			 const char *value, const void *object)
{
	printf("dmaheap_%s%s{", m->name, m->counter ? "_total" : "");
	print_label(key, value);
	printf("} %ju\n", (uintmax_t)member_of(object, m));
}

static void print_zones(const struct dmaheap_stats_node *node)
{
	for (size_t k = 0; k < ARRAY_SIZE(zone_members); k++) {
		const struct member *m = &zone_members[k];

		family(m->name, "gauge", m->help);
		for (uint32_t i = 0; i < node->n_zones; i++)
			print_member(m, "zone", node->zone[i].name,
				     &node->zone[i]);
	}
	family("zone_free_blocks", "gauge", "Free blocks by order.");
	for (uint32_t i = 0; i < node->n_zones; i++) {
		for (unsigned int o = 0; o < DMAHEAP_ORDER_COUNT; o++) {
			printf("dmaheap_zone_free_blocks{");
			print_label("zone", node->zone[i].name);
			printf(",order=\"%u\"} %ju\n", o,
			       (uintmax_t)node->zone[i].free_blocks[o]);
		}
	}
}

static void print_pools(const struct dmaheap_stats *stats)
{
	for (size_t k = 0; k < ARRAY_SIZE(pool_members); k++) {
		const struct member *m = &pool_members[k];

		family(m->name, m->counter ? "counter" : "gauge", m->help);
		for (uint32_t i = 0; i < stats->n_heaps; i++) {
			const struct dmaheap_stats_heap *h = &stats->heap[i];

			for (uint32_t p = 0; p < h->n_pools; p++) {
				printf("dmaheap_%s%s{", m->name,
				       m->counter ? "_total" : "");
				print_label("heap", h->name);
				printf(",order=\"%u\"} %ju\n", h->pool[p].order,
				       (uintmax_t)member_of(&h->pool[p], m));
			}
		}
	}
}

static void print_bucket(const char *name, const char *heap, const char *le,
			 uint64_t count)
{
	printf("dmaheap_%s_bucket{", name);
	print_label("heap", heap);
	printf(",le=\"%s\"} %ju\n", le, (uintmax_t)count);
}

/* A bucket per power of two from 1 us on: 16 finer ones each are too many. */
static void print_histogram(const char *name, const char *heap,
			    const struct dmaheap_histogram *h)
{
	uint64_t below = 0, total = 0;
	char le[32];

	for (uint32_t i = 0; i < DMAHEAP_HISTOGRAM_BUCKETS; i++)
		total += h->bucket[i];
	for (uint32_t i = 0; i + 1 < DMAHEAP_HISTOGRAM_BUCKETS; i++) {
		uint64_t end = dmaheap_histogram_lower(i + 1);

		below += h->bucket[i];
		if (end < 1024 || (end & (end - 1)))
			continue;
		snprintf(le, sizeof(le), "%.9g", (double)end / 1e9);
		print_bucket(name, heap, le, below);
	}
	print_bucket(name, heap, "+Inf", total);
	printf("dmaheap_%s_count{", name);
	print_label("heap", heap);
	printf("} %ju\ndmaheap_%s_sum{", (uintmax_t)total, name);
	print_label("heap", heap);
	printf("} %.9g\n", (double)h->sum / 1e9);
}

static void print_heaps(const struct dmaheap_stats *stats)
{
	for (size_t k = 0; k < ARRAY_SIZE(heap_members); k++) {
		const struct member *m = &heap_members[k];

		family(m->name, m->counter ? "counter" : "gauge", m->help);
		for (uint32_t i = 0; i < stats->n_heaps; i++)
			print_member(m, "heap", stats->heap[i].name,
				     &stats->heap[i]);
	}
	print_pools(stats);
	family("heap_measured_seconds", "histogram",
	       "Time of a request, on the daemon's clock.");
	for (uint32_t i = 0; i < stats->n_heaps; i++)
		print_histogram("heap_measured_seconds", stats->heap[i].name,
				&stats->heap[i].measured_ns);
	family("heap_modelled_stall_seconds", "histogram",
	       "Stall of a request, as the model computes it.");
	for (uint32_t i = 0; i < stats->n_heaps; i++)
		print_histogram("heap_modelled_stall_seconds",
				stats->heap[i].name,
				&stats->heap[i].modelled_stall_ns);
}

static void print_vmstat(const struct dmaheap_stats_vmstat *vmstat)
{
	/* Some are counters and some are not, as in the kernel's file. */
	family("vmstat", "unknown", "The node's vmstat, by the kernel's name.");
	for (uint64_t i = 0; i < vmstat->n_items; i++) {
		printf("dmaheap_vmstat{");
		print_label("item", vmstat->item[i].name);
		printf("} %ju\n", (uintmax_t)vmstat->item[i].value);
	}
}

void openmetrics_print(const struct dmaheap_stats *stats)
{
	const struct dmaheap_stats_daemon *d = &stats->daemon;
	const struct dmaheap_stats_backing *b = &stats->backing;

	family("daemon_start_time_seconds", "gauge", "When it was started.");
	printf("dmaheap_daemon_start_time_seconds %.3f\n",
	       (double)d->start_realtime_ns / 1e9);
	single("daemon_connections", false, "Connections open.",
	       d->n_connections);
	single("daemon_requests", true, "Requests read.", d->requests);
	single("daemon_bad_requests", true, "Requests that were malformed.",
	       d->bad_requests);
	single("daemon_denied", true, "Requests refused by a quota.",
	       d->denied);
	single("backing_resident_bytes", false, "Bytes of all memfds.",
	       b->resident_bytes);
	single("backing_parked_bytes", false, "Bytes of parked memfds.",
	       b->parked_bytes);
	single("backing_parked_hits", true, "Parked memfds used again.",
	       b->parked_hits);
	single("backing_parked_misses", true, "Requests that found none.",
	       b->parked_misses);
	single("backing_budget_bytes", false, "Bytes that may be resident.",
	       b->budget_bytes);
	single("backing_budget_refusals", true, "Requests beyond the budget.",
	       b->budget_refusals);
	print_zones(&stats->node);
	print_heaps(stats);
	print_vmstat(&stats->vmstat);
	puts("# EOF");
}
