/* SPDX-License-Identifier: MIT */
#include "server/live.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "server/alloc.h"
#include "server/server.h"
#include "server/session.h"
#include "server/stats.h"
#include "server/trace.h"

int live_new(struct live **ret, struct server *server, struct buffer *buffer,
	     struct session *session, struct quota_charge *charge)
{
	struct live *l = slab_zalloc(server->live_slab, 0);

	if (!l)
		return err_raise(-ENOMEM);
	objtrack_init(server->track, 0, SERVER_OBJECT_LIVE, (uintptr_t)l);
	l->server = server;
	l->buffer = buffer;
	l->charge = *charge;
	*charge = (struct quota_charge){0};
	l->peer = session ? peer_ref(session->peer) : NULL;
	l->since_ns = clock_now_ns();
	list_init(&l->session_link);
	buffer->owner = l;
	*ret = l;
	return 0;
}

static void live_free(struct live *l)
{
	struct server *s = l->server;

	quota_charge_release(&l->charge);
	l->peer = peer_unref(l->peer);
	list_remove(&l->session_link);
	objtrack_forget(s->track, 0, SERVER_OBJECT_LIVE, (uintptr_t)l);
	slab_free(s->live_slab, 0, l);
}

void live_forget(struct live *live)
{
	if (live->handed_out)
		objtrack_deactivate(live->server->track, 0, SERVER_OBJECT_LIVE,
				    (uintptr_t)live);
	live->buffer->owner = NULL;
	live_free(live);
}

void live_attach(struct live *live, struct backing_buffer *bb)
{
	live->bb = bb;
	backing_buffer_set_owner(bb, live);
}

void live_reuse(struct live *live, struct session *session,
		struct quota_charge *charge)
{
	live->charge = *charge;
	*charge = (struct quota_charge){0};
	live->peer = peer_ref(session->peer);
	live->since_ns = clock_now_ns();
}

void live_hand_out(struct live *live, struct session *session)
{
	struct server *s = live->server;

	if (!live->handed_out)
		objtrack_activate(s->track, 0, SERVER_OBJECT_LIVE,
				  (uintptr_t)live);
	live->handed_out = true;
	if (s->lifetime == BACKING_LIFETIME_EXPLICIT) {
		list_remove(&live->session_link);
		list_add_tail(&session->lives, &live->session_link);
	}
}

static void finish_blocks(struct server *s, struct buffer *b,
			  enum heap_finish how)
{
	int r;

	server_advance(s);
	trace_finish(s->trace, b->id,
		     how == HEAP_FINISH_POOL ? "pool" : "node");
	r = heap_finish(b->heap, b, how);
	assert(r == 0);
	(void)r;
}

void live_return_blocks(struct server *server, struct buffer *buffer,
			enum heap_finish how)
{
	server_advance(server);
	trace_release(server->trace, buffer);
	heap_release(buffer->heap, buffer);
	finish_blocks(server, buffer, how);
}

/* The blocks go to the pools, or where the heap sees fit. */
static void finish(struct live *l, enum heap_finish how)
{
	finish_blocks(l->server, l->buffer, how);
	l->buffer = NULL;
	live_free(l);
}

/*
 * The buffer is not in use any more, its memory is still there: what was its
 * uid's is not charged any longer.
 */
static void begin_release(struct live *l)
{
	struct server *s = l->server;

	if (l->handed_out)
		objtrack_deactivate(s->track, 0, SERVER_OBJECT_LIVE,
				    (uintptr_t)l);
	l->handed_out = false;
	server_advance(s);
	trace_release(s->trace, l->buffer);
	heap_release(l->buffer->heap, l->buffer);
	l->buffer->name[0] = '\0';
	quota_charge_release(&l->charge);
	l->peer = peer_unref(l->peer);
	list_remove(&l->session_link);
	stats_touch(s);
}

void live_discard(struct live *live)
{
	begin_release(live);
	if (live->bb)
		backing_drop(live->server->backing, live->bb);
	finish(live, HEAP_FINISH_POOL);
}

/* Whether the pools would keep the blocks, so that zeroing is worth it. */
static bool may_park(const struct server *s, const struct buffer *b)
{
	const struct policy *p = heap_policy(b->heap);
	uint64_t page = node_params(s->node)->page_size_bytes;

	if (s->config->backing.recycle != 0 ||
	    s->lifetime == BACKING_LIFETIME_EXPLICIT)
		return false;
	for (unsigned int n = 0; n < POLICY_ORDER_COUNT; n++)
		if (b->composition[n] && ((uint64_t)b->composition[n] * page
					  << n) > p->pool_limit_bytes[n])
			return false;
	return true;
}

