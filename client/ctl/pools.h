/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Pools: their JSON, which "stats" shows too.
 *
 * Ownership: a new reference.
 * Threads:   one.
 */

#include <dmaheap/stats.h>

#include "ctl/json.h"

/* [{order, blocks, bytes, hits, misses, limit_bytes}] */
json_t *pools_json(const struct dmaheap_stats_heap *h);
