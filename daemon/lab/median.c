/* SPDX-License-Identifier: MIT */
#include "lab/median.h"

#include <stdlib.h>

static int compare_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

double median_double(double *values, size_t n)
{
	qsort(values, n, sizeof(*values), compare_double);
	return values[n / 2];
}

uint64_t median_u64(uint64_t *values, size_t n)
{
	qsort(values, n, sizeof(*values), compare_u64);
	return values[n / 2];
}
