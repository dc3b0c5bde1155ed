/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What loop.c and the two implementations behind it share; private to them.
 *
 * Units:     *_ns; a timeout of LOOP_FOREVER means none.
 * Ownership: objects of a backend embed the public struct first.
 * Threads:   the loop's thread.
 */

#include <sys/socket.h>
#include <sys/types.h>

#include "base/base.h"
#include "ipc/loop.h"
#include "ipc/timer_heap.h"

#define LOOP_FOREVER UINT64_MAX

struct loop_backend {
	const char *name;
	struct loop *(*free)(struct loop *loop);
	/* Waits at most @timeout_ns, calls back. Return: 0 or < 0, fatal. */
	int (*wait)(struct loop *loop, uint64_t timeout_ns);
	int (*watch_new)(struct loop_watch **ret, struct loop *loop, int fd,
			 unsigned int events, loop_watch_fn fn, void *ctx);
	void (*watch_free)(struct loop_watch *watch);
	void (*watch_pause)(struct loop_watch *watch, bool paused);
	int (*socket_new)(struct loop_socket **ret, struct loop *loop, int fd,
			  const struct loop_socket_ops *ops, void *ctx);
	void (*socket_free)(struct loop_socket *socket);
	void (*socket_read)(struct loop_socket *socket);
	void (*socket_await_room)(struct loop_socket *socket, bool on);
	int (*acceptor_new)(struct loop_acceptor **ret, struct loop *loop,
			    int fd, loop_accept_fn fn, void *ctx);
	void (*acceptor_free)(struct loop_acceptor *acceptor);
	void (*acceptor_resume)(struct loop_acceptor *acceptor);
};

struct loop {
	const struct loop_backend *backend;
	struct timer_heap timers;
	uint64_t fired_ns; /* timers up to here have had their turn */
	bool stopping;
	unsigned int n_objects; /* that the users have not freed */
	int alarm_fd;      /* a timerfd; -1: waits have a timeout instead */
	uint64_t alarm_ns; /* what it is set to, or LOOP_FOREVER */
	struct loop_watch *alarm;
};

struct loop_watch {
	struct loop *loop;
	int fd;
	unsigned int events;
	loop_watch_fn fn;
	void *ctx;
};

struct loop_socket {
	struct loop *loop;
	int fd;
	const struct loop_socket_ops *ops;
	void *ctx;
};

struct loop_acceptor {
	struct loop *loop;
	int fd;
	loop_accept_fn fn;
	void *ctx;
};

/* Room for the control message of one packet, and for no fd more. */
union loop_control {
	char buf[CMSG_LEN(LOOP_MESSAGE_MAX_FDS * sizeof(int))];
	struct cmsghdr align;
};

/**
 * loop_message_deliver() - hand one received message on
 * @msg:     as recvmsg() left it
 * @bytes:   what it received
 * @n_bytes: its result, or a negated errno
 *
 * Calls on_message() and closes the fds that it leaves.
 */
void loop_message_deliver(struct loop_socket *socket, struct msghdr *msg,
			  const void *bytes, ssize_t n_bytes);

/* Closes the fds of a message that nobody wants. */
void loop_message_drop(struct msghdr *msg);

/* Return: whether accept() failed for want of something that others hold, so
 * that asking again at once is pointless. */
bool loop_accept_must_wait(int r);

int loop_epoll_new(struct loop **ret) _must_check_;
int loop_uring_new(struct loop **ret, char *reason, size_t reason_bytes)
	_must_check_;
