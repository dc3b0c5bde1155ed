/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Loop: waits for descriptors, messages, new connections and points in time,
 * and calls back. One interface in front of io_uring and epoll; nothing that
 * uses it can tell which of the two runs, except by loop_name().
 *
 * Units:     *_ns are nanoseconds of clock_now_ns() (CLOCK_MONOTONIC).
 * Ownership: a loop owns none of the fds that it watches: they are borrowed and
 *            must stay open until the watch, socket or acceptor is freed. Each
 *            of these may be freed at any time, in its own callback too: it is
 *            never called again, and what the kernel still has in hand for it
 *            is cancelled and awaited inside the loop. A timer is embedded in
 *            its user and must be disarmed before that goes.
 * Threads:   one loop is used by one thread, the one that calls loop_new().
 *            Callbacks run inside loop_run() and never inside another function
 *            of this header.
 */

#include "base/base.h"

/* All that a message can bring: whatever the kernel had to cut off it would
 * close in the loop's thread, and the close may wait. */
#define LOOP_MESSAGE_MAX_FDS 253u /* SCM_MAX_FD */

struct loop;
struct loop_watch;
struct loop_socket;
struct loop_acceptor;
struct loop_timer;

enum loop_kind {
	LOOP_AUTO, /* io_uring if it works here, else epoll */
	LOOP_URING,
	LOOP_EPOLL,
};

/* A message of loop_socket, or why there will be none. */
struct loop_message {
	/*
	 * 0: a message; n_bytes == 0 means that the peer has closed, or sent an
	 * empty packet, which a SOCK_SEQPACKET reader cannot tell apart.
	 * < 0: a negated errno of the receiving call.
	 */
	int r;
	bool bytes_truncated; /* longer than DMAHEAP_MESSAGE_MAX_BYTES */
	bool fds_truncated;   /* more fds than our fd table has room for */
	const void *bytes;    /* valid in the callback, aligned to 8 */
	size_t n_bytes;
	int *fds; /* the callback's: what it leaves >= 0 is closed after it */
	size_t n_fds;
};

/* Events of a watch. */
#define LOOP_READABLE 0x1u
#define LOOP_WRITABLE 0x2u

typedef void (*loop_watch_fn)(void *ctx);
typedef void (*loop_timer_fn)(void *ctx);
/* @fd: the new connection, which the callback consumes, or a negated errno. */
typedef void (*loop_accept_fn)(void *ctx, int fd);

struct loop_socket_ops {
	/* One call for each loop_socket_read(). */
	void (*on_message)(void *ctx, struct loop_message *message);
	/* While loop_socket_await_room() is on: the peer may have read. */
	void (*on_room)(void *ctx);
};

/* Embedded in its user. Armed by loop_timer_set(), fires once. */
struct loop_timer {
	loop_timer_fn fn;
	void *ctx;
	uint64_t at_ns;
	bool armed;
	/* pairing heap of struct loop */
	struct loop_timer *child;
	struct loop_timer *next;
	struct loop_timer *prev; /* parent for the first child */
};

/**
 * loop_new() - create a loop
 * @ret:        receives the loop on success; untouched on failure
 * @kind:       which implementation
 * @reason:     receives "", or for LOOP_AUTO that became epoll, and on failure,
 *              a sentence that says why io_uring (or epoll) cannot be used
 * @reason_bytes: its size
 *
 * An io_uring loop is restricted to the opcodes that it uses before it runs, so
 * that nothing else can be asked of its ring later.
 *
 * Return: 0, -ENOMEM, -EMFILE, or for LOOP_URING what io_uring_setup() or a
 * missing feature gave (-EPERM, -ENOSYS, -EOPNOTSUPP ...).
 */
int loop_new(struct loop **ret, enum loop_kind kind, char *reason,
	     size_t reason_bytes) _must_check_;

/* Everything of the loop must have been freed before. Return: NULL. */
struct loop *loop_free(struct loop *loop);
DEFINE_CLEANUP(struct loop *, loop_free);

/* Return: "uring" or "epoll". */
const char *loop_name(const struct loop *loop);

