/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What the integration tests share: a fresh daemon and a connected client for
 * each test, over each loop, and checks that nothing is left of either.
 *
 * Units:     bytes.
 * Ownership: the daemon and the handle are this file's.
 * Threads:   one.
 */

#include <dmaheap/dmaheap.h>

#include "support/daemon.h"
#include "support/test.h"

#define IT_KIB(n) ((uint64_t)(n) << 10)
#define IT_MIB(n) ((uint64_t)(n) << 20)

extern struct daemon it_daemon;
extern struct dmaheap *it_dh;

/* For the daemons of the tests that follow in this program. */
extern struct daemon_options it_options;

/**
 * it_main() - run @tests over io_uring, where it works, and over epoll
 *
 * Each test gets a daemon with it_options and a client; afterwards the pools
 * are emptied and fds, watches and quota books of the daemon, and the test's
 * own fds, must be as they were.
 */
int it_main(int argc, char **argv, CU_TestInfo *tests);

/* The last error sentence of it_call() and it_alloc(). */
extern char it_error[DMAHEAP_ERROR_TEXT_MAX_BYTES];

/* One buffer from @heap. Return: its fd, or a negated errno. */
int it_alloc(const char *heap, uint64_t len_bytes,
	     struct dmaheap_alloc_report *ret);

/* Any request. Return: bytes of the reply, or a negated errno. */
long it_call(struct dmaheap *dh, uint16_t opcode, const void *payload,
	     size_t payload_bytes, void *reply, size_t reply_bytes);

/* policy set on @heap. Return: 0 or a negated errno. */
int it_set_policy(const char *heap, const char *lines);

/* Pools give back until they hold @to_bytes. Return: bytes left. */
uint64_t it_shrink(uint64_t to_bytes);

/* The heap of that name in a fresh copy of the statistics. */
const struct dmaheap_stats_heap *it_heap_stats(const char *name);
/* Its pool of @order. */
const struct dmaheap_stats_pool *it_pool(const char *heap, uint32_t order);
/* The whole, refreshed. */
const struct dmaheap_stats *it_stats(void);

/* Waits until the heap has no live or released buffer. */
bool it_wait_all_free(const char *heap);

/* A copy of the node's text. The caller's to free. */
char *it_node_text(uint32_t text);

/* Asserts blocks by order: 8, 4, 0, and nothing of the others. */
#define IT_COMPOSITION(report, n8, n4, n0)                                     \
	it_check_composition((report), (n8), (n4), (n0), __LINE__)
void it_check_composition(const struct dmaheap_alloc_report *report,
			  uint32_t n8, uint32_t n4, uint32_t n0, int line);

/* fork(), and the child dies with us. Return: as fork(), never < 0. */
pid_t it_fork(void);

/* Runs @body in a child as @uid (0: as we are); it shares our fds. Return: its
 * exit status, or 255. */
int it_in_child(uid_t uid, int (*body)(void *ctx), void *ctx);
