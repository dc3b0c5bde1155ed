/* SPDX-License-Identifier: MIT */
#include "server/alloc_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "server/inject.h"
#include "server/outcome.h"
#include "server/stats.h"

static void alloc_free(struct alloc *a)
{
	struct server *s = alloc_server(a);

	loop_timer_clear(s->loop, &a->stall);
	quota_charge_release(&a->charge);
	list_remove(&a->session_link);
	list_remove(&a->server_link);
	objtrack_forget(s->track, 0, SERVER_OBJECT_REQUEST, (uintptr_t)a);
	free(a);
	server_check_drained(s);
}

static void drop_items(struct alloc *a)
{
	for (uint32_t i = 0; i < a->n_items; i++)
		alloc_item_drop(&a->items[i]);
	a->n_pending = 0;
	a->n_waiting = 0;
	quota_charge_release(&a->charge);
}

void alloc_fail(struct alloc *a, int err, const char *fmt, ...)
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

static void record(struct alloc *a, const struct alloc_item *item)
{
	struct server *s = alloc_server(a);
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
	server_pools_changed(alloc_server(a));
	conn_reply(a->session->conn, &a->header, iov, ARRAY_SIZE(iov), fds,
		   a->n_items);
}

static void stall_over(void *ctx)
{
	alloc_try_finish(ctx);
}

void alloc_try_finish(struct alloc *a)
{
	uint64_t now_ns;

	if (a->n_pending)
		return;
	if (a->deadline_ns) {
		now_ns = clock_now_ns();
		if (!a->ready_ns)
			a->ready_ns = now_ns;
		if (now_ns < a->deadline_ns) {
			loop_timer_set(alloc_server(a)->loop, &a->stall,
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

static void set_deadline(struct alloc *a)
{
	const struct server *s = alloc_server(a);
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
	const struct server *s = alloc_server(a);
	uint32_t n = s->recycling.n_waiting;

	backing_hurry(s->backing, n > a->n_waiting ? 1 : n);
}

static void run(struct alloc *a)
{
	struct inject_verdict v =
		inject_decide(alloc_server(a)->inject, a->session->peer->uid,
			      a->session->peer->pid, heap_name(a->heap));

	if (v.err)
		alloc_fail(a, v.err, "heap %s: " DMAHEAP_INJECTED_TEXT,
			   heap_name(a->heap));
	for (uint32_t i = 0; !a->err && i < a->n_items; i++)
		if (!alloc_item_start(&a->items[i], true))
			break;
	if (a->n_waiting)
		hurry(a);
	a->injected_ns = v.stall_ns;
	set_deadline(a);
	alloc_try_finish(a);
}

void alloc_resume(struct recycling_wait *wait)
{
	struct alloc_item *item = container_of(wait, struct alloc_item, wait);
	struct alloc *a = item->alloc;

	item->report.measured_queue_ns = clock_now_ns() - a->received_ns;
	a->n_pending--;
	a->n_waiting--;
	hurry(a);
	(void)alloc_item_start(item, false); /* or a->err is set */
	set_deadline(a);
	alloc_try_finish(a);
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

static struct heap *find_heap(struct server *s, const char *name)
{
	return heap_set_find(s->heaps, *name ? name : "system");
}

void alloc_deny(struct session *session, const struct request *request,
		const struct quota_denial *denial)
{
	struct server *s = session->server;
	struct heap *heap = find_heap(s, request->codec.body.alloc.heap_name);

	if (heap)
		stats_refused(s, heap);
	session_deny(session, &request->codec.header, denial);
}

void alloc_start(struct session *session, const struct request *request)
{
	const struct dmaheap_alloc_req *req = &request->codec.body.alloc;
	const struct dmaheap_header *header = &request->codec.header;
	struct server *s = session->server;
	struct heap *heap = find_heap(s, req->heap_name);
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
			       log_quote(quoted, sizeof(quoted),
					 req->heap_name));
		return;
	}
	r = check(session, req, &len_bytes, text, sizeof(text));
	if (r) {
		stats_refused(s, heap);
		session_refuse(session, header,
			       outcome_errno(OUTCOME_OF_SERVER, r), "%s", text);
		return;
	}
	a = alloc_new(session, request, heap, len_bytes);
	if (!a) {
		stats_refused(s, heap);
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
		alloc_deny(session, request, &denial);
		alloc_free(a);
		return;
	} else if (r) {
		stats_refused(s, heap);
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
