/* SPDX-License-Identifier: MIT */
#include "server/alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "server/inject.h"
#include "server/live.h"
#include "server/outcome.h"
#include "server/server.h"
#include "server/session.h"
#include "server/stats.h"
#include "server/trace.h"

/* One buffer of the request. */
struct alloc_item {
	struct alloc *alloc;
	struct live *live;          /* NULL: not there yet, or failed */
	struct backing_buffer *bb;  /* while a worker makes it */
	struct recycling_wait wait; /* for one that is being recycled */
	int fd;                     /* for the client; -1: not yet */
	struct dmaheap_alloc_report report;
};

struct alloc {
	struct session *session;
	struct dmaheap_header header;
	struct dmaheap_alloc_req req;
	struct heap *heap;
	uint64_t len_bytes; /* of one buffer, whole pages */
	uint64_t received_ns;
	uint64_t started_ns;
	uint64_t ready_ns;    /* when only the stall was left to wait for */
	uint64_t injected_ns; /* a stall that was injected */
	uint64_t deadline_ns; /* no reply before; 0: no stall */
	struct loop_timer stall;
	struct quota_charge charge;    /* what the items do not hold yet */
	struct list_node session_link; /* session::allocs */
	struct list_node server_link;  /* server::allocs */
	int err;                       /* > 0: it failed, and is told so */
	char error[DMAHEAP_ERROR_TEXT_MAX_BYTES];
	uint32_t n_pending; /* items that a worker makes or recycles */
	uint32_t n_waiting; /* of them, for one that is recycled */
	uint32_t n_items;
	struct alloc_item items[];
};

static void try_finish(struct alloc *a);

static struct server *server_of(const struct alloc *a)
{
	return a->session->server;
}

static void alloc_free(struct alloc *a)
{
	struct server *s = server_of(a);

	loop_timer_clear(s->loop, &a->stall);
	quota_charge_release(&a->charge);
	list_remove(&a->session_link);
	list_remove(&a->server_link);
	objtrack_forget(s->track, 0, SERVER_OBJECT_REQUEST, (uintptr_t)a);
	free(a);
	server_check_drained(s);
}

/*
 * Undoes one item. A descriptor that was opened already is only closed: the
 * backing then sees the last reference go, as of any client.
 */
