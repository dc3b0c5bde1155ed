/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Histogram: what is read from struct dmaheap_histogram.
 *
 * Units:     those of the values.
 * Ownership: nothing is kept.
 * Threads:   without state.
 */

#include <dmaheap/stats.h>

#include "ctl/json.h"

/**
 * histogram_quantile() - a value that so many thousandths do not exceed
 * @permille: 1..1000
 *
 * Known to a sixteenth: the largest value of its bucket, at most the maximum.
 *
 * Return: that value, 0 when the histogram is empty.
 */
uint64_t histogram_quantile(const struct dmaheap_histogram *h,
			    unsigned int permille);

/* {p50, p90, p99, p999, max} */
json_t *histogram_json(const struct dmaheap_histogram *h);
