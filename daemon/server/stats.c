/* SPDX-License-Identifier: MIT */
#include "server/stats.h"

#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/histogram.h"
#include "server/server.h"

/* The segment's histograms are filled through base/histogram. */
static_assert(sizeof(struct dmaheap_histogram) == sizeof(struct histogram),
	      "one layout");

/* Cut to fit. Not by snprintf(): that was three quarters of a refresh, in the
 * time of whoever asks next. */
static void copy_text(char *to, size_t size, const char *from)
{
	size_t n = strnlen(from, size - 1);

	memcpy(to, from, n);
	to[n] = '\0';
}

#define COPY_TEXT(to, from) copy_text((to), sizeof(to), (from))

static void refresh_daemon(struct server *s, struct dmaheap_stats_daemon *d)
{
	const struct quota_account *a = NULL;
	uint32_t n_uids = 0;

	while ((a = quota_next(s->quota, a)))
		n_uids++;
	segment_begin(&d->seq);
	d->start_realtime_ns = s->start_realtime_ns;
	d->uptime_ns = clock_now_ns() - s->start_ns;
	d->pid = getpid();
	d->n_connections = s->n_sessions;
	d->n_uids = n_uids;
	d->requests = s->n_requests;
	d->bad_requests = s->n_bad_requests;
	d->denied = s->n_denied;
	COPY_TEXT(d->version, DMAHEAP_VERSION);
	COPY_TEXT(d->loop, loop_name(s->loop));
	COPY_TEXT(d->clock, config_clock_name(s->config->daemon.clock));
	COPY_TEXT(d->latency, config_latency_name(s->config->daemon.latency));
	COPY_TEXT(d->lifetime, backing_lifetime_name(s->lifetime));
	segment_end(&d->seq);
}

static void copy_zone(struct dmaheap_stats_zone *to,
		      const struct node_zone_stats *from, uint64_t page)
{
	COPY_TEXT(to->name, from->name);
	to->size_bytes = from->size_pages * page;
	to->free_bytes = from->free_pages * page;
	to->watermark_min_bytes = from->wmark_min_pages * page;
	to->watermark_low_bytes = from->wmark_low_pages * page;
	to->watermark_high_bytes = from->wmark_high_pages * page;
	to->watermark_boost_bytes = from->wmark_boost_pages * page;
	memcpy(to->free_blocks, from->free_blocks, sizeof(to->free_blocks));
	memcpy(to->fragmentation_index, from->fragmentation_index,
	       sizeof(to->fragmentation_index));
	memcpy(to->unusable_free_index, from->unusable_free_index,
	       sizeof(to->unusable_free_index));
}

static void refresh_node(struct server *s, struct dmaheap_stats_node *n)
{
	uint32_t page = node_params(s->node)->page_size_bytes;
	struct node_zone_stats z;

	segment_begin(&n->seq);
	n->n_zones = MIN(node_n_zones(s->node), DMAHEAP_STATS_ZONES_MAX);
	n->page_size_bytes = page;
	n->modelled_now_ns = node_now_ns(s->node);
	for (uint32_t i = 0; i < n->n_zones; i++) {
		node_zone_stats(s->node, i, &z);
		copy_zone(&n->zone[i], &z, page);
	}
	segment_end(&n->seq);
}

static void refresh_vmstat(struct server *s, struct dmaheap_stats_vmstat *v)
{
	segment_begin(&v->seq);
	v->n_items = MIN(node_vmstat_count(), DMAHEAP_STATS_VMSTAT_MAX);
	for (unsigned int i = 0; i < v->n_items; i++) {
		COPY_TEXT(v->item[i].name, node_vmstat_name(i));
		v->item[i].value = node_vmstat_value(s->node, i);
	}
	segment_end(&v->seq);
}

static void refresh_backing(struct server *s, struct dmaheap_stats_backing *b)
{
	struct backing_stats st;

	backing_get_stats(s->backing, &st);
	segment_begin(&b->seq);
	COPY_TEXT(b->mode, backing_kind_name(st.mode));
	COPY_TEXT(b->reason, st.reason);
	b->resident_bytes = st.resident_bytes;
	b->parked_bytes = st.parked_bytes;
	b->dropped = st.dropped;
	b->dropped_pinned = st.dropped_pinned;
	b->dropped_holes = st.dropped_holes;
	b->budget_bytes = st.budget_bytes;
	b->budget_refusals = st.budget_refusals;
	b->late_releases = st.late_releases;
	segment_end(&b->seq);
}

