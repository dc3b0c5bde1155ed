/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Listener and connections: who connects, what they ask, what they get back,
 * and every limit that keeps one of them from harming another.
 *
 * A connection receives one message after the other, has the codec check it and
 * hands it on as a request. Each request gets exactly one reply. A message that
 * is not of this protocol closes its connection; one with a fault is answered
 * with an error and never reaches on_request().
 *
 * Units:     *_ns, *_bytes.
 * Ownership: a connection belongs to its listener. The user may keep a pointer
 *            from on_connect() until on_gone() returns, and must not use it
 *            after. Fds given to conn_reply() are consumed, always.
 * Threads:   the loop's thread only. on_closed() and on_gone() run from the
 *            loop, never inside conn_reply() or conn_close(). What clients sent
 *            is closed by threads of the listener's, see closer.h.
 */

#include <sys/types.h>
#include <sys/uio.h>

#include "base/base.h"
#include "ipc/codec.h"
#include "ipc/loop.h"

#define CONN_MAX_UNREAD_FDS 64u

struct conn;
struct listener;
struct slab_registry;

/* Taken once, when the connection was accepted. */
struct conn_peer {
	uid_t uid;
	gid_t gid;
	pid_t pid;           /* 0: not visible in our pid namespace */
	int pidfd;           /* the connection's; -1: not to be had */
	const gid_t *groups; /* supplementary groups */
	size_t n_groups;
};

struct conn_limits {
	uint64_t handshake_timeout_ns; /* from accept to HELLO */
	uint64_t send_timeout_ns;      /* for a client to read what it has */
	size_t max_queue_bytes;        /* replies that wait to be sent */
	unsigned int max_in_flight;    /* requests without a reply, >= 1 */
};

/* 5 s, 10 s, 1 MiB, 16. */
extern const struct conn_limits conn_limits_default;

/* A request; valid inside on_request() only: copy what must live longer. */
struct conn_request {
	const struct codec_request *codec;
	/* Take one by setting it to -1, and give it to conn_close_fds() when
	 * done with it; the rest is closed after. */
	int *fds;
	size_t n_fds;
	uint64_t received_ns; /* clock_now_ns() when it came in */
};

struct conn_ops {
	/*
	 * A new peer; its credentials are known, it has sent nothing yet.
	 * Return: 0 and the connection lives, or the errno > 0 that it is told
	 * in one error reply before it is closed (opcode HELLO, seq 0), with
	 * the sentence that was written to @text; on_closed() is then not
	 * called.
	 */
	int (*on_connect)(void *ctx, struct conn *conn, char *text,
			  size_t text_bytes);
	/* The first request of each connection is HELLO. */
	void (*on_request)(void *ctx, struct conn *conn,
			   const struct conn_request *request);
	/* A request was refused, or the connection is about to be closed,
	 * because of what the peer sent or did. For counting and logging. */
	void (*on_fault)(void *ctx, struct conn *conn,
			 const struct codec_error *error, bool closing);
	/* Replies are no longer possible. */
	void (*on_closed)(void *ctx, struct conn *conn);
	/* The last call for @conn: whatever it sent is closed as well, which
	 * may be much later. Until then its owner pays for a connection. */
	void (*on_gone)(void *ctx, struct conn *conn);
};

/**
 * listener_new() - serve connections from a listening socket
 * @listen_fd: borrowed; SOCK_SEQPACKET, listening; made non-blocking
 * @limits:    copied; for connections accepted from now on
 * @ops:       borrowed, all set
 *
 * When descriptors run out, waiting connections are accepted with a spare one
 * and closed at once, until there are descriptors again.
 *
 * Return: 0, -ENOMEM, -EMFILE, -EAGAIN (threads cannot be started), or as of
 * epoll_ctl().
 */
int listener_new(struct listener **ret, struct loop *loop, int listen_fd,
		 const struct conn_limits *limits, const struct conn_ops *ops,
		 void *ctx) _must_check_;

/* Closes all its connections, on_closed() and on_gone() for each, and waits for
 * no close() that does not return. Return: NULL. */
struct listener *listener_free(struct listener *listener);
DEFINE_CLEANUP(struct listener *, listener_free);

/* Lists the cache of connections, for slabinfo. */
void listener_enlist(struct listener *listener, struct slab_registry *registry);

/* Accept no more; connections live on. For draining. */
void listener_stop_accepting(struct listener *listener);

/* Other limits for connections accepted from now on. */
void listener_set_limits(struct listener *listener,
			 const struct conn_limits *limits);

struct listener_stats {
	uint64_t accepted;
	uint64_t shed; /* closed at once for lack of descriptors */
	unsigned int n_connections;
};
void listener_get_stats(const struct listener *listener,
			struct listener_stats *ret);

/* Connection @after of the listener, or its first one for NULL. Return: NULL
 * when there are no more. */
struct conn *listener_next(struct listener *listener, struct conn *after);

const struct conn_peer *conn_get_peer(const struct conn *conn);

/* The user's own pointer, NULL at first. */
void conn_set_user(struct conn *conn, void *user);
void *conn_get_user(const struct conn *conn);

/* Requests that were handed on and have no reply yet. */
unsigned int conn_n_in_flight(const struct conn *conn);

/**
 * conn_reply() - answer a request
 * @request: its header (seq, opcode and n_fds count)
 * @iov:     the payload in up to CONN_REPLY_MAX_IOV pieces; copied if it has to
 *           wait; in all at most DMAHEAP_MESSAGE_MAX_BYTES less a header
 * @fds:     consumed: closed once they are sent or given up; each set to -1
 * @n_fds:   <= CONN_MAX_UNREAD_FDS
 *
 * Sends at once if it can. A reply with fds waits while the peer has not read
 * enough of the earlier ones. On a closing connection this only closes @fds.
 */
#define CONN_REPLY_MAX_IOV 4u
void conn_reply(struct conn *conn, const struct dmaheap_header *request,
		const struct iovec *iov, size_t n_iov, int *fds, size_t n_fds);

/* Answers with -@err (@err > 0) and one sentence; at most
 * DMAHEAP_ERROR_TEXT_MAX_BYTES - 1 bytes of it. */
void conn_reply_error(struct conn *conn, const struct dmaheap_header *request,
		      int err, const char *fmt, ...) _printf_(4, 5);

/* Closes soon: what waits to be sent is dropped, on_closed() comes from the
 * loop. Closing twice is harmless. */
void conn_close(struct conn *conn);

/* Consumes what on_request() has taken of a request's fds; each is -1
 * afterwards, and may be before. */
void conn_close_fds(struct conn *conn, int *fds, size_t n_fds);
