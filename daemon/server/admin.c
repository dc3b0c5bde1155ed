/* SPDX-License-Identifier: MIT */
#include "server/admin.h"

#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/strbuf.h"
#include "server/inject.h"
#include "server/model.h"
#include "server/outcome.h"
#include "server/server.h"
#include "server/session.h"
#include "server/stats.h"
#include "server/trace.h"

#define LINE_MAX_BYTES 512u

static int server_errno(enum server_outcome outcome)
{
	return outcome_errno(OUTCOME_OF_SERVER, outcome);
}

gid_t admin_find_group(const char *name)
{
	const struct group *g;
	uint64_t gid;

	if (!*name)
		return (gid_t)-1;
	if (parse_u64(name, &gid) == 0)
		return gid < UINT32_MAX ? (gid_t)gid : (gid_t)-1;
	g = getgrnam(name);
	return g ? g->gr_gid : (gid_t)-1;
}

bool admin_is_allowed(const struct server *server, const struct conn_peer *peer)
{
	if (peer->uid == 0 || peer->uid == server->uid)
		return true;
	if (server->admin_gid == (gid_t)-1)
		return false;
	if (peer->gid == server->admin_gid)
		return true;
	for (size_t i = 0; i < peer->n_groups; i++)
		if (peer->groups[i] == server->admin_gid)
			return true;
	return false;
}

/* Answers itself when there is none. */
static struct heap *find_heap(struct session *session,
			      const struct request *request, const char *name)
{
	struct heap *heap = heap_set_find(session->server->heaps, name);
	char quoted[96];

	if (!heap)
		session_refuse(session, &request->codec.header,
			       server_errno(SERVER_E_NO_HEAP),
			       "there is no heap %s ([heap NAME])",
			       log_quote(quoted, sizeof(quoted), name));
	return heap;
}

static void reply_text(struct session *session, const struct request *request,
		       const struct strbuf *text)
{
	const struct dmaheap_header *header = &request->codec.header;
	struct dmaheap_text_reply reply = {.total_bytes = text->len};
	struct iovec iov[] = {
		{.iov_base = &reply, .iov_len = sizeof(reply)},
		{.iov_base = text->s, .iov_len = text->len},
	};

	if (strbuf_failed(text))
		session_refuse(session, header, ENOMEM,
			       "the daemon has no memory for the text");
	else
		conn_reply(session->conn, header, iov, ARRAY_SIZE(iov), NULL,
			   0);
}

static void show_policy(struct session *session, const struct request *request,
			const struct heap *heap)
{
	_cleanup_(strbuf_finip) struct strbuf text = STRBUF_INIT;

	policy_render(heap_policy(heap), &text);
	reply_text(session, request, &text);
}

/* One line KEY=VALUE. Return: true, or false with @why. */
static bool set_line(const struct config *config, struct policy *policy,
		     char *line, struct policy_error *why)
{
	struct policy_error reason = {{0}};
	char *equals = strchr(line, '=');
	char quoted[96];

	if (!equals) {
		snprintf(why->text, sizeof(why->text),
			 "%s is not of the form KEY=VALUE",
			 log_quote(quoted, sizeof(quoted), line));
		return false;
	}
	*equals = '\0';
	if (!strcmp(line, "policy") &&
	    config_find_policy(config, equals + 1, policy))
		return true;
	if (policy_set(policy, line, equals + 1, &reason) == 0)
		return true;
	snprintf(why->text, sizeof(why->text), "%s: %.400s",
		 log_quote(quoted, sizeof(quoted), line), reason.text);
	return false;
}

/* Return: the order that the known @key is about, or -1. */
static int order_of_key(const char *key)
{
	const char *digits = strchr(key, '.');
	char *end;
	long order;

	if (!digits)
		return -1;
	order = strtol(++digits, &end, 10);
	return end == digits ? -1 : (int)order;
}

/* What is set of an order that is never asked for would change nothing.
 * @orders: bit i: a line was about order i. */
