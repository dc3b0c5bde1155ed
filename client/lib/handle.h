/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Handle: a connection that mends itself. It reconnects after the daemon went
 * away, hands the process's live buffers to a new daemon, and starts afresh in
 * a forked child.
 *
 * Units:     *_ns on CLOCK_MONOTONIC.
 * Ownership: handle_open_path() and handle_search() give the only reference;
 *            handle_free() ends it.
 * Threads:   handle_request() and what uses its reply run between
 *            handle_lock() and handle_unlock(): the reply lies in the handle.
 *            handles_lock() is a second, process-wide lock, never held across
 *            a wait; fork() takes it, so that the child finds the list of
 *            handles and the table of origins whole. Order: handle, then
 *            process.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <dmaheap/protocol.h>
#include <dmaheap/stats.h>

#include "lib/socket.h"
#include "lib/wire.h"

struct dmaheap {
	pthread_mutex_t lock;
	struct dmaheap *next; /* list of all handles, under handles_lock() */
	char *path; /* the socket connected to first, and ever after */
	enum socket_place place;
	uint64_t origin; /* which daemon's socket that is; see origin.h */

	int sock;  /* -1: not connected */
	pid_t pid; /* that @sock belongs to */
	uint64_t seq;
	struct dmaheap_hello_reply hello;
	uint64_t adopted_instance; /* the daemon that knows our buffers */
	uint64_t lost_at_ns;       /* when the connection was found broken */
	uint64_t patience_ns;      /* how long after that requests wait */

	const struct dmaheap_stats *stats; /* NULL: not mapped */
	size_t stats_bytes;
	uint64_t stats_instance; /* the daemon that writes it */

	uint8_t buffer[DMAHEAP_MESSAGE_MAX_BYTES];
};

/**
 * handle_new() - connect to @path, or to the first place of socket_search()
 * @path: may be NULL
 *
 * Return: 0, or the errors of dmaheap_connect().
 */
int handle_new(struct dmaheap **ret, const char *path) _must_check_;

/* Return: why the daemon refused this thread's last attempt; "": it did not. */
const char *handle_refusal(void);

/* Return: NULL, always. @dh may be NULL. */
struct dmaheap *handle_free(struct dmaheap *dh);

void handle_lock(struct dmaheap *dh);
void handle_unlock(struct dmaheap *dh);

void handles_lock(void);
void handles_unlock(void);

/* Return: the first of all handles; only between the two above. */
struct dmaheap *handles_first(void);

/**
 * handle_ensure() - be connected, reconnecting when the daemon went away
 *
 * Return: 0, -ECONNRESET (it did not come back within the handle's patience),
 * or the errors of dmaheap_connect().
 */
int handle_ensure(struct dmaheap *dh) _must_check_;

/* handle_ensure() that first looks whether the daemon has hung up. */
int handle_ensure_fresh(struct dmaheap *dh) _must_check_;

/**
 * handle_request() - send a request and wait for its reply
 * @ret: set on success only; its payload is valid until handle_unlock()
 *
 * A request whose connection breaks is sent again to the next daemon: no reply
 * to it can have been lost, since what was queued is read before the end of
 * the connection is. When the same daemon hangs up twice on it, that was meant.
 *
 * Return: 0 (the daemon's status is in @ret), or the errors of dmaheap.h that
 * can come from any function.
 */
int handle_request(struct dmaheap *dh, const struct wire_request *req,
		   struct wire_reply *ret) _must_check_;

/* One exchange on the present connection, for those who repair it. */
int handle_exchange(struct dmaheap *dh, const struct wire_request *req,
		    struct wire_reply *ret) _must_check_;

/* Gives the connection up: the next request begins with a new one. */
void handle_drop(struct dmaheap *dh);
