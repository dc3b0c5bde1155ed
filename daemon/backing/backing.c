/* SPDX-License-Identifier: MIT */
#include "backing/backing.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include "backing/buffer.h"
#include "backing/choose.h"
#include "backing/memfd.h"
#include "backing/pressure.h"
#include "backing/thp.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"

/*
 * States of a buffer and who moves it on:
 *
 *	CREATING --worker--> READY --open--> LIVE --lease--> IDLE
 *	IDLE --recycle--> RECYCLING --worker--> PARKED --open--> LIVE
 *	READY, IDLE, PARKED, RECYCLING --drop--> DROPPING --worker--> gone
 *
 * The write lease is held from IDLE until the open that leaves PARKED.
 */

#define DEFAULT_N_WORKERS 2u

const char *backing_kind_name(enum backing_kind kind)
{
	static const char *const names[] = {"auto", "plain", "collapse",
					    "folio", "hugetlb"};

	return names[kind];
}

const char *backing_lifetime_name(enum backing_lifetime lifetime)
{
	static const char *const names[] = {"exact", "sweep", "explicit"};

	return names[lifetime];
}

/* Start and end. */

static void on_released(void *ctx, struct watched *w, bool late)
{
	struct backing *b = ctx;
	struct backing_buffer *bb =
		container_of(w, struct backing_buffer, watched);

	bb->state = BUFFER_IDLE;
	b->late_releases += late;
	/* The owner is told after all events were read: it may drop others. */
	list_add_tail(&b->released, &bb->watched.due_link);
}

