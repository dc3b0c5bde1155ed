/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Sample: what happened between two copies of the stats segment.
 *
 * Units:     *_per_s over the time between the copies; *_bytes.
 * Ownership: plain values; the texts are those of the later copy.
 * Threads:   one.
 */

#include <dmaheap/stats.h>

#include "ctl/json.h"

struct sample_heap {
	const char *name;
	const char *policy;
	uint64_t buffers;
	uint64_t bytes;
	uint64_t pool_bytes;
	double allocs_per_s;
	double failures_per_s;
	double hit_percent;       /* of the blocks asked for; 0 without any */
	uint64_t measured_p50_ns; /* of the time between */
	uint64_t measured_p99_ns;
	uint64_t stall_p99_ns; /* modelled */
};

/* @before and @now are of one daemon; @seconds > 0 lie between them. */
struct sample_heap sample_of_heap(const struct dmaheap_stats_heap *before,
				  const struct dmaheap_stats_heap *now,
				  double seconds);

/* The sample as one line of JSON. */
json_t *sample_json(const struct dmaheap_stats *before,
		    const struct dmaheap_stats *now, double seconds);
