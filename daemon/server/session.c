/* SPDX-License-Identifier: MIT */
#include "server/session.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "server/admin.h"
#include "server/adopt.h"
#include "server/alloc.h"
#include "server/inject.h"
#include "server/live.h"
#include "server/outcome.h"
#include "server/pressure.h"
#include "server/query.h"
#include "server/server.h"
#include "server/stats.h"

struct peer *peer_ref(struct peer *peer)
{
	peer->n_refs++;
	return peer;
}

struct peer *peer_unref(struct peer *peer)
{
	if (!peer || --peer->n_refs)
		return NULL;
	fd_close(peer->pidfd);
	free(peer);
	return NULL;
}

bool peer_is_dead(const struct peer *peer)
{
	struct pollfd p = {.fd = peer->pidfd, .events = POLLIN};

	return peer->pidfd >= 0 && poll(&p, 1, 0) > 0;
}

static struct peer *peer_new(const struct conn_peer *from)
{
	struct peer *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->n_refs = 1;
	p->uid = from->uid;
	p->pid = from->pid;
	p->pidfd = -1;
	/* Buffers outlive the connection, whose pidfd the original is. */
	if (from->pidfd >= 0)
		p->pidfd = fcntl(from->pidfd, F_DUPFD_CLOEXEC, 3);
	return p;
}

void session_refuse(struct session *session,
		    const struct dmaheap_header *request, int err,
		    const char *fmt, ...)
{
	char text[DMAHEAP_ERROR_TEXT_MAX_BYTES];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	conn_reply_error(session->conn, request, err, "%s", text);
}

void session_reply(struct session *session,
		   const struct dmaheap_header *request, const void *payload,
		   size_t payload_bytes)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)payload,
			    .iov_len = payload_bytes};

	conn_reply(session->conn, request, &iov, payload_bytes ? 1 : 0, NULL,
		   0);
}

static void log_denial(struct server *s, pid_t pid,
		       const struct quota_denial *d)
{
	uint32_t suppressed = 0;

	s->n_denied++;
	if (!log_ratelimited(&s->log_denied, clock_now_ns(), &suppressed))
		return;
	log_warn("denied uid=%u pid=%d limit=%s used=%llu asked=%llu "
		 "allowed=%llu key=\"[%s] %s\" suppressed=%u",
		 d->uid, (int)pid, d->limit, (unsigned long long)d->used,
		 (unsigned long long)d->asked, (unsigned long long)d->allowed,
		 d->section, d->limit, suppressed);
}

void session_deny(struct session *session, const struct dmaheap_header *request,
		  const struct quota_denial *denial)
{
	char text[DMAHEAP_ERROR_TEXT_MAX_BYTES];

	log_denial(session->server, session->peer->pid, denial);
	quota_denial_text(denial, text, sizeof(text));
	session_refuse(session, request,
		       outcome_errno(OUTCOME_OF_QUOTA, QUOTA_E_EXCEEDED), "%s",
		       text);
}

/* ---- requests ---- */

static void serve(struct session *session, const struct request *request)
{
	switch ((enum dmaheap_opcode)request->codec.header.opcode) {
	case DMAHEAP_OP_HELLO:
		query_hello(session, request);
		break;
	case DMAHEAP_OP_ALLOC:
		alloc_start(session, request);
		break;
	case DMAHEAP_OP_HEAPS:
		query_heaps(session, request);
		break;
	case DMAHEAP_OP_SET_NAME:
		query_set_name(session, request);
		break;
	case DMAHEAP_OP_BUFFERS:
		query_buffers(session, request);
		break;
	case DMAHEAP_OP_STATS:
		query_stats(session, request);
		break;
	case DMAHEAP_OP_NODE:
		query_node(session, request);
		break;
	case DMAHEAP_OP_QUOTA:
		query_quota(session, request);
		break;
	case DMAHEAP_OP_ADOPT:
		adopt_serve(session, request);
		break;
	case DMAHEAP_OP_RELEASE:
		query_release(session, request);
		break;
	case DMAHEAP_OP_PRESSURE:
		pressure_serve(session, request);
		break;
	case DMAHEAP_OP_INJECT:
		admin_inject(session, request);
		break;
	case DMAHEAP_OP_POLICY:
		admin_policy(session, request);
		break;
	case DMAHEAP_OP_SHRINK:
		admin_shrink(session, request);
		break;
	case DMAHEAP_OP_RELOAD:
		admin_reload(session, request);
		break;
	case DMAHEAP_OP_TRACE:
		admin_trace(session, request);
		break;
	}
}

