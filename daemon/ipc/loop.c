/* SPDX-License-Identifier: MIT */
#include "ipc/loop.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "ipc/loop_impl.h"

static void on_alarm(void *ctx)
{
	struct loop *loop = ctx;
	uint64_t n;

	(void)!read(loop->alarm_fd, &n, sizeof(n));
	loop->alarm_ns = LOOP_FOREVER;
}

/*
 * A timeout of each wait programs the CPU's timer twice per request while a
 * timer is near, which costs microseconds in a virtual machine. So one timerfd
 * is set when an earlier timer comes up, and the waits have no timeout. Where
 * there is none (no descriptor left) they have.
 */
static int start_alarm(struct loop *loop)
{
	int r;

	loop->alarm_ns = LOOP_FOREVER;
	loop->alarm_fd =
		timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (loop->alarm_fd < 0)
		return 0;
	r = loop->backend->watch_new(&loop->alarm, loop, loop->alarm_fd,
				     LOOP_READABLE, on_alarm, loop);
	if (r)
		loop->alarm_fd = fd_close(loop->alarm_fd);
	return r;
}

static int new_backend(struct loop **ret, enum loop_kind kind, char *reason,
		       size_t reason_bytes)
{
	int r;

	(void)snprintf(reason, reason_bytes, "%s", "");
	if (kind != LOOP_EPOLL) {
		r = loop_uring_new(ret, reason, reason_bytes);
		if (r == 0 || kind == LOOP_URING)
			return err_trace(r);
	}
	r = loop_epoll_new(ret);
	if (r)
		(void)snprintf(reason, reason_bytes, "epoll: %s", strerror(-r));
	return err_trace(r);
}

int loop_new(struct loop **ret, enum loop_kind kind, char *reason,
	     size_t reason_bytes)
{
	struct loop *loop = NULL;
	int r = new_backend(&loop, kind, reason, reason_bytes);

	if (r)
		return err_trace(r);
	r = start_alarm(loop);
	if (r) {
		(void)snprintf(reason, reason_bytes, "the alarm: %s",
			       strerror(-r));
		loop->backend->free(loop);
		return err_trace(r);
	}
	*ret = loop;
	return 0;
}

struct loop *loop_free(struct loop *loop)
{
	if (!loop)
		return NULL;
	assert(loop->n_objects == 0);
	if (loop->alarm_fd >= 0)
		loop->backend->watch_free(loop->alarm);
	fd_close(loop->alarm_fd);
	return loop->backend->free(loop);
}

const char *loop_name(const struct loop *loop)
{
	return loop->backend->name;
}

static bool set_alarm(struct loop *loop, uint64_t at_ns)
{
	const struct itimerspec at = {
		.it_value = {.tv_sec = (time_t)(at_ns / NSEC_PER_SEC),
			     .tv_nsec = (long)(at_ns % NSEC_PER_SEC)},
	};

	if (timerfd_settime(loop->alarm_fd, TFD_TIMER_ABSTIME, &at, NULL) < 0)
		return false;
	loop->alarm_ns = at_ns;
	return true;
}

/* How long the next wait may last; the alarm is left early rather than set
 * anew: then it ends a wait for nothing, once. */
static uint64_t next_timeout(struct loop *loop)
{
	const struct loop_timer *first = timer_heap_first(&loop->timers);
	uint64_t now_ns;

	if (!first)
		return LOOP_FOREVER;
	now_ns = clock_now_ns();
	if (first->at_ns <= now_ns)
		return 0;
	if (loop->alarm_fd >= 0 &&
	    (loop->alarm_ns <= first->at_ns || set_alarm(loop, first->at_ns)))
		return LOOP_FOREVER;
	return first->at_ns - now_ns;
}

/*
 * A timer that is armed for the past by a callback is put after fired_ns, so
 * that it comes in the next round and cannot keep this one going for ever.
 */
static void run_timers(struct loop *loop)
{
	struct loop_timer *t = timer_heap_first(&loop->timers);

	if (!t)
		return;
	loop->fired_ns = clock_now_ns();
	while (t && t->at_ns <= loop->fired_ns && !loop->stopping) {
		loop_timer_clear(loop, t);
		t->fn(t->ctx);
		t = timer_heap_first(&loop->timers);
	}
}

int loop_run(struct loop *loop)
{
	loop->stopping = false;
	for (;;) {
		int r = loop->backend->wait(loop, next_timeout(loop));

		if (r)
			return err_trace(r);
		if (loop->stopping)
			return 0;
		run_timers(loop);
		if (loop->stopping)
			return 0;
	}
}

void loop_stop(struct loop *loop)
{
	loop->stopping = true;
}

int loop_watch_new(struct loop_watch **ret, struct loop *loop, int fd,
		   unsigned int events, loop_watch_fn fn, void *ctx)
{
	int r;

	assert(events && !(events & ~(LOOP_READABLE | LOOP_WRITABLE)));
	r = loop->backend->watch_new(ret, loop, fd, events, fn, ctx);
	if (r == 0)
		loop->n_objects++;
	return err_trace(r);
}

void loop_watch_pause(struct loop_watch *watch, bool paused)
{
	watch->loop->backend->watch_pause(watch, paused);
}

struct loop_watch *loop_watch_free(struct loop_watch *watch)
{
	if (watch) {
		watch->loop->n_objects--;
		watch->loop->backend->watch_free(watch);
	}
	return NULL;
}

int loop_socket_new(struct loop_socket **ret, struct loop *loop, int fd,
		    const struct loop_socket_ops *ops, void *ctx)
{
	int r = loop->backend->socket_new(ret, loop, fd, ops, ctx);

	if (r == 0)
		loop->n_objects++;
	return err_trace(r);
}

struct loop_socket *loop_socket_free(struct loop_socket *socket)
{
	if (socket) {
		socket->loop->n_objects--;
		socket->loop->backend->socket_free(socket);
	}
	return NULL;
}

void loop_socket_read(struct loop_socket *socket)
{
	socket->loop->backend->socket_read(socket);
}

void loop_socket_await_room(struct loop_socket *socket, bool on)
{
	socket->loop->backend->socket_await_room(socket, on);
}

int loop_acceptor_new(struct loop_acceptor **ret, struct loop *loop, int fd,
		      loop_accept_fn fn, void *ctx)
{
	int r = loop->backend->acceptor_new(ret, loop, fd, fn, ctx);

	if (r == 0)
		loop->n_objects++;
	return err_trace(r);
}

void loop_acceptor_resume(struct loop_acceptor *acceptor)
{
	acceptor->loop->backend->acceptor_resume(acceptor);
}

struct loop_acceptor *loop_acceptor_free(struct loop_acceptor *acceptor)
{
	if (acceptor) {
		acceptor->loop->n_objects--;
		acceptor->loop->backend->acceptor_free(acceptor);
	}
	return NULL;
}

void loop_timer_init(struct loop_timer *timer, loop_timer_fn fn, void *ctx)
{
	*timer = (struct loop_timer){.fn = fn, .ctx = ctx};
}

void loop_timer_set(struct loop *loop, struct loop_timer *timer, uint64_t at_ns)
{
	loop_timer_clear(loop, timer);
	timer->at_ns = MAX(at_ns, loop->fired_ns + 1);
	timer->armed = true;
	timer_heap_insert(&loop->timers, timer);
}

void loop_timer_clear(struct loop *loop, struct loop_timer *timer)
{
	if (!timer->armed)
		return;
	timer_heap_remove(&loop->timers, timer);
	timer->armed = false;
}