/**
 * loop_run() - call back until loop_stop()
 *
 * Return: 0 after loop_stop(), or the negated errno of a wait that failed for
 * good; then no callback is running and the loop may be freed.
 */
int loop_run(struct loop *loop) _must_check_;

/* Makes loop_run() return once the running callback has. */
void loop_stop(struct loop *loop);

/**
 * loop_watch_new() - call back whenever @fd is ready
 * @fd:     borrowed
 * @events: LOOP_READABLE, LOOP_WRITABLE or both; hang-up and error count as
 *          each of them
 * @fn:     called with @ctx; once per round while the fd stays ready
 *
 * Return: 0, -ENOMEM, or as of epoll_ctl() (-EPERM: an fd that cannot be
 * waited for).
 */
int loop_watch_new(struct loop_watch **ret, struct loop *loop, int fd,
		   unsigned int events, loop_watch_fn fn, void *ctx)
	_must_check_;

/* Stops calling back until it is turned on again, then as if it were new. */
void loop_watch_pause(struct loop_watch *watch, bool paused);

/* Return: NULL. @watch may be NULL. */
struct loop_watch *loop_watch_free(struct loop_watch *watch);
DEFINE_CLEANUP(struct loop_watch *, loop_watch_free);

/**
 * loop_socket_new() - receive the messages of a SOCK_SEQPACKET socket
 * @fd:  borrowed, non-blocking
 * @ops: borrowed, both set
 *
 * Nothing is received until loop_socket_read(). Sending is the user's own
 * matter: sendmsg() with MSG_DONTWAIT, and on_room() when that would block.
 *
 * Return: 0, -ENOMEM.
 */
int loop_socket_new(struct loop_socket **ret, struct loop *loop, int fd,
		    const struct loop_socket_ops *ops, void *ctx) _must_check_;

/* Return: NULL. @socket may be NULL. */
struct loop_socket *loop_socket_free(struct loop_socket *socket);
DEFINE_CLEANUP(struct loop_socket *, loop_socket_free);

/**
 * loop_socket_read() - ask for the next message
 *
 * One message, one on_message(); asking again before it came is harmless. A
 * socket that does not ask leaves what is sent in the socket's queue, where the
 * kernel blocks the sender.
 */
void loop_socket_read(struct loop_socket *socket);

/**
 * loop_socket_await_room() - turn on_room() on or off
 *
 * While on, on_room() is called once soon and then after each message that the
 * peer has read (edges, not a level: the socket may have been writable before),
 * and when the peer is gone. Calls without a cause are possible.
 */
void loop_socket_await_room(struct loop_socket *socket, bool on);

/**
 * loop_acceptor_new() - accept the connections of a listening socket
 * @fd: borrowed, non-blocking
 * @fn: called for each connection (non-blocking, close-on-exec), and with
 *      -EMFILE, -ENFILE, -ENOMEM or -ENOBUFS when one waits that cannot be
 *      accepted. After such a call nothing is accepted until
 *      loop_acceptor_resume(). Errors of the connection itself are skipped.
 *
 * Return: 0, -ENOMEM, or as of epoll_ctl().
 */
int loop_acceptor_new(struct loop_acceptor **ret, struct loop *loop, int fd,
		      loop_accept_fn fn, void *ctx) _must_check_;
void loop_acceptor_resume(struct loop_acceptor *acceptor);

/* Return: NULL. @acceptor may be NULL. */
struct loop_acceptor *loop_acceptor_free(struct loop_acceptor *acceptor);
DEFINE_CLEANUP(struct loop_acceptor *, loop_acceptor_free);

/* Prepares @timer, disarmed. */
void loop_timer_init(struct loop_timer *timer, loop_timer_fn fn, void *ctx);

/**
 * loop_timer_set() - arm, or move, a timer
 * @at_ns: when it fires; a time in the past, also 0, means in the next round
 *
 * Cost: O(1), and amortised O(log timers) when it fires. Cannot fail.
 */
void loop_timer_set(struct loop *loop, struct loop_timer *timer,
		    uint64_t at_ns);

/* @timer may be disarmed already. */
void loop_timer_clear(struct loop *loop, struct loop_timer *timer);
