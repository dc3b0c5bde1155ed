/* SPDX-License-Identifier: MIT */
#include "base/histogram.h"

#define SUB_BITS 4u
#define SUB      (1u << SUB_BITS)

unsigned int histogram_bucket(uint64_t value)
{
	unsigned int log2, i;

	if (value < SUB)
		return (unsigned int)value;
	log2 = 63u - (unsigned int)__builtin_clzll(value);
	i = (log2 - SUB_BITS + 1) * SUB +
	    (unsigned int)((value >> (log2 - SUB_BITS)) & (SUB - 1));
	return MIN(i, HISTOGRAM_BUCKETS - 1);
}

uint64_t histogram_lower(unsigned int i)
{
	assert(i < HISTOGRAM_BUCKETS);

	if (i < SUB)
		return i;
	return (uint64_t)(SUB + i % SUB) << (i / SUB - 1);
}

void histogram_add(struct histogram *histogram, uint64_t value)
{
	histogram->count++;
	histogram->sum += value;
	histogram->max = MAX(histogram->max, value);
	histogram->bucket[histogram_bucket(value)]++;
}

void histogram_merge(struct histogram *histogram, const struct histogram *other)
{
	histogram->count += other->count;
	histogram->sum += other->sum;
	histogram->max = MAX(histogram->max, other->max);
	for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++)
		histogram->bucket[i] += other->bucket[i];
}

/* Return: the rank, from 1, of the value asked for. */
static uint64_t rank_of(uint64_t count, unsigned int permille)
{
	uint64_t rank = count / 1000 * permille +
			(count % 1000 * permille + 999) / 1000;

	return MAX(rank, UINT64_C(1));
}

uint64_t histogram_quantile(const struct histogram *histogram,
			    unsigned int permille)
{
	uint64_t rank, seen = 0;

	assert(permille <= 1000);

	if (histogram->count == 0)
		return 0;
	rank = rank_of(histogram->count, permille);
	for (unsigned int i = 0; i < HISTOGRAM_BUCKETS - 1; i++) {
		seen += histogram->bucket[i];
		if (seen >= rank)
			return MIN(histogram_lower(i + 1) - 1, histogram->max);
	}
	return histogram->max;
}
