/* SPDX-License-Identifier: MIT */
#include "server/query.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/strbuf.h"
#include "server/live.h"
#include "server/outcome.h"
#include "server/server.h"
#include "server/session.h"
#include "server/stats.h"

/* What a payload may hold beside the header. */
#define PAYLOAD_MAX_BYTES                                                      \
	(DMAHEAP_MESSAGE_MAX_BYTES - sizeof(struct dmaheap_header))

#define COPY_TEXT(to, from) snprintf((to), sizeof(to), "%s", (from))

static int server_errno(enum server_outcome outcome)
{
	return outcome_errno(OUTCOME_OF_SERVER, outcome);
}

void query_hello(struct session *session, const struct request *request)
{
	const struct server *s = session->server;
	struct dmaheap_hello_reply reply = {
		.page_size_bytes = node_params(s->node)->page_size_bytes,
		.instance_id = s->instance_id,
		.daemon_pid = getpid(),
	};

	if (s->lifetime != BACKING_LIFETIME_EXPLICIT)
		reply.features |= DMAHEAP_FEATURE_EXACT_LIFETIME;
	if (session->is_admin)
		reply.features |= DMAHEAP_FEATURE_ADMIN;
	COPY_TEXT(reply.daemon_version, DMAHEAP_VERSION);
	session_reply(session, &request->codec.header, &reply, sizeof(reply));
}

void query_heaps(struct session *session, const struct request *request)
{
	struct {
		struct dmaheap_records_reply head;
		struct dmaheap_heap_record records[CONFIG_HEAPS_MAX];
	} reply = {.head = {.record_bytes = sizeof(reply.records[0])}};
	struct heap *heap;
	uint32_t n = 0;

	for (; n < CONFIG_HEAPS_MAX &&
	       (heap = heap_set_get(session->server->heaps, n));
	     n++) {
		struct dmaheap_heap_record *r = &reply.records[n];

		COPY_TEXT(r->name, heap_name(heap));
		COPY_TEXT(r->policy, heap_policy(heap)->name);
		COPY_TEXT(r->aliases, heap_aliases(heap));
		if (heap_flags(heap) & HEAP_FLAG_UNCACHED)
			r->flags |= DMAHEAP_HEAP_UNCACHED;
	}
	reply.head.n_records = n;
	session_reply(session, &request->codec.header, &reply,
		      sizeof(reply.head) + n * sizeof(reply.records[0]));
}

void query_set_name(struct session *session, const struct request *request)
{
	struct live *l = live_of_fd(session->server, request->fds[0]);

	if (!l || l->buffer->state != BUFFER_LIVE) {
		session_refuse(session, &request->codec.header,
			       server_errno(SERVER_E_NOT_BUFFER),
			       "the fd is not a live buffer of this daemon");
		return;
	}
	COPY_TEXT(l->buffer->name, request->codec.body.set_name.name);
	/* Our own: no thread is needed to close it. */
	request->fds[0] = fd_close(request->fds[0]);
	session_reply(session, &request->codec.header, NULL, 0);
}

static uint8_t wire_state(const struct buffer *b)
{
	static const uint8_t states[] = {
		[BUFFER_LIVE] = DMAHEAP_BUFFER_LIVE,
		[BUFFER_RELEASED] = DMAHEAP_BUFFER_RELEASED,
		[BUFFER_PARKED] = DMAHEAP_BUFFER_PARKED,
	};

	return states[b->state];
}

static void fill_buffer(struct dmaheap_buffer_record *r, const struct buffer *b)
{
	const struct live *l = b->owner;
	dev_t dev;
	ino_t ino;

	*r = (struct dmaheap_buffer_record){
		.id = b->id,
		.size_bytes = b->len_bytes,
		.age_ns = clock_now_ns() - l->since_ns,
		.uid = b->uid,
		.state = wire_state(b),
	};
	if (l->bb) {
		backing_buffer_file(l->bb, &dev, &ino);
		r->dev = dev;
		r->ino = ino;
		r->backing = (uint8_t)backing_buffer_kind(l->bb);
	}
	if (l->peer) {
		r->pid = l->peer->pid;
		r->owner_is_dead = peer_is_dead(l->peer);
	}
	for (unsigned int n = 0; n < DMAHEAP_ORDER_COUNT; n++)
		r->blocks[n] = b->composition[n];
	COPY_TEXT(r->heap, heap_name(b->heap));
	COPY_TEXT(r->name, b->name);
}

void query_buffers(struct session *session, const struct request *request)
{
	const struct dmaheap_buffers_req *req = &request->codec.body.buffers;
	struct server *s = session->server;
	struct {
		struct dmaheap_buffers_reply head;
		struct dmaheap_buffer_record
			records[(PAYLOAD_MAX_BYTES -
				 sizeof(struct dmaheap_buffers_reply)) /
				sizeof(struct dmaheap_buffer_record)];
	} reply = {.head = {.record_bytes = sizeof(reply.records[0])}};
	uint32_t max = ARRAY_SIZE(reply.records), n = 0;
	struct buffer *b = heap_set_next_buffer(s->heaps, req->after_id);

	if (req->max_records && req->max_records < max)
		max = req->max_records;
	for (; b; b = heap_set_buffer_after(s->heaps, b)) {
		/* Without an owner it is still being made. */
		if (!b->owner ||
		    (!session->is_admin && b->uid != session->peer->uid))
			continue;
		if (n == max) {
			reply.head.more = 1;
			break;
		}
		fill_buffer(&reply.records[n++], b);
	}
	reply.head.n_records = n;
	session_reply(session, &request->codec.header, &reply,
		      sizeof(reply.head) + n * sizeof(reply.records[0]));
}