static void drop_item(struct alloc_item *item)
{
	struct server *s = server_of(item->alloc);

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

static void drop_items(struct alloc *a)
{
	for (uint32_t i = 0; i < a->n_items; i++)
		drop_item(&a->items[i]);
	a->n_pending = 0;
	a->n_waiting = 0;
	quota_charge_release(&a->charge);
}

_printf_(3, 4) static void fail(struct alloc *a, int err, const char *fmt, ...)
{
	va_list ap;

	if (!a->err) {
		a->err = err;
		va_start(ap, fmt);
		vsnprintf(a->error, sizeof(a->error), fmt, ap);
		va_end(ap);
	}
	drop_items(a);
}

static void fail_no_memory(struct alloc *a)
{
	struct server *s = server_of(a);
	uint32_t page = node_params(s->node)->page_size_bytes;
	struct node_page_counts c;

	node_page_counts(s->node, &c);
	fail(a, outcome_errno(OUTCOME_OF_HEAP, HEAP_E_NO_MEMORY),
	     "heap %s: the node has no memory for %" PRIu64 " bytes by policy "
	     "%s: %" PRIu64 " of %" PRIu64 " bytes are free ([node] size, "
	     "[heap %s] policy)",
	     heap_name(a->heap), a->len_bytes, heap_policy(a->heap)->name,
	     c.free_pages * page, c.total_pages * page, heap_name(a->heap));
}

static void record(struct alloc *a, const struct alloc_item *item)
{
	struct server *s = server_of(a);
	const struct dmaheap_alloc_report *r = item ? &item->report : NULL;
	struct dmaheap_stats_event e = {
		.status = -a->err,
		.size_bytes = a->len_bytes,
		.realtime_ns = clock_realtime_ns(),
		.measured_total_ns = clock_now_ns() - a->received_ns,
	};

	if (r) {
		e.id = r->id;
		memcpy(e.blocks, r->blocks, sizeof(e.blocks));
		e.source = r->source;
		e.backing = r->backing_got;
		e.modelled_node_ns = r->modelled_node_ns;
		e.modelled_stall_ns = r->modelled_stall_ns;
	}
	stats_allocated(s, a->heap, &e);
}

static void reply_error(struct alloc *a)
{
	record(a, NULL);
	session_refuse(a->session, &a->header, a->err, "%s", a->error);
}

static void reply_success(struct alloc *a)
{
	struct dmaheap_alloc_report reports[DMAHEAP_ALLOC_MAX_COUNT];
	struct dmaheap_alloc_reply head = {
		.n_records = a->n_items,
		.record_bytes = sizeof(reports[0]),
	};
	struct iovec iov[] = {
		{.iov_base = &head, .iov_len = sizeof(head)},
		{.iov_base = reports,
		 .iov_len = a->n_items * sizeof(reports[0])},
	};
	int fds[DMAHEAP_ALLOC_MAX_COUNT];
	uint64_t now_ns = clock_now_ns();

	for (uint32_t i = 0; i < a->n_items; i++) {
		struct alloc_item *item = &a->items[i];
		struct dmaheap_alloc_report *r = &item->report;

		r->measured_total_ns = now_ns - a->received_ns;
		if (a->deadline_ns && now_ns > a->ready_ns)
			r->waited_stall_ns = now_ns - a->ready_ns;
		record(a, item);
		reports[i] = *r;
		fds[i] = TAKE_FD(item->fd);
	}
	server_pools_changed(server_of(a));
	conn_reply(a->session->conn, &a->header, iov, ARRAY_SIZE(iov), fds,
		   a->n_items);
}

static void stall_over(void *ctx)
{
	try_finish(ctx);
}

/* Replies when neither worker nor stall is left to wait for. */
static void try_finish(struct alloc *a)
{
	uint64_t now_ns;

	if (a->n_pending)
		return;
	if (a->deadline_ns) {
		now_ns = clock_now_ns();
		if (!a->ready_ns)
			a->ready_ns = now_ns;
		if (now_ns < a->deadline_ns) {
			loop_timer_set(server_of(a)->loop, &a->stall,
				       a->deadline_ns);
			return;
		}
	}
	if (a->err)
		reply_error(a);
	else
		reply_success(a);
	alloc_free(a);
}

/* Opens the client's descriptor. Return: 0, or an outcome of the backing. */
static int open_item(struct alloc_item *item)
{
	struct alloc *a = item->alloc;
	struct server *s = server_of(a);
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
	fail(a, outcome_errno(OUTCOME_OF_BACKING, r), "%s",
	     text && *text ? text
			   : strerror(outcome_errno(OUTCOME_OF_BACKING, r)));
}

static void fail_open(struct alloc *a, int r)
{
	if (r == BACKING_E_FDS)
		fail(a, outcome_errno(OUTCOME_OF_BACKING, r),
		     "the daemon has no free file descriptor (RLIMIT_NOFILE)");
	else
		fail(a, outcome_errno(OUTCOME_OF_BACKING, r),
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
		try_finish(a);
		return;
	}
	live_attach(item->live, bb);
	item->report.measured_queue_ns += info->queue_ns;
	item->report.measured_populate_ns = info->populate_ns;
	set_reason(&item->report, info->reason);
	r = open_item(item);
	if (r)
		fail_open(a, r);
	try_finish(a);
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
	struct server *s = server_of(a);
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
		(uint8_t)server_of(item->alloc)->config->backing.mode;
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
	struct server *s = server_of(a);
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
	struct server *s = server_of(a);
	struct quota_charge charge;

	charge = split_charge(a);
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
	struct server *s = server_of(a);
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

/* Return: false when the request has failed. */
static bool start_item(struct alloc_item *item, bool may_wait)
{
	struct alloc *a = item->alloc;
	struct buffer *b =
		heap_find_parked(a->heap, a->session->peer->uid, a->len_bytes);
	int r;

	if (!b && may_wait && wait_for_recycled(item))
		return true;
	stats_parked(server_of(a), b != NULL);
	if (b && take_parked(item, b))
		return true;
	r = take_blocks(item);
	if (r == HEAP_E_NO_MEMORY || r == HEAP_E_TOO_LARGE) {
		fail_no_memory(a);
		return false;
	} else if (r) {
		fail(a, outcome_errno(OUTCOME_OF_HEAP, r),
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

static void set_deadline(struct alloc *a)
{
	const struct server *s = server_of(a);
	uint64_t wait_ns = a->injected_ns;

	for (uint32_t i = 0; i < a->n_items; i++) {
		const struct dmaheap_alloc_report *r = &a->items[i].report;

		if (s->config->daemon.latency == CONFIG_LATENCY_STALLS)
			wait_ns += r->modelled_stall_ns;
		else if (s->config->daemon.latency == CONFIG_LATENCY_DEVICE)
			wait_ns += r->modelled_node_ns;
	}
	if (wait_ns)
		a->deadline_ns = a->started_ns + wait_ns;
}

static struct alloc *alloc_new(struct session *session,
			       const struct request *request, struct heap *heap,
			       uint64_t len_bytes)
{
	const struct dmaheap_alloc_req *req = &request->codec.body.alloc;
	struct server *s = session->server;
	struct alloc *a =
		calloc(1, sizeof(*a) + req->count * sizeof(a->items[0]));

	if (!a)
		return NULL;
	objtrack_init(s->track, 0, SERVER_OBJECT_REQUEST, (uintptr_t)a);
	a->session = session;
	a->header = request->codec.header;
	a->req = *req;
	a->heap = heap;
	a->len_bytes = len_bytes;
	a->received_ns = request->received_ns;
	a->started_ns = clock_now_ns();
	a->n_items = req->count;
	loop_timer_init(&a->stall, stall_over, a);
	list_add_tail(&session->allocs, &a->session_link);
	list_add_tail(&s->allocs, &a->server_link);
	for (uint32_t i = 0; i < a->n_items; i++) {
		a->items[i].alloc = a;
		a->items[i].fd = -1;
		a->items[i].report.measured_queue_ns =
			a->started_ns - a->received_ns;
	}
	return a;
}

/* The workers tell when all that @a waits for is there, unless others wait. */
static void hurry(const struct alloc *a)
{
	const struct server *s = server_of(a);
	uint32_t n = s->recycling.n_waiting;

	backing_hurry(s->backing, n > a->n_waiting ? 1 : n);
}

static void run(struct alloc *a)
{
	struct inject_verdict v =
		inject_decide(server_of(a)->inject, a->session->peer->uid,
			      a->session->peer->pid, heap_name(a->heap));

	if (v.err)
		fail(a, v.err, "heap %s: failure injected (dmaheapctl inject)",
		     heap_name(a->heap));
	for (uint32_t i = 0; !a->err && i < a->n_items; i++)
		if (!start_item(&a->items[i], true))
			break;
	if (a->n_waiting)
		hurry(a);
	a->injected_ns = v.stall_ns;
	set_deadline(a);
	try_finish(a);
}

void alloc_resume(struct recycling_wait *wait)
{
	struct alloc_item *item = container_of(wait, struct alloc_item, wait);
	struct alloc *a = item->alloc;

	item->report.measured_queue_ns = clock_now_ns() - a->received_ns;
	a->n_pending--;
	a->n_waiting--;
	hurry(a);
	(void)start_item(item, false); /* or a->err is set */
	set_deadline(a);
	try_finish(a);
}

/* Return: 0 and the rounded length, or an outcome of the server. */
static int check(const struct session *session,
		 const struct dmaheap_alloc_req *req, uint64_t *ret_len_bytes,
		 char *text, size_t text_bytes)
{
	const struct server *s = session->server;
	uint64_t page = node_params(s->node)->page_size_bytes;

	if (req->len_bytes == 0 || req->len_bytes > UINT64_MAX - page + 1) {
		snprintf(text, text_bytes,
			 "len_bytes = %" PRIu64 ": 1 to %" PRIu64 " is allowed",
			 req->len_bytes, UINT64_MAX - page + 1);
		return SERVER_E_FIELD;
	}
	*ret_len_bytes = align_up(req->len_bytes, page);
	if (*ret_len_bytes > s->node_bytes / req->count) {
		snprintf(text, text_bytes,
			 "%" PRIu32 " x %" PRIu64 " bytes are more than the "
			 "node's %" PRIu64 " ([node] size)",
			 req->count, *ret_len_bytes, s->node_bytes);
		return SERVER_E_TOO_LARGE;
	}
	return 0;
}

void alloc_start(struct session *session, const struct request *request)
{
	const struct dmaheap_alloc_req *req = &request->codec.body.alloc;
	const struct dmaheap_header *header = &request->codec.header;
	struct server *s = session->server;
	const char *name = *req->heap_name ? req->heap_name : "system";
	struct heap *heap = heap_set_find(s->heaps, name);
	struct quota_denial denial;
	char text[256], quoted[96];
	uint64_t len_bytes = 0;
	struct alloc *a;
	int r;

	if (!heap) {
		session_refuse(session, header,
			       outcome_errno(OUTCOME_OF_SERVER,
					     SERVER_E_NO_HEAP),
			       "there is no heap %s ([heap NAME])",
			       log_quote(quoted, sizeof(quoted), name));
		return;
	}
	r = check(session, req, &len_bytes, text, sizeof(text));
	if (r) {
		session_refuse(session, header,
			       outcome_errno(OUTCOME_OF_SERVER, r), "%s", text);
		return;
	}
	a = alloc_new(session, request, heap, len_bytes);
	if (!a) {
		session_refuse(session, header, ENOMEM,
			       "the daemon has no memory of its own");
		return;
	}
	r = quota_charge(s->quota, session->peer->uid,
			 &(struct quota_charge){
				 .bytes = len_bytes * req->count,
				 .buffers = req->count,
			 },
			 &a->charge, &denial);
	if (r == QUOTA_E_EXCEEDED) {
		session_deny(session, header, &denial);
		alloc_free(a);
		return;
	} else if (r) {
		session_refuse(session, header,
			       outcome_errno(OUTCOME_OF_QUOTA, r),
			       "the daemon has no memory of its own");
		alloc_free(a);
		return;
	}
	run(a);
}

void alloc_cancel_all(struct session *session)
{
	list_for_each_safe(n, &session->allocs)
	{
		struct alloc *a = list_entry(n, struct alloc, session_link);

		drop_items(a);
		alloc_free(a);
	}
}
