/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What the tests of loops and connections share: the same suite once for each
 * implementation, and running a loop until something has become true.
 *
 * Ownership: none.
 * Threads:   the main thread.
 */

#include "ipc/loop.h"
#include "support/test.h"

/* Which loop the running suite is about. */
extern enum loop_kind test_loop_kind;

/* Set-up functions of a suite per kind; they run @set_up afterwards. */
extern void (*test_loop_set_up)(void);
void test_loop_use_uring(void);
void test_loop_use_epoll(void);

/* Return: whether io_uring can be used here; if not, says why on stdout. */
bool test_loop_has_uring(void);

/* Return: a new loop of the running suite's kind. */
struct loop *test_loop_new(void);

/**
 * test_loop_run_until() - run @loop until @done(@ctx)
 *
 * @done is asked every millisecond.
 * Return: whether it became true, within 10 s.
 */
bool test_loop_run_until(struct loop *loop, bool (*done)(void *), void *ctx);

/* Runs @loop for @ms, and for as many rounds: a busy host takes time away, not
 * the chance to do what is due. */
void test_loop_run_for(struct loop *loop, unsigned int ms);

/* Return: how many fds this process has open. */
unsigned int test_count_fds(void);

/* A suite for each implementation, as elements of a CU_SuiteInfo array. */
#define TEST_LOOP_SUITES(name, teardown, tests)                                \
	{.pName = name "_epoll",                                               \
	 .pSetUpFunc = test_loop_use_epoll,                                    \
	 .pTearDownFunc = teardown,                                            \
	 .pTests = tests},                                                     \
	{                                                                      \
		.pName = test_loop_has_uring() ? name "_uring" : NULL,         \
		.pSetUpFunc = test_loop_use_uring, .pTearDownFunc = teardown,  \
		.pTests = tests                                                \
	}
