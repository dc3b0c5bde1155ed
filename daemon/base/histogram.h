/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Log-linear histogram, of the layout that the stats segment publishes
 * (struct dmaheap_histogram of dmaheap/stats.h, which base does not include; a
 * test compares the two): values 0..15 have a bucket each, then each power of
 * two is divided into 16 buckets, and 2^40 and more share the last one.
 *
 * Units:     whatever the caller counts, mostly nanoseconds.
 * Ownership: plain values; all zero is an empty histogram.
 * Threads:   not locked.
 */

#include "base/base.h"

#define HISTOGRAM_BUCKETS 593u

struct histogram {
	uint64_t count;
	uint64_t sum;
	uint64_t max;
	uint64_t bucket[HISTOGRAM_BUCKETS];
};

/* Return: the bucket of @value, < HISTOGRAM_BUCKETS. */
unsigned int histogram_bucket(uint64_t value);

/* Return: the smallest value of bucket @i. */
uint64_t histogram_lower(unsigned int i);

void histogram_add(struct histogram *histogram, uint64_t value);

/* Adds the contents of @other to @histogram. */
void histogram_merge(struct histogram *histogram,
		     const struct histogram *other);

/**
 * histogram_quantile() - the value below or at which @permille of all lie
 * @permille:   0..1000: 500 is the median, 999 is p999, 1000 the maximum
 *
 * Return: the largest value of the bucket reached, no more than the maximum;
 * at most 1/16 above the exact answer. 0 when empty.
 */
uint64_t histogram_quantile(const struct histogram *histogram,
			    unsigned int permille);
