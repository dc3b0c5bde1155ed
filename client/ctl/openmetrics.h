/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * OpenMetrics: the stats segment in the text format that scrapers read.
 *
 * Ownership: nothing is kept.
 * Threads:   one.
 */

#include <dmaheap/stats.h>

/* Prints on standard output, with "# EOF" at the end. */
void openmetrics_print(const struct dmaheap_stats *stats);