void query_stats(struct session *session, const struct request *request)
{
	struct server *s = session->server;
	struct dmaheap_stats_reply reply = {
		.segment_bytes = sizeof(struct dmaheap_stats),
	};
	struct iovec iov = {.iov_base = &reply, .iov_len = sizeof(reply)};
	int fd = -1;
	int r = segment_open(s->segment, &fd);

	if (r) {
		session_refuse(session, &request->codec.header,
			       server_errno(SERVER_E_NO_FD),
			       "cannot open the stats segment: %s",
			       strerror(-r));
		return;
	}
	stats_refresh(s);
	conn_reply(session->conn, &request->codec.header, &iov, 1, &fd, 1);
}

static void render(const struct server *s, uint32_t text, struct strbuf *out)
{
	switch ((enum dmaheap_node_text)text) {
	case DMAHEAP_NODE_BUDDYINFO:
		node_render_buddyinfo(s->node, out);
		break;
	case DMAHEAP_NODE_PAGETYPEINFO:
		node_render_pagetypeinfo(s->node, out);
		break;
	case DMAHEAP_NODE_VMSTAT:
		node_render_vmstat(s->node, out);
		heap_set_render_vmstat(s->heaps, out);
		break;
	case DMAHEAP_NODE_ZONEINFO:
		node_render_zoneinfo(s->node, out);
		break;
	case DMAHEAP_NODE_SLABINFO:
		slab_render_slabinfo(s->slabs, out);
		break;
	}
}

void query_node(struct session *session, const struct request *request)
{
	const struct dmaheap_node_req *req = &request->codec.body.node;
	struct dmaheap_text_reply reply = {.offset_bytes = req->offset_bytes};
	const struct dmaheap_header *header = &request->codec.header;
	struct strbuf *text = &session->text;
	struct iovec iov[2];
	size_t n;

	if (req->offset_bytes == 0) {
		strbuf_reset(text);
		session->text_kind = req->text;
		render(session->server, req->text, text);
	}
	if (strbuf_failed(text)) {
		session_refuse(session, header, ENOMEM,
			       "the daemon has no memory for the text");
		return;
	}
	if (req->text != session->text_kind || req->offset_bytes > text->len) {
		session_refuse(session, header, server_errno(SERVER_E_FIELD),
			       "offset_bytes: begin each text with 0");
		return;
	}
	n = MIN(text->len - req->offset_bytes,
		PAYLOAD_MAX_BYTES - sizeof(reply));
	reply.total_bytes = text->len;
	iov[0] = (struct iovec){.iov_base = &reply, .iov_len = sizeof(reply)};
	iov[1] =
		(struct iovec){.iov_base = text->s ? text->s + req->offset_bytes
						   : NULL,
			       .iov_len = n};
	conn_reply(session->conn, header, iov, 2, NULL, 0);
	if (req->offset_bytes + n == text->len)
		strbuf_fini(text); /* read to the end */
}

static void fill_quota(struct dmaheap_quota_record *r,
		       const struct quota *quota, uint32_t uid,
		       const struct quota_account *a)
{
	struct quota_limits l = quota_limits_of(quota, uid);

	*r = (struct dmaheap_quota_record){
		.uid = uid,
		.bytes_used = a->bytes,
		.bytes_limit = l.bytes,
		.buffers_used = a->buffers,
		.buffers_limit = l.buffers,
		.connections_used = a->connections,
		.connections_limit = l.connections,
		.requests_per_s_limit = l.requests_per_s,
		.denied = a->denied,
	};
}

void query_quota(struct session *session, const struct request *request)
{
	const struct quota *quota = session->server->quota;
	struct {
		struct dmaheap_records_reply head;
		struct dmaheap_quota_record
			records[(PAYLOAD_MAX_BYTES -
				 sizeof(struct dmaheap_records_reply)) /
				sizeof(struct dmaheap_quota_record)];
	} reply = {.head = {.record_bytes = sizeof(reply.records[0])}};
	const struct quota_account *a = NULL;
	uint32_t n = 0;

	while (n < ARRAY_SIZE(reply.records) && (a = quota_next(quota, a)))
		if (session->is_admin || a->uid == session->peer->uid)
			fill_quota(&reply.records[n++], quota, a->uid, a);
	reply.head.n_records = n;
	session_reply(session, &request->codec.header, &reply,
		      sizeof(reply.head) + n * sizeof(reply.records[0]));
}

void query_release(struct session *session, const struct request *request)
{
	const struct dmaheap_header *header = &request->codec.header;
	uint64_t id = request->codec.body.release.id;

	if (session->server->lifetime != BACKING_LIFETIME_EXPLICIT) {
		session_refuse(session, header,
			       server_errno(SERVER_E_UNSUPPORTED),
			       "RELEASE: close the fd, the daemon notices");
		return;
	}
	list_for_each(n, &session->lives)
	{
		struct live *l = list_entry(n, struct live, session_link);

		if (l->buffer->id != id)
			continue;
		live_release(l);
		session_reply(session, header, NULL, 0);
		return;
	}
	session_refuse(session, header, server_errno(SERVER_E_NO_BUFFER),
		       "id: no such buffer of this connection");
}
