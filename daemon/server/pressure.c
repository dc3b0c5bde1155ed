/* SPDX-License-Identifier: MIT */
#include "server/pressure.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "server/load.h"
#include "server/outcome.h"
#include "server/play.h"
#include "server/server.h"
#include "server/session.h"
#include "server/stats.h"
#include "server/trace.h"

struct pressure {
	struct server *server;
	const struct session *owner; /* NULL: kept, or no pressure */
	bool kept;
	bool loaded;       /* the node is not the config's */
	bool restore;      /* and is to be again, once no buffer lives */
	struct play *play; /* a scenario that is running, or NULL */
};

int pressure_control_new(struct pressure **ret, struct server *server)
{
	struct pressure *p = calloc(1, sizeof(*p));

	if (!p)
		return err_raise(-ENOMEM);
	p->server = server;
	*ret = p;
	return 0;
}

struct pressure *pressure_control_free(struct pressure *pressure)
{
	if (!pressure)
		return NULL;
	pressure->play = play_free(pressure->play);
	free(pressure);
	return NULL;
}

static void own(struct pressure *p, const struct session *session,
		uint32_t flags)
{
	p->kept = flags & DMAHEAP_PRESSURE_KEEP;
	p->owner = p->kept ? NULL : session;
}

void pressure_check_restore(struct pressure *pressure)
{
	struct conf_error err;
	int r;

	if (!pressure->restore || load_is_busy(pressure->server))
		return;
	pressure->restore = false;
	r = load_node(pressure->server, NULL, NULL, &err);
	if (r)
		log_error("pressure restore=failed reason=\"%s\"",
			  r > 0 ? err.text : strerror(-r));
	else
		pressure->loaded = false;
}

static void release(struct pressure *p)
{
	p->owner = NULL;
	p->kept = false;
	p->play = play_free(p->play);
	server_advance(p->server);
	node_pressure_release(p->server->node);
	trace_pressure(p->server->trace, "kind=release");
	p->restore = p->loaded;
	pressure_check_restore(p);
	stats_touch(p->server);
}

void pressure_forget(struct pressure *pressure, const struct session *session)
{
	if (pressure->owner == session)
		release(pressure);
}

static const char *owner_name(const struct pressure *p)
{
	if (p->owner)
		return "connection";
	return p->kept ? "kept" : "none";
}

static void reply_status(struct session *session, const struct request *request)
{
	const struct pressure *p = session->server->pressure;
	_cleanup_(strbuf_finip) struct strbuf text = STRBUF_INIT;

	node_pressure_render(session->server->node, &text);
	strbuf_append(&text, "node=%s scenario=%s owner=%s\n",
		      p->loaded ? "loaded" : "configured",
		      p->play ? "playing" : "none", owner_name(p));
	if (strbuf_failed(&text))
		session_refuse(session, &request->codec.header, ENOMEM,
			       "the daemon has no memory for the text");
	else
		session_reply(session, &request->codec.header, text.s,
			      text.len);
}

static void fill(struct session *session, const struct request *request)
{
	uint64_t leave = request->codec.body.pressure.leave_bytes;
	struct server *s = session->server;
	char detail[64];

	node_pressure_fill(s->node, leave);
	snprintf(detail, sizeof(detail), "kind=fill leave=%" PRIu64, leave);
	trace_pressure(s->trace, detail);
}

static void fragment(struct session *session, const struct request *request)
{
	uint32_t max = request->codec.body.pressure.max_order;
	struct server *s = session->server;
	char detail[64];

	node_pressure_fragment(s->node, max);
	snprintf(detail, sizeof(detail), "kind=fragment max_order=%" PRIu32,
		 max);
	trace_pressure(s->trace, detail);
}

/* Return: 0, an outcome of the server with @err, or negative. */
static int load(struct session *session, const struct request *request,
		struct conf_error *err)
{
	struct server *s = session->server;
	_cleanup_(conf_texts_finip) struct conf_texts texts = CONF_TEXTS_INIT;
	int r = load_read_texts(request, &texts, err);

	if (r)
		return r;
	s->pressure->play = play_free(s->pressure->play);
	r = load_node(s, &texts, "snapshot", err);
	if (r)
		return r;
	s->pressure->loaded = true;
	s->pressure->restore = false;
	return 0;
}

static void play_over(void *ctx)
{
	struct pressure *p = ctx;

	p->play = play_free(p->play);
}

static int start_play(struct session *session, const struct request *request,
		      struct conf_error *err)
{
	struct pressure *p = session->server->pressure;
	struct play *play;
	int r = play_new(&play, session->server, request->fds[0], play_over, p,
			 err);

	if (r)
		return r;
	play_free(p->play);
	p->play = play;
	return 0;
}

static const char *const kind_names[] = {
	[DMAHEAP_PRESSURE_STATUS] = "status",
	[DMAHEAP_PRESSURE_RELEASE] = "release",
	[DMAHEAP_PRESSURE_LOW_MEMORY] = "low-memory",
	[DMAHEAP_PRESSURE_FILL] = "fill",
	[DMAHEAP_PRESSURE_FRAGMENT] = "fragment",
	[DMAHEAP_PRESSURE_LOAD] = "load",
	[DMAHEAP_PRESSURE_PLAY] = "play",
};

void pressure_serve(struct session *session, const struct request *request)
{
	const struct dmaheap_pressure_req *req = &request->codec.body.pressure;
	struct server *s = session->server;
	struct conf_error err = {{0}};
	int r = 0;

	server_advance(s);
	switch ((enum dmaheap_pressure_kind)req->kind) {
	case DMAHEAP_PRESSURE_STATUS:
		reply_status(session, request);
		return;
	case DMAHEAP_PRESSURE_RELEASE:
		release(s->pressure);
		break;
	case DMAHEAP_PRESSURE_LOW_MEMORY:
		node_pressure_low_memory(s->node);
		trace_pressure(s->trace, "kind=low-memory");
		break;
	case DMAHEAP_PRESSURE_FILL:
		fill(session, request);
		break;
	case DMAHEAP_PRESSURE_FRAGMENT:
		fragment(session, request);
		break;
	case DMAHEAP_PRESSURE_LOAD:
		r = load(session, request, &err);
		break;
	case DMAHEAP_PRESSURE_PLAY:
		r = start_play(session, request, &err);
		break;
	}
	if (r) {
		session_refuse(session, &request->codec.header,
			       outcome_errno(OUTCOME_OF_SERVER, r), "%s",
			       *err.text ? err.text : strerror(-r));
		return;
	}
	if (req->kind != DMAHEAP_PRESSURE_RELEASE)
		own(s->pressure, session, req->flags);
	log_info("pressure kind=%s keep=%u uid=%u", kind_names[req->kind],
		 req->flags & DMAHEAP_PRESSURE_KEEP ? 1u : 0u,
		 (unsigned int)session->peer->uid);
	stats_touch(s);
	session_reply(session, &request->codec.header, NULL, 0);
}
