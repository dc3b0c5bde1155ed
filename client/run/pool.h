/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Pool: the supervisor's threads, which receive notified calls and handle them.
 *
 * A thread that is about to wait for the daemon makes sure that another one is
 * receiving, so a stalled allocation never keeps anybody else waiting. Spare
 * threads end when they have been spare.
 *
 * Ownership: the listener is borrowed and must outlive the process: the threads
 *            end with it.
 * Threads:   pool_may_block() from a handler.
 */

#include "run/call.h"

#define POOL_IDLE_KEPT   4u
#define POOL_THREADS_MAX 2048u

struct pool;

typedef void pool_handler(void *ctx, const struct call *call);

/**
 * pool_new() - start receiving
 *
 * Return: 0, or a negated errno.
 */
int pool_new(struct pool **ret, int listener, pool_handler *handle, void *ctx);

/* The calling handler is about to wait. */
void pool_may_block(struct pool *pool);