static int add_event(struct backing *b, int fd)
{
	struct epoll_event event = {.events = EPOLLIN};

	if (fd < 0)
		return 0;
	if (epoll_ctl(b->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
		return err_raise(-errno);
	return 0;
}

static int open_events(struct backing *b)
{
	int r;

	b->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	b->timer_fd =
		timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (b->epoll_fd < 0 || b->timer_fd < 0)
		return err_raise(-errno);
	r = add_event(b, b->timer_fd);
	if (!r)
		r = add_event(b, lifetime_event_fd(b->lifetime));
	if (!r)
		r = add_event(b, workers_event_fd(b->workers));
	if (!r && b->pressure)
		r = add_event(b, pressure_event_fd(b->pressure));
	return r;
}

static int start(struct backing *b, const struct backing_params *params)
{
	const struct lifetime_ops ops = {.released = on_released, .ctx = b};
	unsigned int n =
		params->n_workers ? params->n_workers : DEFAULT_N_WORKERS;
	int r;

	b->fd_directory = memfd_open_directory();
	if (b->fd_directory < 0)
		return err_trace(b->fd_directory);
	r = lifetime_new(&b->lifetime, &ops);
	if (r)
		return err_trace(r);
	r = budget_new(&b->budget, params->budget_bytes, "");
	if (r)
		return err_trace(r);
	choose_backing(b, params);
	r = workers_new(&b->workers, n);
	if (r)
		return err_trace(r);
	/* Without PSI only the node's pressure is told. */
	if (pressure_new(&b->pressure))
		b->pressure = NULL;
	return open_events(b);
}

int backing_new(struct backing **ret, const struct backing_params *params,
		char error[BACKING_ERROR_BYTES])
{
	struct backing *b = calloc(1, sizeof(*b));
	int r;

	if (!b)
		return err_raise(-ENOMEM);
	b->ops = *params->ops;
	b->ctx = params->ctx;
	b->epoll_fd = -1;
	b->timer_fd = -1;
	b->fd_directory = -1;
	b->armed_ns = UINT64_MAX;
	list_init(&b->released);
	list_init(&b->creating);
	list_init(&b->creators);
	list_init(&b->waiting);
	r = start(b, params);
	if (r) {
		snprintf(error, BACKING_ERROR_BYTES,
			 "the backing cannot start: %s", strerror(-r));
		backing_free(b);
		return err_trace(r);
	}
	/* Only now: leases refused means that nothing may be used twice. */
	atomic_store(&b->recycle,
		     params->recycle && lifetime_mode(b->lifetime) !=
						BACKING_LIFETIME_EXPLICIT);
	*ret = b;
	return 0;
}

/* Dispatch. */

static void finish_job(struct backing *b, struct job *job)
{
	struct backing_buffer *bb =
		container_of(job, struct backing_buffer, job);

	if (bb->state == BUFFER_CREATING)
		buffer_created(b, bb);
	else if (bb->state == BUFFER_RECYCLING)
		buffer_recycled(b, bb);
	else
		buffer_dropped(b, bb);
}

static void finish_jobs(struct backing *b, struct job *job)
{
	struct job *next;

	for (; job; job = next) {
		next = job->next; /* finishing may free or submit it */
		finish_job(b, job);
	}
}

static void tell_released(struct backing *b)
{
	struct list_node *first;
	struct backing_buffer *bb;

	while ((first = list_first(&b->released)) != NULL) {
		bb = list_entry(first, struct backing_buffer, watched.due_link);
		list_remove(first);
		b->ops.last_reference(b->ctx, bb);
	}
}

void dispatch_arm_timer(struct backing *b, uint64_t now_ns)
{
	uint64_t due = lifetime_due_ns(b->lifetime);
	struct itimerspec at = {0};

	/* One that has gone off polls readable until it is set again. */
	if (due == b->armed_ns && (due > now_ns || due == UINT64_MAX))
		return;
	if (due != UINT64_MAX) {
		at.it_value.tv_sec = (time_t)(due / NSEC_PER_SEC);
		at.it_value.tv_nsec = (long)(due % NSEC_PER_SEC);
	}
	(void)timerfd_settime(b->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
	b->armed_ns = due;
}

void backing_dispatch(struct backing *b)
{
	uint64_t now_ns = clock_now_ns();

	workers_clear_event(b->workers);
	finish_jobs(b, workers_take_done(b->workers));
	lifetime_dispatch(b->lifetime, now_ns);
	tell_released(b);
	if (b->pressure && pressure_take(b->pressure) && b->ops.pressure)
		b->ops.pressure(b->ctx, UINT64_MAX);
	if (b->n_dropping == 0)
		create_retry_waiting(b);
	dispatch_arm_timer(b, now_ns);
}

int backing_split_releases(struct backing *b)
{
	int fd = lifetime_event_fd(b->lifetime);

	if (fd < 0 || epoll_ctl(b->epoll_fd, EPOLL_CTL_DEL, fd, NULL) < 0)
		return -1;
	return fd;
}

void backing_collect(struct backing *b)
{
	finish_jobs(b, workers_take_done(b->workers));
}

void backing_hurry(struct backing *b, unsigned int n)
{
	workers_hurry(b->workers, n);
}

int backing_event_fd(const struct backing *b)
{
	return b->epoll_fd;
}

/* The end. */

/* Everything that nobody holds goes to the workers a last time; no callback is
 * called any more. */
static void drop_remaining(struct backing *b)
{
	struct backing_buffer *bb, *next;

	for (unsigned int i = 0; i < BACKING_HASH_SIZE; i++) {
		for (bb = b->by_ino[i]; bb; bb = next) {
			next = bb->next;
			if (bb->state != BUFFER_LIVE) {
				backing_drop(b, bb);
				continue;
			}
			buffer_leave(b, bb);
			backing_buffer_free(bb); /* closed, not punched */
		}
	}
	list_for_each_safe(pos, &b->waiting)
		backing_cancel(b, list_entry(pos, struct making, link)->bb);
	list_for_each_safe(pos, &b->creating)
	{
		struct making *m = list_entry(pos, struct making, link);

		m->done = NULL;
		atomic_store(&m->bb->cancelled, true);
	}
}

/* Of the jobs that the workers ended meanwhile. A buffer that is whole after
 * all is closed only: nobody has it. */
static void free_jobs(struct backing *b, struct job *job)
{
	struct backing_buffer *bb;
	struct job *next;

	for (; job; job = next) {
		next = job->next;
		bb = container_of(job, struct backing_buffer, job);
		if (bb->state == BUFFER_CREATING)
			create_end(b, bb);
		else if (bb->state == BUFFER_RECYCLING)
			buffer_leave(b, bb);
		backing_buffer_free(bb);
	}
}

struct backing *backing_free(struct backing *b)
{
	struct job *job = NULL;

	if (!b)
		return NULL;
	if (b->workers)
		drop_remaining(b);
	b->workers = workers_stop(b->workers, &job);
	free_jobs(b, job);
	b->pressure = pressure_free(b->pressure);
	b->thp = thp_free(b->thp);
	b->lifetime = lifetime_free(b->lifetime);
	b->budget = budget_free(b->budget);
	fd_close(b->epoll_fd);
	fd_close(b->timer_fd);
	fd_close(b->fd_directory);
	free(b);
	return NULL;
}

/* Small things. */

void backing_set_orders(struct backing *b, uint32_t orders)
{
	choose_more_orders(b, orders);
}

void backing_set_limits(struct backing *b, uint64_t budget_bytes, bool recycle)
{
	budget_set_limit(b->budget, budget_bytes);
	atomic_store(&b->recycle, recycle && lifetime_mode(b->lifetime) !=
						     BACKING_LIFETIME_EXPLICIT);
}

void backing_buffer_set_owner(struct backing_buffer *bb, void *owner)
{
	bb->owner = owner;
}

void *backing_buffer_owner(const struct backing_buffer *bb)
{
	return bb->owner;
}

enum backing_kind backing_buffer_kind(const struct backing_buffer *bb)
{
	return (enum backing_kind)bb->kind;
}

uint64_t backing_buffer_size(const struct backing_buffer *bb)
{
	return bb->size_bytes;
}

void backing_buffer_file(const struct backing_buffer *bb, dev_t *ret_dev,
			 ino_t *ret_ino)
{
	*ret_dev = bb->dev;
	*ret_ino = bb->ino;
}

int backing_buffer_fd(const struct backing_buffer *bb)
{
	return bb->watched.own;
}

void backing_get_stats(struct backing *b, struct backing_stats *ret)
{
	const char *lifetime_why = lifetime_reason(b->lifetime);

	memset(ret, 0, sizeof(*ret));
	ret->mode = b->in_force;
	ret->lifetime = lifetime_mode(b->lifetime);
	snprintf(ret->reason, sizeof(ret->reason), "%s",
		 b->reason[0] ? b->reason : lifetime_why);
	snprintf(ret->lifetime_reason, sizeof(ret->lifetime_reason), "%s",
		 lifetime_why);
	ret->resident_bytes = budget_resident_bytes(b->budget);
	ret->parked_bytes = b->parked_bytes;
	ret->n_buffers = b->n_buffers;
	ret->n_parked = b->n_parked;
	ret->n_queued = workers_n_pending(b->workers);
	ret->dropped = b->dropped;
	ret->dropped_pinned = b->dropped_pinned;
	ret->dropped_holes = b->dropped_holes;
	ret->budget_bytes = budget_limit_bytes(b->budget);
	ret->budget_refusals = budget_n_refusals(b->budget);
	ret->late_releases = b->late_releases;
	ret->folio_fallbacks = atomic_load(&b->folio_fallbacks);
}

bool backing_check(struct backing *b)
{
	uint64_t n = 0, n_parked = 0, parked_bytes = 0, bytes = 0;
	uint64_t n_creating = 0;
	bool busy = b->n_creating || b->n_dropping;

	list_for_each(pos, &b->creators) n_creating +=
		list_entry(pos, struct creator, link)->n_creating;
	for (unsigned int i = 0; i < BACKING_HASH_SIZE; i++) {
		for (const struct backing_buffer *bb = b->by_ino[i]; bb;
		     bb = bb->next) {
			bool parked = bb->state == BUFFER_PARKED;

			n++;
			n_parked += parked;
			parked_bytes += parked ? bb->size_bytes : 0;
			bytes += bb->size_bytes;
			busy |= bb->state == BUFFER_RECYCLING;
		}
	}
	return n == b->n_buffers && n_creating == b->n_creating &&
	       n_parked == b->n_parked && parked_bytes == b->parked_bytes &&
	       (busy || bytes == budget_resident_bytes(b->budget));
}