static void park(struct live *l)
{
	struct server *s = l->server;
	int r;

	server_advance(s);
	trace_finish(s->trace, l->buffer->id, "park");
	r = heap_finish(l->buffer->heap, l->buffer, HEAP_FINISH_PARK);
	if (!r)
		return;
	assert(r == HEAP_E_NOT_PARKED);
	backing_drop(s->backing, l->bb);
	live_free(l);
}

static struct recycling_key recycling_key(const struct live *l)
{
	return (struct recycling_key){
		.heap = l->buffer->heap,
		.len_bytes = l->buffer->len_bytes,
		.uid = l->buffer->uid,
	};
}

/* Return: the request that waited for @l, or NULL. */
static struct recycling_wait *end_recycling(struct live *l)
{
	struct server *s = l->server;
	const struct recycling_key key = recycling_key(l);
	struct recycling_wait *wait = NULL;

	s->n_recycling--;
	if (l->counted)
		wait = recycling_end(&s->recycling, &key);
	l->counted = false;
	return wait;
}

static void recycled(void *ctx, struct backing_buffer *bb _unused_,
		     enum backing_recycled what)
{
	struct live *l = ctx;
	struct server *s = l->server;
	struct recycling_wait *wait = end_recycling(l);

	if (what != BACKING_PARKABLE)
		finish(l, HEAP_FINISH_POOL);
	else
		park(l);
	if (wait)
		alloc_resume(wait);
	stats_touch(s);
	server_released(s);
}

static void begin_recycling(struct live *l)
{
	struct server *s = l->server;
	const struct recycling_key key = recycling_key(l);

	s->n_recycling++;
	l->counted = l->buffer->len_bytes <= BACKING_SMALL_BYTES &&
		     recycling_begin(&s->recycling, &key);
	backing_recycle(s->backing, l->bb, recycled, l);
}

static void release(struct live *l)
{
	struct server *s = l->server;

	begin_release(l);
	if (may_park(s, l->buffer)) {
		begin_recycling(l);
		return;
	}
	backing_drop(s->backing, l->bb);
	finish(l, HEAP_FINISH_POOL);
	server_released(s);
}

void live_release(struct live *live)
{
	assert(live->server->lifetime == BACKING_LIFETIME_EXPLICIT);
	release(live);
}

static void last_reference(void *ctx, struct backing_buffer *bb)
{
	struct server *s = ctx;

	s->n_releases++;
	release(backing_buffer_owner(bb));
}

/* Parked memory is all that can be given back: drop the oldest of it. */
static void pressure(void *ctx, uint64_t want_bytes)
{
	struct server *s = ctx;
	struct heap *h;

	for (unsigned int i = 0; want_bytes && (h = heap_set_get(s->heaps, i));
	     i++) {
		struct heap_stats st;
		uint64_t part;

		heap_get_stats(h, &st);
		part = MIN(st.parked_bytes, want_bytes);
		if (!part)
			continue;
		/* Single blocks have no memory, but the heap gives them first.
		 */
		server_advance(s);
		heap_shrink(h, st.parked_bytes - part);
		trace_shrink(s->trace, h, st.parked_bytes - part);
		want_bytes -= part;
	}
	stats_touch(s);
}

const struct backing_ops live_backing_ops = {
	.last_reference = last_reference,
	.pressure = pressure,
};

static void unpark(void *ctx, struct buffer *buffer)
{
	struct server *s = ctx;
	struct live *l = buffer->owner;

	backing_drop(s->backing, l->bb);
	live_free(l);
}

const struct heap_set_ops live_heap_ops = {
	.unpark = unpark,
};

struct live *live_of_fd(struct server *server, int fd)
{
	struct backing_buffer *bb;
	struct stat st;

	/* First: only a memfd answers, and fstat() of a stranger may wait. */
	if (fcntl(fd, F_GET_SEALS) < 0 || fstat(fd, &st) < 0)
		return NULL;
	bb = backing_find(server->backing, st.st_dev, st.st_ino);
	return bb ? backing_buffer_owner(bb) : NULL;
}