static void dispatch(struct session *session, const struct request *request)
{
	struct server *s = session->server;
	struct quota_denial denial;

	s->n_requests++;
	server_look_for_parked(s);
	if (quota_request(session->charge.account, request->received_ns,
			  &denial)) {
		if (request->codec.header.opcode == DMAHEAP_OP_ALLOC)
			alloc_deny(session, request, &denial);
		else
			session_deny(session, &request->codec.header, &denial);
		return;
	}
	if (codec_is_admin(&request->codec) && !session->is_admin) {
		session_refuse(session, &request->codec.header,
			       outcome_errno(OUTCOME_OF_SERVER,
					     SERVER_E_NOT_ADMIN),
			       "%s: uid %u is neither root nor the daemon's "
			       "uid %u nor in group \"%s\" ([daemon] "
			       "admin_group)",
			       codec_opcode_name(request->codec.header.opcode),
			       (unsigned int)session->peer->uid,
			       (unsigned int)s->uid,
			       s->config->daemon.admin_group);
		return;
	}
	serve(session, request);
#ifdef DMAHEAP_DEBUG
	assert(heap_set_check(s->heaps));
	assert(recycling_check(&s->recycling));
#endif
}

/* ---- requests that wait for their turn ---- */

static void request_free(struct request *q)
{
	struct server *s = q->session->server;

	fair_remove(&q->item);
	list_remove(&q->session_link);
	conn_close_fds(q->session->conn, q->fds, q->n_fds);
	free(q->fds);
	free(q->tail);
	slab_free(s->request_slab, 0, q);
}

static struct request *request_copy(struct session *session,
				    const struct conn_request *from)
{
	struct server *s = session->server;
	struct request *q = slab_zalloc(s->request_slab, 0);

	if (!q)
		return NULL;
	q->session = session;
	q->codec = *from->codec;
	q->received_ns = from->received_ns;
	fair_item_init(&q->item);
	list_init(&q->session_link);
	if (q->codec.tail_bytes) {
		q->tail = malloc(q->codec.tail_bytes);
		if (!q->tail)
			goto out_free;
		memcpy(q->tail, from->codec->tail, q->codec.tail_bytes);
		q->codec.tail = q->tail;
	}
	if (from->n_fds) {
		q->fds = calloc(from->n_fds, sizeof(q->fds[0]));
		if (!q->fds)
			goto out_free;
		for (; q->n_fds < from->n_fds; q->n_fds++)
			q->fds[q->n_fds] = TAKE_FD(from->fds[q->n_fds]);
	}
	return q;
out_free:
	request_free(q);
	return NULL;
}

static void enqueue(struct session *session, const struct conn_request *request)
{
	struct server *s = session->server;
	struct request *q = request_copy(session, request);

	if (!q) {
		session_refuse(session, &request->codec->header, ENOMEM,
			       "the daemon has no memory of its own");
		return;
	}
	list_add_tail(&session->requests, &q->session_link);
	fair_push(&s->queue, &session->charge.account->source, &q->item);
	server_kick(s);
}

void session_pump(void *server)
{
	struct server *s = server;
	const struct list_node *last = s->queue.ready.prev;
	bool is_last = fair_queue_is_empty(&s->queue);

	/* One request of each uid that waits now; then new ones are read. */
	while (!is_last && !server_must_wait(s)) {
		struct list_node *first = list_first(&s->queue.ready);
		struct fair_item *item = fair_pop(&s->queue);
		struct request *q;

		if (!item)
			break;
		is_last = first == last;
		q = list_entry(item, struct request, item);
		dispatch(q->session, q);
		request_free(q);
	}
	if (!fair_queue_is_empty(&s->queue) && !server_must_wait(s))
		server_kick(s);
}

/* ---- the connection's callbacks ---- */

/* Of no use any more. */
static void session_end(struct session *session)
{
	session->peer = peer_unref(session->peer);
	strbuf_fini(&session->text);
	list_remove(&session->server_link);
}