static void copy_pools(struct dmaheap_stats_heap *to, const struct heap *heap,
		       const struct heap_stats *st)
{
	to->n_pools = 0;
	for (unsigned int n = POLICY_ORDER_COUNT; n-- > 0;) {
		if (!policy_has_order(heap_policy(heap), n))
			continue;
		to->pool[to->n_pools++] = (struct dmaheap_stats_pool){
			.order = n,
			.blocks = st->pool[n].blocks,
			.bytes = st->pool[n].bytes,
			.hits = st->pool[n].hits,
			.misses = st->pool[n].misses,
			.limit_bytes = st->pool[n].limit_bytes,
		};
	}
}

static void refresh_heap(const struct heap *heap, struct dmaheap_stats_heap *h)
{
	struct heap_stats st;

	heap_get_stats(heap, &st);
	segment_begin(&h->seq);
	COPY_TEXT(h->name, heap_name(heap));
	COPY_TEXT(h->policy, heap_policy(heap)->name);
	h->buffers = st.buffers;
	h->bytes = st.bytes;
	h->allocs = st.allocs;
	h->failures_though_free = st.failures_though_free;
	h->largest_free_at_high_water_bytes =
		st.largest_free_at_high_water_bytes;
	for (unsigned int n = 0; n < DMAHEAP_ORDER_COUNT; n++)
		h->blocks_taken[n] = st.blocks_taken[n];
	copy_pools(h, heap, &st);
	segment_end(&h->seq);
}

void stats_refresh(struct server *server)
{
	struct dmaheap_stats *st = segment_stats(server->segment);
	struct heap *heap;
	unsigned int i;

	loop_timer_clear(server->loop, &server->refresh);
	refresh_daemon(server, &st->daemon);
	refresh_node(server, &st->node);
	refresh_vmstat(server, &st->vmstat);
	refresh_backing(server, &st->backing);
	for (i = 0; i < DMAHEAP_STATS_HEAPS_MAX &&
		    (heap = heap_set_get(server->heaps, i));
	     i++)
		refresh_heap(heap, &st->heap[i]);
	st->n_heaps = i;
}

/* The moment for what must not be done while a request waits. */
void stats_timer(void *ctx)
{
	struct server *server = ctx;

	(void)objtrack_trim(server->track);
	stats_refresh(server);
}

void stats_touch(struct server *server)
{
	if (!server->refresh.armed)
		loop_timer_set(server->loop, &server->refresh,
			       clock_now_ns() + STATS_REFRESH_NS);
}

static uint32_t heap_index(struct server *s, const struct heap *heap)
{
	uint32_t i = 0;

	while (heap_set_get(s->heaps, i) != heap)
		i++;
	return i;
}

static void add(struct dmaheap_histogram *h, uint64_t value)
{
	h->count++;
	h->sum += value;
	h->max = MAX(h->max, value);
	h->bucket[histogram_bucket(value)]++;
}

/* Counted here, not by the heap, which only sees what reaches the node. */
void stats_refused(struct server *server, const struct heap *heap)
{
	struct dmaheap_stats_heap *h =
		&segment_stats(server->segment)->heap[heap_index(server, heap)];

	segment_begin(&h->seq);
	h->failures++;
	segment_end(&h->seq);
	stats_touch(server);
}

void stats_allocated(struct server *server, const struct heap *heap,
		     struct dmaheap_stats_event *event)
{
	struct dmaheap_stats_heap *h;

	event->heap = heap_index(server, heap);
	h = &segment_stats(server->segment)->heap[event->heap];
	if (event->status) {
		stats_refused(server, heap);
	} else {
		segment_begin(&h->seq);
		add(&h->measured_ns, event->measured_total_ns);
		add(&h->modelled_stall_ns, event->modelled_stall_ns);
		segment_end(&h->seq);
	}
	segment_add_event(server->segment, event);
	stats_touch(server);
}

void stats_parked(struct server *server, bool found)
{
	struct dmaheap_stats_backing *b =
		&segment_stats(server->segment)->backing;

	segment_begin(&b->seq);
	if (found)
		b->parked_hits++;
	else
		b->parked_misses++;
	segment_end(&b->seq);
}
