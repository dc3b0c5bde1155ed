/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Medians of repeated measurements; of an even number the upper one.
 *
 * Units:     the caller's.
 * Ownership: the values are the caller's, and are put in order.
 * Threads:   no state.
 */

#include <stddef.h>
#include <stdint.h>

/* @n > 0. */
double median_double(double *values, size_t n);
uint64_t median_u64(uint64_t *values, size_t n);