static void session_free(struct session *session)
{
	struct server *s = session->server;

	session_end(session);
	quota_charge_release(&session->charge);
	objtrack_forget(s->track, 0, SERVER_OBJECT_SESSION, (uintptr_t)session);
	slab_free(s->session_slab, 0, session);
}

static struct session *session_new(struct server *s, struct conn *conn)
{
	struct session *n = slab_zalloc(s->session_slab, 0);

	if (!n)
		return NULL;
	objtrack_init(s->track, 0, SERVER_OBJECT_SESSION, (uintptr_t)n);
	n->server = s;
	n->conn = conn;
	list_init(&n->requests);
	list_init(&n->allocs);
	list_init(&n->lives);
	list_init(&n->server_link);
	n->peer = peer_new(conn_get_peer(conn));
	if (!n->peer) {
		session_free(n);
		return NULL;
	}
	n->is_admin = admin_is_allowed(s, conn_get_peer(conn));
	return n;
}

static int on_connect(void *ctx, struct conn *conn, char *text,
		      size_t text_bytes)
{
	struct server *s = ctx;
	struct session *n = session_new(s, conn);
	struct quota_denial denial;
	int r;

	if (!n) {
		snprintf(text, text_bytes,
			 "the daemon has no memory of its own");
		return ENOMEM;
	}
	r = quota_charge(s->quota, n->peer->uid,
			 &(struct quota_charge){.connections = 1}, &n->charge,
			 &denial);
	if (r == QUOTA_E_EXCEEDED) {
		log_denial(s, n->peer->pid, &denial);
		quota_denial_text(&denial, text, text_bytes);
	} else if (r) {
		snprintf(text, text_bytes,
			 "the daemon has no memory of its own");
	}
	if (r) {
		session_free(n);
		return outcome_errno(OUTCOME_OF_QUOTA, r);
	}
	conn_set_user(conn, n);
	list_add_tail(&s->sessions, &n->server_link);
	s->n_sessions++;
	return 0;
}

static void on_request(void *ctx, struct conn *conn,
		       const struct conn_request *request)
{
	struct server *s = ctx;
	struct session *session = conn_get_user(conn);
	struct request direct = {
		.session = session,
		.codec = *request->codec,
		.fds = request->fds,
		.n_fds = request->n_fds,
		.received_ns = request->received_ns,
	};

	if (s->draining)
		session_refuse(session, &request->codec->header,
			       outcome_errno(OUTCOME_OF_SERVER,
					     SERVER_E_DRAINING),
			       "the daemon is about to end");
	else if (quota_is_shared(s->quota) || server_must_wait(s) ||
		 !fair_queue_is_empty(&s->queue))
		enqueue(session, request);
	else
		dispatch(session, &direct); /* nobody to take turns with */
}

static void on_fault(void *ctx, struct conn *conn,
		     const struct codec_error *error, bool closing)
{
	struct server *s = ctx;
	const struct conn_peer *peer = conn_get_peer(conn);
	uint32_t suppressed = 0;
	char quoted[256];

	s->n_bad_requests++;
	if (!log_ratelimited(&s->log_fault, clock_now_ns(), &suppressed))
		return;
	log_warn("%s uid=%u pid=%d errno=%d reason=%s suppressed=%u",
		 closing ? "closing" : "bad-request", (unsigned int)peer->uid,
		 (int)peer->pid, error->err,
		 log_quote(quoted, sizeof(quoted), error->text), suppressed);
}

static void on_closed(void *ctx, struct conn *conn)
{
	struct server *s = ctx;
	struct session *session = conn_get_user(conn);

	alloc_cancel_all(session);
	inject_forget(s->inject, session);
	pressure_forget(s->pressure, session);
	list_for_each_safe(n, &session->requests)
		request_free(list_entry(n, struct request, session_link));
	list_for_each_safe(l, &session->lives)
		live_release(list_entry(l, struct live, session_link));
	s->n_sessions--;
	session_end(session);
	stats_touch(s);
}

static void on_gone(void *ctx, struct conn *conn)
{
	(void)ctx;
	session_free(conn_get_user(conn));
}

const struct conn_ops session_conn_ops = {
	.on_connect = on_connect,
	.on_request = on_request,
	.on_fault = on_fault,
	.on_closed = on_closed,
	.on_gone = on_gone,
};
