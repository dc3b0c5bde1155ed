/* SPDX-License-Identifier: MIT */
#include "loop_support.h"

#include <dirent.h>
#include <stdio.h>

#include "base/clock.h"

#define PATIENCE_MS 10000u

enum loop_kind test_loop_kind;
void (*test_loop_set_up)(void);

void test_loop_use_uring(void)
{
	test_loop_kind = LOOP_URING;
	test_loop_set_up();
}

void test_loop_use_epoll(void)
{
	test_loop_kind = LOOP_EPOLL;
	test_loop_set_up();
}

bool test_loop_has_uring(void)
{
	char reason[256];
	struct loop *loop;

	if (loop_new(&loop, LOOP_URING, reason, sizeof(reason)) == 0) {
		loop_free(loop);
		return true;
	}
	printf("without the io_uring suite: %s\n", reason);
	return false;
}

struct loop *test_loop_new(void)
{
	char reason[256];
	struct loop *loop = NULL;

	T_REQUIRE(loop_new(&loop, test_loop_kind, reason, sizeof(reason)) == 0);
	return loop;
}

struct waiter {
	struct loop *loop;
	struct loop_timer timer;
	bool (*done)(void *);
	void *ctx;
	unsigned int n_ticks; /* left */
	bool is_done;
};

static void on_tick(void *ctx)
{
	struct waiter *w = ctx;

	w->is_done = w->done(w->ctx);
	if (w->is_done || w->n_ticks-- == 0)
		loop_stop(w->loop);
	else
		loop_timer_set(w->loop, &w->timer,
			       clock_now_ns() + NSEC_PER_MSEC);
}

static bool run(struct loop *loop, bool (*done)(void *), void *ctx,
		unsigned int n_ticks)
{
	struct waiter w = {.loop = loop,
			   .done = done,
			   .ctx = ctx,
			   .n_ticks = n_ticks};

	loop_timer_init(&w.timer, on_tick, &w);
	loop_timer_set(loop, &w.timer, 0);
	CU_ASSERT_EQUAL(loop_run(loop), 0);
	loop_timer_clear(loop, &w.timer);
	return w.is_done;
}

bool test_loop_run_until(struct loop *loop, bool (*done)(void *), void *ctx)
{
	return run(loop, done, ctx, PATIENCE_MS);
}

static bool never(void *ctx)
{
	(void)ctx;
	return false;
}

void test_loop_run_for(struct loop *loop, unsigned int ms)
{
	(void)run(loop, never, NULL, ms);
}

unsigned int test_count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int n = 0;

	T_REQUIRE(dir != NULL);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 3; /* ".", "..", and the directory's own */
}
