/* SPDX-License-Identifier: MIT */
#include "ctl/histogram.h"

uint64_t histogram_quantile(const struct dmaheap_histogram *h,
			    unsigned int permille)
{
	uint64_t below = 0, wanted;

	if (h->count == 0)
		return 0;
	/* The rank of the value, from 1. */
	wanted = h->count / 1000 * permille +
		 (h->count % 1000 * permille + 999) / 1000;
	for (uint32_t i = 0; i + 1 < DMAHEAP_HISTOGRAM_BUCKETS; i++) {
		uint64_t highest = dmaheap_histogram_lower(i + 1) - 1;

		below += h->bucket[i];
		if (below >= wanted)
			return highest < h->max ? highest : h->max;
	}
	return h->max;
}

json_t *histogram_json(const struct dmaheap_histogram *h)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o}", "p50",
			 json_u64(histogram_quantile(h, 500)), "p90",
			 json_u64(histogram_quantile(h, 900)), "p99",
			 json_u64(histogram_quantile(h, 990)), "p999",
			 json_u64(histogram_quantile(h, 999)), "max",
			 json_u64(h->max));
}
