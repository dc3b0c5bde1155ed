/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "server/alloc_internal.h"
#include "server/outcome.h"
#include "server/stats.h"
#include "server/trace.h"

void alloc_item_drop(struct alloc_item *item)
{
	struct server *s = alloc_server(item->alloc);

	recycling_leave(&s->recycling, &item->wait);
	if (item->bb)
		backing_cancel(s->backing, item->bb);
	if (item->fd >= 0)
		item->fd = fd_close(item->fd);
	else if (item->live)
		live_discard(item->live);
	item->bb = NULL;
	item->live = NULL;
}

static void fail_no_memory(struct alloc *a)
{
	struct server *s = alloc_server(a);
	uint32_t page = node_params(s->node)->page_size_bytes;
	struct node_page_counts c;

	node_page_counts(s->node, &c);
	alloc_fail(a, outcome_errno(OUTCOME_OF_HEAP, HEAP_E_NO_MEMORY),
		   "heap %s: the node has no memory for %" PRIu64
		   " bytes by policy "
		   "%s: %" PRIu64 " of %" PRIu64
		   " bytes are free ([node] size, "
		   "[heap %s] policy)",
		   heap_name(a->heap), a->len_bytes, heap_policy(a->heap)->name,
		   c.free_pages * page, c.total_pages * page,
		   heap_name(a->heap));
}

/* Opens the client's descriptor. Return: 0, or an outcome of the backing. */
static int open_item(struct alloc_item *item)
{
	struct alloc *a = item->alloc;
	struct server *s = alloc_server(a);
	int r = backing_open(s->backing, item->live->bb, a->req.fd_flags,
			     &item->fd);

	if (r)
		return r;
	live_hand_out(item->live, a->session);
	item->report.backing_got = (uint8_t)backing_buffer_kind(item->live->bb);
	return 0;
}

static void set_reason(struct dmaheap_alloc_report *r, const char *reason)
{
	snprintf(r->backing_reason, sizeof(r->backing_reason), "%s", reason);
}

static void fail_backing(struct alloc *a, int r, const char *text)
{
	alloc_fail(a, outcome_errno(OUTCOME_OF_BACKING, r), "%s",
		   text && *text
			   ? text
			   : strerror(outcome_errno(OUTCOME_OF_BACKING, r)));
}

static void fail_open(struct alloc *a, int r)
{
	if (r == BACKING_E_FDS)
		alloc_fail(a, outcome_errno(OUTCOME_OF_BACKING, r),
			   "the daemon has no free file descriptor "
			   "(RLIMIT_NOFILE)");
	else
		alloc_fail(a, outcome_errno(OUTCOME_OF_BACKING, r),
			   "cannot open the buffer for the client: %s",
			   strerror(outcome_errno(OUTCOME_OF_BACKING, r)));
}

static void created(void *ctx, int r, struct backing_buffer *bb,
		    const struct backing_info *info)
{
	struct alloc_item *item = ctx;
	struct alloc *a = item->alloc;

	item->bb = NULL;
	a->n_pending--;
	if (r) {
		fail_backing(a, r, info->error);
		alloc_try_finish(a);
		return;
	}
	live_attach(item->live, bb);
	item->report.measured_queue_ns += info->queue_ns;
	item->report.measured_populate_ns = info->populate_ns;
	set_reason(&item->report, info->reason);
	r = open_item(item);
	if (r)
		fail_open(a, r);
	alloc_try_finish(a);
}

/* Equal orders in a row are one run for the backing. */
static unsigned int make_runs(const struct buffer *b, struct backing_run *runs)
{
	unsigned int n = 0;

	for (uint32_t i = 0; i < b->n_runs; i++) {
		if (n && runs[n - 1].order == b->runs[i].order) {
			runs[n - 1].n_blocks += b->runs[i].n_blocks;
			continue;
		}
		assert(n < BACKING_RUNS_MAX);
		runs[n++] = (struct backing_run){
			.order = b->runs[i].order,
			.n_blocks = b->runs[i].n_blocks,
		};
	}
	return n;
}

static int create_memory(struct alloc_item *item)
{
	struct alloc *a = item->alloc;
	struct server *s = alloc_server(a);
	const struct buffer *b = item->live->buffer;
	struct backing_run runs[BACKING_RUNS_MAX];
	struct backing_spec spec = {
		.len_bytes = a->len_bytes,
		.uid = b->uid,
		.client = (uintptr_t)a->session,
		.id = b->id,
		.page_size_bytes = node_params(s->node)->page_size_bytes,
		.heap = heap_name(a->heap),
		.runs = runs,
		.n_runs = make_runs(b, runs),
	};
	int r = backing_create(s->backing, &spec, created, item, &item->bb);

	if (!r)
		a->n_pending++;
	return r;
}

