/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What conn.c, outbox.c and listener.c share; private to them.
 *
 * Units:     *_ns, *_bytes.
 * Ownership: a listener owns its connections, a connection its outbox.
 * Threads:   the loop's thread.
 */

#include "base/base.h"
#include "base/list.h"
#include "base/slab.h"
#include "ipc/closer.h"
#include "ipc/conn.h"
#include "ipc/loop.h"

/* Replies that could not be sent yet, and the watch on who does not read. */
struct outbox {
	struct list_node queue; /* struct waiting, oldest first */
	size_t queue_bytes;
	unsigned int n_unread_fds; /* sent since the peer had read them all */
	bool no_refs; /* the last try met ETOOMANYREFS or ENOBUFS */
	struct loop_timer retry_timer;
	struct loop_timer stall_timer;
	uint64_t n_sent;
	/* As of the last look of stall_timer: */
	uint64_t seen_n_sent;
	int64_t seen_unread_bytes;
	/* Since then, once it has found something unread: */
	bool is_measured;
	int64_t sent_bytes; /* as SIOCOUTQ counts */
	unsigned int n_stalls;
};

struct conn {
	struct listener *listener;
	struct list_node link; /* listener::conns or listener::leaving */
	int fd;
	struct loop_socket *socket;
	struct conn_peer peer;
	struct conn_limits limits;
	struct closer_group *leftovers; /* what it sent and nobody wanted */
	bool greeted;
	bool is_known; /* to the user, who is told of its end */
	bool closing;
	bool closed; /* told, as far as there is whom to tell */
	bool reading;
	unsigned int n_in_flight;
	unsigned int n_with_fds; /* of them; nothing is read meanwhile */
	struct loop_timer handshake_timer;
	struct loop_timer close_timer;
	struct loop_timer penalty_timer; /* armed: nothing is read until then */
	uint64_t faults_until_ns; /* each fault so far pushed it further */
	bool doomed;              /* closed when the penalty is over */
	struct outbox outbox;
	void *user;
};

struct listener {
	struct loop *loop;
	int fd;
	int spare_fd;
	struct loop_acceptor *acceptor;
	struct loop_timer resume_timer;
	struct conn_limits limits;
	const struct conn_ops *ops;
	void *ctx;
	struct slab_cache *conn_slab;
	struct list_node conns;   /* the living, in order of arrival */
	struct list_node leaving; /* closing, on_gone() still to come */
	struct closer *closer;
	struct loop_watch *closer_watch;
	struct listener_stats stats;
};

/* ---- outbox.c ---- */

void outbox_init(struct conn *conn);

/* Drops what waits. */
void outbox_fini(struct conn *conn);

/* Sends now or later, or closes @conn. @fds as in conn_reply(). */
void outbox_send(struct conn *conn, const struct dmaheap_header *header,
		 const struct iovec *iov, size_t n_iov, int *fds, size_t n_fds);

/* The peer may have read. */
void outbox_on_room(struct conn *conn);

/* ---- listener.c ---- */

/* Consumes the socket of a connection that came to nothing. */
void listener_drop(struct listener *listener, int fd);

/* Lets the peer of @fd send descriptors, or not. */
void listener_take_fds(int fd, bool may_send);

/* ---- conn.c ---- */

/* Consumes @fd. Return: 0, -ENOMEM, or as of getsockopt(). */
int conn_new(struct listener *listener, int fd) _must_check_;

/* Ends one, however far it is, without waiting for anything: on_closed() and
 * on_gone() if they are still to come, then free. */
void conn_abandon(struct conn *conn);

/* Reads on, if the limits allow. */
void conn_read_on(struct conn *conn);

/* Tells the user of a fault, and closes. */
void conn_fail(struct conn *conn, int err, const char *text);