static bool check_orders(const struct policy *policy, uint32_t orders,
			 struct policy_error *why)
{
	for (unsigned int n = 0; n < POLICY_ORDER_COUNT; n++) {
		if (!(orders & (1u << n)) || policy_has_order(policy, n))
			continue;
		snprintf(why->text, sizeof(why->text),
			 "order %u is not one of the policy's orders; set "
			 "orders as well",
			 n);
		return false;
	}
	return true;
}

static bool set_lines(const struct config *config, struct policy *policy,
		      const char *text, size_t n_bytes,
		      struct policy_error *why)
{
	const char *end = text + n_bytes;
	char line[LINE_MAX_BYTES];
	uint32_t orders = 0;
	int order;

	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		size_t n = (size_t)((newline ? newline : end) - text);

		if (n >= sizeof(line)) {
			snprintf(why->text, sizeof(why->text),
				 "a line of %zu bytes, at most %zu are allowed",
				 n, sizeof(line) - 1);
			return false;
		}
		memcpy(line, text, n);
		line[n] = '\0';
		if (n && !set_line(config, policy, line, why))
			return false;
		/* set_line() has ended the key where it ends */
		order = order_of_key(line);
		if (order >= 0)
			orders |= 1u << order;
		text += n + 1;
	}
	return check_orders(policy, orders, why);
}

static void set_policy(struct session *session, const struct request *request,
		       struct heap *heap)
{
	struct server *s = session->server;
	struct policy policy = *heap_policy(heap);
	struct policy_error why = {{0}};

	if (!set_lines(s->config, &policy, request->codec.tail,
		       request->codec.tail_bytes, &why)) {
		session_refuse(session, &request->codec.header,
			       server_errno(SERVER_E_FIELD), "%s", why.text);
		return;
	}
	server_advance(s);
	heap_set_policy(heap, &policy);
	trace_policy(s->trace, heap);
	backing_set_orders(s->backing, model_orders(s->heaps));
	stats_touch(s);
	log_info("policy heap=%s policy=%s uid=%u", heap_name(heap),
		 policy.name, (unsigned int)session->peer->uid);
	session_reply(session, &request->codec.header, NULL, 0);
}

void admin_policy(struct session *session, const struct request *request)
{
	const struct dmaheap_policy_req *req = &request->codec.body.policy;
	struct heap *heap =
		find_heap(session, request,
			  *req->heap_name ? req->heap_name : "system");

	if (!heap)
		return;
	if (req->op == DMAHEAP_POLICY_SHOW)
		show_policy(session, request, heap);
	else
		set_policy(session, request, heap);
}

static uint64_t pool_bytes(struct heap_set *heaps)
{
	struct heap_stats st;
	struct heap *heap;
	uint64_t sum = 0;

	for (unsigned int i = 0; (heap = heap_set_get(heaps, i)); i++) {
		heap_get_stats(heap, &st);
		sum += st.pool_bytes;
	}
	return sum;
}

static uint64_t shrink(struct server *s, struct heap *heap, uint64_t to_bytes)
{
	uint64_t freed;

	server_advance(s);
	freed = heap_shrink(heap, to_bytes);
	trace_shrink(s->trace, heap, to_bytes);
	return freed;
}

/* Takes from one heap after the other what all of them have too much. */
static uint64_t shrink_all(struct server *s, uint64_t to_bytes)
{
	uint64_t total = pool_bytes(s->heaps), freed = 0;
	struct heap_stats st;
	struct heap *heap;

	for (unsigned int i = 0; (heap = heap_set_get(s->heaps, i)); i++) {
		uint64_t excess;

		if (total - freed <= to_bytes)
			break;
		excess = total - freed - to_bytes;
		heap_get_stats(heap, &st);
		freed += shrink(s, heap,
				st.pool_bytes - MIN(excess, st.pool_bytes));
	}
	return freed;
}

