/* SPDX-License-Identifier: MIT */
#include "ctl/sample.h"

#include "ctl/histogram.h"

/* What was added between the two. The maximum is the whole time's. */
static void subtract(struct dmaheap_histogram *difference,
		     const struct dmaheap_histogram *before,
		     const struct dmaheap_histogram *now)
{
	difference->count = 0;
	difference->sum = now->sum - before->sum;
	difference->max = now->max;
	for (size_t i = 0; i < DMAHEAP_HISTOGRAM_BUCKETS; i++) {
		difference->bucket[i] = now->bucket[i] - before->bucket[i];
		difference->count += difference->bucket[i];
	}
}

static uint64_t hits_of(const struct dmaheap_stats_heap *h)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < h->n_pools; i++)
		sum += h->pool[i].hits;
	return sum;
}

static uint64_t misses_of(const struct dmaheap_stats_heap *h)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < h->n_pools; i++)
		sum += h->pool[i].misses;
	return sum;
}

static uint64_t pool_bytes_of(const struct dmaheap_stats_heap *h)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < h->n_pools; i++)
		sum += h->pool[i].bytes;
	return sum;
}

struct sample_heap sample_of_heap(const struct dmaheap_stats_heap *before,
				  const struct dmaheap_stats_heap *now,
				  double seconds)
{
	uint64_t hits = hits_of(now) - hits_of(before);
	uint64_t asked = hits + misses_of(now) - misses_of(before);
	struct dmaheap_histogram measured, stall;

	subtract(&measured, &before->measured_ns, &now->measured_ns);
	subtract(&stall, &before->modelled_stall_ns, &now->modelled_stall_ns);
	return (struct sample_heap){
		.name = now->name,
		.policy = now->policy,
		.buffers = now->buffers,
		.bytes = now->bytes,
		.pool_bytes = pool_bytes_of(now),
		.allocs_per_s =
			(double)(now->allocs - before->allocs) / seconds,
		.failures_per_s =
			(double)(now->failures - before->failures) / seconds,
		.hit_percent = asked ? 100 * (double)hits / (double)asked : 0,
		.measured_p50_ns = histogram_quantile(&measured, 500),
		.measured_p99_ns = histogram_quantile(&measured, 990),
		.stall_p99_ns = histogram_quantile(&stall, 990),
	};
}

static json_t *heap_json(const struct sample_heap *s)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:f, s:f, s:f, s:o, s:o, "
			 "s:o}",
			 "name", json_text(s->name), "policy",
			 json_text(s->policy), "buffers", json_u64(s->buffers),
			 "bytes", json_u64(s->bytes), "pool_bytes",
			 json_u64(s->pool_bytes), "allocs_per_s",
			 s->allocs_per_s, "failures_per_s", s->failures_per_s,
			 "pool_hit_percent", s->hit_percent, "measured_p50_ns",
			 json_u64(s->measured_p50_ns), "measured_p99_ns",
			 json_u64(s->measured_p99_ns), "modelled_stall_p99_ns",
			 json_u64(s->stall_p99_ns));
}

json_t *sample_json(const struct dmaheap_stats *before,
		    const struct dmaheap_stats *now, double seconds)
{
	json_t *heaps = json_array(), *zones = json_array();

	for (uint32_t i = 0; i < now->n_heaps; i++) {
		struct sample_heap s = sample_of_heap(&before->heap[i],
						      &now->heap[i], seconds);

		json_array_append_new(heaps, heap_json(&s));
	}
	for (uint32_t i = 0; i < now->node.n_zones; i++)
		json_array_append_new(zones,
				      json_pack("{s:o, s:o}", "name",
						json_text(
							now->node.zone[i].name),
						"free_bytes",
						json_u64(now->node.zone[i]
								 .free_bytes)));
	return json_pack("{s:f, s:o, s:o, s:o, s:o}", "seconds", seconds,
			 "connections", json_u64(now->daemon.n_connections),
			 "resident_bytes",
			 json_u64(now->backing.resident_bytes), "zones", zones,
			 "heaps", heaps);
}
