/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backing/buffer.h"
#include "base/clock.h"
#include "base/err.h"

/*
 * The loop's half of making a buffer; make.c is the workers'. A buffer that
 * found too little memory waits while memory is being given back, and is tried
 * again then.
 */

#define N_WAITS_MAX 4u /* for drops, before a buffer is refused */

_unused_ static uint64_t runs_bytes(const struct backing_spec *spec)
{
	uint64_t bytes = 0;

	for (unsigned int i = 0; i < spec->n_runs; i++)
		bytes += ((uint64_t)spec->runs[i].n_blocks *
			  spec->page_size_bytes)
			 << spec->runs[i].order;
	return bytes;
}

static struct creator *creator_of(struct backing *b, uid_t uid)
{
	struct creator *c;

	list_for_each(pos, &b->creators)
	{
		c = list_entry(pos, struct creator, link);
		if (c->uid == uid)
			return c;
	}
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->uid = uid;
	list_add_tail(&b->creators, &c->link);
	return c;
}

static void creator_free_if_unused(struct creator *c)
{
	if (c->n_creating)
		return;
	list_remove(&c->link);
	free(c);
}

static void enter_queue(struct backing *b, struct making *m, struct creator *c)
{
	m->creator = c;
	c->n_creating++;
	b->n_creating++;
	list_add_tail(&b->creating, &m->link);
}

static void leave_queue(struct backing *b, struct making *m)
{
	list_remove(&m->link);
	b->n_creating--;
	m->creator->n_creating--;
	creator_free_if_unused(m->creator);
}

/*
 * A uid may have as many in the queue as it leaves free for others. So whoever
 * comes first finds half of it and leaves the other, and so on: it takes 14
 * greedy users at once to fill it.
 */
static bool is_full(const struct backing *b, const struct creator *c)
{
	return b->n_creating + c->n_creating >= BACKING_CREATING_MAX;
}

int backing_create(struct backing *b, const struct backing_spec *spec,
		   backing_created_fn done, void *ctx,
		   struct backing_buffer **ret)
{
	struct backing_buffer *bb;
	struct creator *c;
	struct making *m;

	assert(spec->n_runs <= BACKING_RUNS_MAX && spec->len_bytes > 0);
	assert(runs_bytes(spec) == spec->len_bytes);
	assert(strlen(spec->heap) < BACKING_HEAP_NAME_BYTES);
	c = creator_of(b, spec->uid);
	if (!c)
		return err_raise(-ENOMEM);
	if (is_full(b, c)) {
		creator_free_if_unused(c);
		return BACKING_E_BUSY;
	}
	bb = backing_buffer_new(b, spec->len_bytes, spec->uid, spec->client);
	m = calloc(1, sizeof(*m) + spec->n_runs * sizeof(m->runs[0]));
	if (!bb || !m) {
		creator_free_if_unused(c);
		free(bb);
		free(m);
		return err_raise(-ENOMEM);
	}
	bb->making = m;
	m->bb = bb;
	m->spec = *spec;
	memcpy(m->runs, spec->runs, spec->n_runs * sizeof(m->runs[0]));
	snprintf(m->heap, sizeof(m->heap), "%s", spec->heap);
	m->done = done;
	m->ctx = ctx;
	m->submitted_ns = clock_now_ns();
	m->reason = "";
	enter_queue(b, m, c);
	bb->job.step = make_step;
	*ret = bb;
	workers_submit(b->workers, &bb->job);
	return 0;
}

void making_set_error(struct making *m, const char *error)
{
	size_t bytes = strlen(error) + 1;
	char *text = realloc(m->error, bytes);

	if (!text)
		return;
	memcpy(text, error, bytes);
	m->error = text;
}

static void making_free(struct making *m)
{
	if (m)
		free(m->error);
	free(m);
}

void create_end(struct backing *b, struct backing_buffer *bb)
{
	leave_queue(b, bb->making);
	making_free(bb->making);
	bb->making = NULL;
}

void backing_cancel(struct backing *b, struct backing_buffer *bb)
{
	assert(bb->state == BUFFER_CREATING && bb->making->done);
	bb->making->done = NULL;
	atomic_store(&bb->cancelled, true);
	if (bb->making->waits) { /* not with the workers now */
		create_end(b, bb);
		backing_buffer_free(bb);
	}
}

/* Memory is short: have parked buffers dropped and wait for that, if it can
 * help. Return: true if the buffer will be tried again. */
static bool wait_for_memory(struct backing *b, struct backing_buffer *bb)
{
	struct making *m = bb->making;

	if (m->n_waits >= N_WAITS_MAX)
		return false;
	if (b->n_dropping == 0 && b->ops.pressure && !m->pressed) {
		m->pressed = true;
		b->ops.pressure(b->ctx, bb->size_bytes);
	}
	if (b->n_dropping == 0)
		return false;
	m->n_waits++;
	m->waits = true;
	list_remove(&m->link);
	list_add_tail(&b->waiting, &m->link);
	return true;
}

void create_retry_waiting(struct backing *b)
{
	list_for_each_safe(pos, &b->waiting)
	{
		struct making *m = list_entry(pos, struct making, link);

		list_remove(&m->link);
		list_add_tail(&b->creating, &m->link);
		m->waits = false;
		workers_submit(b->workers, &m->bb->job);
	}
}

/* Without memory for the sentence it is memory that was refused. */
static const char *error_of(const struct making *m)
{
	if (m->error)
		return m->error;
	return m->r ? "the kernel refused memory, for the buffer or to say why "
		      "there is none (vm.overcommit_memory, or none free)"
		    : "";
}

void buffer_created(struct backing *b, struct backing_buffer *bb)
{
	struct making *m = bb->making;
	backing_created_fn done = m->done;
	struct backing_info info = {
		.got = (enum backing_kind)bb->kind,
		.reason = m->reason[0] ? m->reason : b->reason,
		.error = error_of(m),
		.queue_ns = m->queue_ns,
		.populate_ns = m->populate_ns,
	};
	void *ctx = m->ctx;
	int r = m->r;

	if (done && r == BACKING_E_BUDGET && wait_for_memory(b, bb))
		return;
	if (r) {
		if (done)
			done(ctx, r, bb, &info);
		create_end(b, bb);
		backing_buffer_free(bb);
		return;
	}
	bb->state = BUFFER_READY;
	leave_queue(b, m);
	buffer_enter(b, bb, m->wd);
	if (done)
		done(ctx, 0, bb, &info);
	else
		backing_drop(b, bb);
	making_free(m);
}