static void report_buffer(struct alloc_item *item)
{
	const struct buffer *b = item->live->buffer;
	struct dmaheap_alloc_report *r = &item->report;

	r->id = b->id;
	r->size_bytes = b->len_bytes;
	r->source = b->source;
	r->backing_asked =
		(uint8_t)alloc_server(item->alloc)->config->backing.mode;
	for (unsigned int n = 0; n < DMAHEAP_ORDER_COUNT; n++)
		r->blocks[n] = b->composition[n];
}

/* The part of the request's charge that one buffer carries on. */
static struct quota_charge split_charge(struct alloc *a)
{
	struct quota_charge part;

	quota_charge_split(&a->charge,
			   &(struct quota_charge){
				   .bytes = a->len_bytes,
				   .buffers = 1,
			   },
			   &part);
	return part;
}

/* Return: true if @item waits for a buffer that is being recycled. */
static bool wait_for_recycled(struct alloc_item *item)
{
	struct alloc *a = item->alloc;
	struct server *s = alloc_server(a);
	const struct recycling_key key = {
		.heap = a->heap,
		.len_bytes = a->len_bytes,
		.uid = a->session->peer->uid,
	};

	if (!recycling_join(&s->recycling, &key, &item->wait))
		return false;
	a->n_pending++;
	a->n_waiting++;
	return true;
}

/* Return: true if the parked buffer @b serves @item. */
static bool take_parked(struct alloc_item *item, struct buffer *b)
{
	struct alloc *a = item->alloc;
	struct server *s = alloc_server(a);
	struct quota_charge charge;

	charge = split_charge(a);
	server_advance(s);
	heap_take_parked(a->heap, b);
	trace_take(s->trace, b);
	item->live = b->owner;
	live_reuse(item->live, a->session, &charge);
	report_buffer(item);
	if (!open_item(item))
		return true;
	/* Somebody got at it while it was parked, or no fd: not this one. */
	quota_charge_split(&item->live->charge,
			   &(struct quota_charge){
				   .bytes = a->len_bytes,
				   .buffers = 1,
			   },
			   &charge);
	live_discard(item->live);
	item->live = NULL;
	quota_charge_join(&a->charge, &charge);
	return false;
}

static int take_blocks(struct alloc_item *item)
{
	struct alloc *a = item->alloc;
	struct server *s = alloc_server(a);
	struct heap_request req = {
		.uid = a->session->peer->uid,
		.len_bytes = a->len_bytes,
		.start_ns = server_request_time(s),
	};
	struct dmaheap_alloc_report *report = &item->report;
	struct quota_charge charge;
	struct buffer *b;
	uint64_t before_ns = clock_now_ns();
	int r = heap_alloc(a->heap, &req, &b);

	report->measured_node_ns = clock_now_ns() - before_ns;
	report->modelled_node_ns = req.spent_ns;
	report->modelled_stall_ns = req.stall_ns;
	memcpy(report->fallback, req.fallback, sizeof(report->fallback));
	trace_alloc(s->trace, a->heap, req.uid, &req, r ? NULL : b,
		    r ? outcome_errno(OUTCOME_OF_HEAP, r) : 0);
	if (r)
		return r;
	charge = split_charge(a);
	r = live_new(&item->live, s, b, a->session, &charge);
	if (r) {
		quota_charge_release(&charge);
		live_return_blocks(s, b, HEAP_FINISH_NODE);
		return err_trace(r);
	}
	report_buffer(item);
	return 0;
}

bool alloc_item_start(struct alloc_item *item, bool may_wait)
{
	struct alloc *a = item->alloc;
	struct buffer *b =
		heap_find_parked(a->heap, a->session->peer->uid, a->len_bytes);
	int r;

	if (!b && may_wait && wait_for_recycled(item))
		return true;
	stats_parked(alloc_server(a), b != NULL);
	if (b && take_parked(item, b))
		return true;
	r = take_blocks(item);
	if (r == HEAP_E_NO_MEMORY || r == HEAP_E_TOO_LARGE) {
		fail_no_memory(a);
		return false;
	} else if (r) {
		alloc_fail(a, outcome_errno(OUTCOME_OF_HEAP, r),
			   "the daemon has no memory of its own");
		return false;
	}
	r = create_memory(item);
	if (r) {
		fail_backing(a, r,
			     r == BACKING_E_BUSY
				     ? "the queue of the backing's workers is "
				       "full ([backing] workers)"
				     : "the daemon has no memory of its own");
		return false;
	}
	return true;
}
