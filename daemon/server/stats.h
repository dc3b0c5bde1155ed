/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Stats: what the server writes into its stats segment, and when. Allocations
 * are entered as they end; the rest is refreshed once per STATS_REFRESH_NS
 * after something happened, and when somebody asks: an idle daemon sleeps.
 *
 * Units:     as dmaheap/stats.h.
 * Ownership: the segment is the server's.
 * Threads:   the loop's.
 */

#include <dmaheap/stats.h>

#include "base/base.h"

#define STATS_REFRESH_NS (10 * NSEC_PER_MSEC)

struct heap;
struct server;

/* Something has changed: refresh soon. */
void stats_touch(struct server *server);

/* Rewrites every section that is not kept up to date anyway. */
void stats_refresh(struct server *server);

/* Callback of server::refresh. */
void stats_timer(void *server);

/* One finished allocation: histograms or failures of its heap, and the ring of
 * events. */
void stats_allocated(struct server *server, const struct heap *heap,
		     struct dmaheap_stats_event *event);

/* A request for @heap that was refused before it could become an allocation. */
void stats_refused(struct server *server, const struct heap *heap);

/* A parked buffer was looked for, and found or not. */
void stats_parked(struct server *server, bool found);