void admin_shrink(struct session *session, const struct request *request)
{
	const struct dmaheap_shrink_req *req = &request->codec.body.shrink;
	struct server *s = session->server;
	struct dmaheap_shrink_reply reply;
	struct heap_stats st;
	struct heap *heap;

	if (!*req->heap_name) {
		reply.freed_bytes = shrink_all(s, req->to_bytes);
		reply.pool_bytes = pool_bytes(s->heaps);
	} else {
		heap = find_heap(session, request, req->heap_name);
		if (!heap)
			return;
		reply.freed_bytes = shrink(s, heap, req->to_bytes);
		heap_get_stats(heap, &st);
		reply.pool_bytes = st.pool_bytes;
	}
	stats_touch(s);
	session_reply(session, &request->codec.header, &reply, sizeof(reply));
}

void admin_reload(struct session *session, const struct request *request)
{
	char report[DMAHEAP_ERROR_TEXT_MAX_BYTES];
	int r = server_reload(session->server, report, sizeof(report));

	if (r)
		session_refuse(session, &request->codec.header,
			       outcome_errno(OUTCOME_OF_SERVER, r), "%s",
			       report);
	else
		session_reply(session, &request->codec.header, report,
			      strlen(report));
}

static void log_injection(const struct session *session,
			  const struct dmaheap_inject_req *r)
{
	char uid[16] = "any", pid[16] = "any";

	if (r->uid != DMAHEAP_INJECT_ANY_ID)
		snprintf(uid, sizeof(uid), "%" PRIu32, r->uid);
	if (r->pid != DMAHEAP_INJECT_ANY_ID)
		snprintf(pid, sizeof(pid), "%" PRIu32, r->pid);
	log_info("inject fail_nth=%" PRIu32 " fail_rate_ppm=%" PRIu32
		 " errno=%d stall_ms=%" PRIu32 " count=%" PRIu32
		 " heap=%s of_uid=%s of_pid=%s keep=%u uid=%u",
		 r->fail_nth, r->fail_rate_ppm, r->err ? r->err : ENOMEM,
		 r->stall_ms, r->count, *r->heap_name ? r->heap_name : "any",
		 uid, pid, r->flags & DMAHEAP_INJECT_KEEP ? 1u : 0u,
		 (unsigned int)session->peer->uid);
}

void admin_inject(struct session *session, const struct request *request)
{
	const struct dmaheap_inject_req *req = &request->codec.body.inject;
	struct server *s = session->server;
	const void *owner = req->flags & DMAHEAP_INJECT_KEEP ? NULL : session;
	char error[128];
	int r;

	if (req->flags & DMAHEAP_INJECT_CLEAR) {
		inject_clear(s->inject);
		log_info("inject clear uid=%u",
			 (unsigned int)session->peer->uid);
		session_reply(session, &request->codec.header, NULL, 0);
		return;
	}
	if (*req->heap_name && !find_heap(session, request, req->heap_name))
		return;
	r = inject_add(s->inject, owner, req, error, sizeof(error));
	if (r == INJECT_E_FIELD)
		session_refuse(session, &request->codec.header,
			       server_errno(SERVER_E_FIELD), "%s", error);
	else if (r == INJECT_E_FULL)
		session_refuse(session, &request->codec.header,
			       server_errno(SERVER_E_BUSY),
			       "at most %u rules are allowed; inject clear",
			       INJECT_RULES_MAX);
	else if (r)
		session_refuse(session, &request->codec.header, ENOMEM,
			       "the daemon has no memory of its own");
	if (r)
		return;
	log_injection(session, req);
	session_reply(session, &request->codec.header, NULL, 0);
}

void admin_trace(struct session *session, const struct request *request)
{
	struct server *s = session->server;
	int fd = -1;
	int r = trace_open(s->trace, &fd);

	if (r)
		session_refuse(session, &request->codec.header,
			       outcome_errno(OUTCOME_OF_SERVER, r),
			       "cannot open another trace: %s",
			       strerror(outcome_errno(OUTCOME_OF_SERVER, r)));
	else
		conn_reply(session->conn, &request->codec.header, NULL, 0, &fd,
			   1);
}
