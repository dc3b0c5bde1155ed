/* SPDX-License-Identifier: MIT */
#include "server/adopt.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "server/live.h"
#include "server/outcome.h"
#include "server/server.h"
#include "server/session.h"
#include "server/stats.h"

static void log_refusal(struct session *session, const char *text)
{
	struct server *s = session->server;
	uint32_t suppressed = 0;
	char quoted[BACKING_ERROR_BYTES + 16];

	if (log_ratelimited(&s->log_fault, clock_now_ns(), &suppressed))
		log_warn("adopt-refused uid=%u pid=%d reason=%s suppressed=%u",
			 (unsigned int)session->peer->uid,
			 (int)session->peer->pid,
			 log_quote(quoted, sizeof(quoted), text), suppressed);
}

/* The model's side: blocks of the same composition, charged to its uid. */
static int take_blocks(struct server *s, const struct backing_identity *id,
		       struct live **ret)
{
	struct heap *heap = heap_set_find(s->heaps, id->heap);
	struct quota_charge charge = {0};
	struct buffer *b;
	int r;

	if (!heap)
		return -outcome_errno(OUTCOME_OF_SERVER, SERVER_E_NO_HEAP);
	if (id->page_size_bytes != node_params(s->node)->page_size_bytes)
		return -outcome_errno(OUTCOME_OF_HEAP, HEAP_E_COMPOSITION);
	r = quota_charge_forced(s->quota, id->uid,
				&(struct quota_charge){
					.bytes = id->size_bytes,
					.buffers = 1,
				},
				&charge);
	if (r)
		return r;
	r = heap_adopt(heap, id->uid, id->id, id->size_bytes, id->blocks, &b);
	if (r) {
		quota_charge_release(&charge);
		return -outcome_errno(OUTCOME_OF_HEAP, r);
	}
	r = live_new(ret, s, b, NULL, &charge);
	if (r) {
		quota_charge_release(&charge);
		live_return_blocks(s, b, HEAP_FINISH_NODE);
	}
	return r;
}

/* Return: whether @fd is one of this daemon's buffers now. */
static bool adopt_one(struct session *session, int fd,
		      struct dmaheap_adopt_record *ret)
{
	struct server *s = session->server;
	struct backing_buffer *bb = NULL;
	struct backing_identity id;
	struct live *live = NULL;
	char error[BACKING_ERROR_BYTES] = "";
	int r = backing_adopt(s->backing, fd, &bb, &id, error);

	if (r == BACKING_E_KNOWN) {
		live = backing_buffer_owner(bb);
		ret->id = live ? live->buffer->id : 0;
		return true;
	} else if (r) {
		ret->status = -outcome_errno(OUTCOME_OF_BACKING, r);
		log_refusal(session, error);
		return false;
	}
	r = take_blocks(s, &id, &live);
	if (r) {
		backing_forget(s->backing, bb);
		ret->status = r;
		log_refusal(session, strerror(-r));
		return false;
	}
	assert(live);
	live_attach(live, bb);
	live_hand_out(live, session);
	ret->id = live->buffer->id;
	return true;
}

void adopt_serve(struct session *session, const struct request *request)
{
	struct {
		struct dmaheap_records_reply head;
		struct dmaheap_adopt_record records[DMAHEAP_ADOPT_MAX_COUNT];
	} reply = {.head = {.record_bytes = sizeof(reply.records[0])}};
	uint32_t n = (uint32_t)request->n_fds;

	/* Our own need no thread to be closed by. */
	for (uint32_t i = 0; i < n; i++)
		if (adopt_one(session, request->fds[i], &reply.records[i]))
			request->fds[i] = fd_close(request->fds[i]);
	reply.head.n_records = n;
	stats_touch(session->server);
	session_reply(session, &request->codec.header, &reply,
		      sizeof(reply.head) + n * sizeof(reply.records[0]));
}
