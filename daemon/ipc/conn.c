/* SPDX-License-Identifier: MIT */
#include "ipc/conn.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "ipc/conn_impl.h"
#include "ipc/peer.h"

/*
 * A connection is on its listener's list conns, and from conn_close() until
 * on_gone() on its list leaving. It asks the loop for one message at a time,
 * and for none while replies wait, too many requests are in flight or something
 * that it sent is still to be closed: what the client sends then stays in its
 * own socket.
 *
 * It leaves in steps: on_closed() in the next round; the socket is closed once
 * no receive is under way, which its shutdown ends; and on_gone() when also the
 * closer has nothing of it left.
 */

const struct conn_limits conn_limits_default = {
	.handshake_timeout_ns = 5 * NSEC_PER_SEC,
	.send_timeout_ns = 10 * NSEC_PER_SEC,
	.max_queue_bytes = MIB(1),
	.max_in_flight = 16,
};

/*
 * Each faulty message costs more than a good one, and a flood of them would be
 * felt by everybody. So a connection may send FAULT_BURST of them at once, and
 * after that one each FAULT_NS; in between its messages stay unread. One that
 * is closed for a broken frame is closed FAULT_NS later, since a new
 * connection costs most of all.
 */
#define FAULT_NS    (10 * NSEC_PER_MSEC)
#define FAULT_BURST 32

static void fault(struct conn *conn, const struct codec_error *error,
		  bool closing)
{
	struct listener *l = conn->listener;

	l->ops->on_fault(l->ctx, conn, error, closing);
}

void conn_fail(struct conn *conn, int err, const char *text)
{
	struct codec_error error = {.err = err};

	(void)snprintf(error.text, sizeof(error.text), "%s", text);
	fault(conn, &error, true);
	conn_close(conn);
}

void conn_read_on(struct conn *conn)
{
	if (conn->closing || conn->reading || conn->penalty_timer.armed ||
	    conn->n_in_flight >= conn->limits.max_in_flight ||
	    conn->n_with_fds > 0 || closer_group_is_busy(conn->leftovers) ||
	    !list_is_empty(&conn->outbox.queue))
		return;
	conn->reading = true;
	loop_socket_read(conn->socket);
}

static void send_error(struct conn *conn, const struct dmaheap_header *request,
		       int err, const char *text)
{
	struct dmaheap_header header;
	struct iovec iov = {.iov_base = (void *)(uintptr_t)text,
			    .iov_len = strlen(text)};

	codec_reply_header(&header, request, -err, iov.iov_len, 0);
	outbox_send(conn, &header, &iov, 1, NULL, 0);
}

static void penalise(struct conn *conn)
{
	const uint64_t burst_ns = FAULT_BURST * FAULT_NS;
	uint64_t now_ns = clock_now_ns();

	conn->faults_until_ns = MAX(conn->faults_until_ns, now_ns) + FAULT_NS;
	if (conn->faults_until_ns > now_ns + burst_ns)
		loop_timer_set(conn->listener->loop, &conn->penalty_timer,
			       conn->faults_until_ns - burst_ns);
}

static void refuse(struct conn *conn, const struct dmaheap_header *request,
		   const struct codec_error *error)
{
	penalise(conn);
	fault(conn, error, false);
	if (!conn->closing)
		send_error(conn, request, error->err, error->text);
}

/* Nobody can be answered. */
static void doom(struct conn *conn, const struct codec_error *error)
{
	fault(conn, error, true);
	if (conn->closing)
		return;
	conn->doomed = true;
	loop_timer_set(conn->listener->loop, &conn->penalty_timer,
		       clock_now_ns() + FAULT_NS);
}

static void handle(struct conn *conn, struct loop_message *message)
{
	struct listener *l = conn->listener;
	struct codec_request codec;
	struct codec_error error;
	struct conn_request request = {.codec = &codec,
				       .fds = message->fds,
				       .n_fds = message->n_fds,
				       .received_ns = clock_now_ns()};
	int r;

	r = codec_parse(message->bytes, message->n_bytes, message->n_fds,
			&codec, &error);
	if (r == CODEC_E_BROKEN) {
		doom(conn, &error);
		return;
	}
	if (r == 0 && !conn->greeted &&
	    codec.header.opcode != DMAHEAP_OP_HELLO) {
		error = (struct codec_error){.err = EPROTO,
					     .text = "the first request must "
						     "be HELLO"};
		r = CODEC_E_BAD;
	}
	if (r) {
		refuse(conn, &codec.header, &error);
		return;
	}
	if (!conn->greeted) {
		conn->greeted = true;
		loop_timer_clear(l->loop, &conn->handshake_timer);
	}
	conn->n_in_flight++;
	conn->n_with_fds += codec.header.n_fds > 0;
	l->ops->on_request(l->ctx, conn, &request);
}

static void free_if_gone(struct conn *conn);

static void on_message(void *ctx, struct loop_message *message)
{
	struct conn *conn = ctx;

	conn->reading = false;
	if (conn->closing)
		; /* too late */
	else if (message->r < 0 || message->n_bytes == 0)
		conn_close(conn);
	else if (message->fds_truncated ||
		 message->n_fds > DMAHEAP_ADOPT_MAX_COUNT)
		conn_fail(conn, EMFILE,
			  "message brought more fds than could be received");
	else if (message->bytes_truncated)
		conn_fail(conn, EMSGSIZE, "message is longer than allowed");
	else
		handle(conn, message);
	closer_close(conn->leftovers, message->fds, message->n_fds);
	conn_read_on(conn);
	free_if_gone(conn);
}

static void on_room(void *ctx)
{
	outbox_on_room(ctx);
}

static const struct loop_socket_ops socket_ops = {
	.on_message = on_message,
	.on_room = on_room,
};

static void on_handshake_timer(void *ctx)
{
	conn_fail(ctx, ETIMEDOUT,
		  "client sent no HELLO within handshake_timeout");
}

static void on_penalty_timer(void *ctx)
{
	struct conn *conn = ctx;

	if (conn->doomed)
		conn_close(conn);
	else
		conn_read_on(conn);
}

void conn_close(struct conn *conn)
{
	struct listener *l = conn->listener;

	if (conn->closing)
		return;
	conn->closing = true;
	loop_socket_await_room(conn->socket, false);
	outbox_fini(conn);
	loop_timer_clear(l->loop, &conn->handshake_timer);
	loop_timer_clear(l->loop, &conn->penalty_timer);
	/* The peer has its end now, and a receive that is under way too. */
	(void)shutdown(conn->fd, SHUT_RDWR);
	list_remove(&conn->link);
	list_add_tail(&l->leaving, &conn->link);
	loop_timer_set(l->loop, &conn->close_timer, 0);
}

static void conn_free(struct conn *conn)
{
	struct listener *l = conn->listener;

	if (conn->is_known)
		l->ops->on_gone(l->ctx, conn);
	list_remove(&conn->link);
	closer_group_free(conn->leftovers);
	slab_free(l->conn_slab, 0, conn);
}

static void close_socket(struct conn *conn)
{
	conn->socket = loop_socket_free(conn->socket);
	if (conn->fd >= 0 && closer_empty_socket(conn->fd))
		conn->fd = fd_close(conn->fd);
	else if (conn->fd >= 0)
		closer_close_socket(conn->leftovers, TAKE_FD(conn->fd));
}

static void free_if_gone(struct conn *conn)
{
	if (!conn->closed || conn->reading)
		return;
	close_socket(conn);
	if (!closer_group_is_busy(conn->leftovers))
		conn_free(conn);
}

static void tell_closed(struct conn *conn)
{
	struct listener *l = conn->listener;

	assert(conn->closing);
	if (conn->is_known)
		l->ops->on_closed(l->ctx, conn);
	conn->closed = true;
	l->stats.n_connections--;
	peer_fini(&conn->peer);
}

static void on_close_timer(void *ctx)
{
	tell_closed(ctx);
	free_if_gone(ctx);
}

void conn_abandon(struct conn *conn)
{
	conn_close(conn);
	loop_timer_clear(conn->listener->loop, &conn->close_timer);
	if (!conn->closed)
		tell_closed(conn);
	close_socket(conn);
	conn_free(conn);
}

/* What the client sent is closed. */
static void on_leftovers_closed(void *ctx)
{
	struct conn *conn = ctx;

	conn_read_on(conn);
	free_if_gone(conn);
}

/* Lets the user decide. Return: whether the connection lives. */
static bool welcome(struct conn *conn)
{
	static const struct dmaheap_header hello = {.opcode = DMAHEAP_OP_HELLO};
	struct listener *l = conn->listener;
	char text[DMAHEAP_ERROR_TEXT_MAX_BYTES] = "";
	int err;

	err = l->ops->on_connect(l->ctx, conn, text, sizeof(text));
	conn->is_known = err == 0;
	if (err == 0) {
		listener_take_fds(conn->fd, true);
		return true;
	}
	if (!conn->closing)
		send_error(conn, &hello, err, text);
	conn_close(conn);
	return false;
}

int conn_new(struct listener *listener, int fd)
{
	struct conn *conn;
	int r = -ENOMEM;

	conn = slab_zalloc(listener->conn_slab, 0);
	if (!conn)
		goto out_fd;
	conn->listener = listener;
	conn->fd = fd;
	conn->limits = listener->limits;
	r = peer_init(&conn->peer, fd);
	if (r)
		goto out_conn;
	r = -ENOMEM;
	conn->leftovers = closer_group_new(listener->closer, conn->peer.uid,
					   on_leftovers_closed, conn);
	if (!conn->leftovers)
		goto out_peer;
	r = loop_socket_new(&conn->socket, listener->loop, fd, &socket_ops,
			    conn);
	if (r)
		goto out_leftovers;
	outbox_init(conn);
	loop_timer_init(&conn->handshake_timer, on_handshake_timer, conn);
	loop_timer_init(&conn->close_timer, on_close_timer, conn);
	loop_timer_init(&conn->penalty_timer, on_penalty_timer, conn);
	list_add_tail(&listener->conns, &conn->link);
	listener->stats.n_connections++;
	if (!welcome(conn))
		return 0;
	loop_timer_set(listener->loop, &conn->handshake_timer,
		       clock_now_ns() + conn->limits.handshake_timeout_ns);
	conn_read_on(conn);
	return 0;

out_leftovers:
	closer_group_free(conn->leftovers);
out_peer:
	peer_fini(&conn->peer);
out_conn:
	slab_free(listener->conn_slab, 0, conn);
out_fd:
	listener_drop(listener, fd);
	return err_raise(r);
}

const struct conn_peer *conn_get_peer(const struct conn *conn)
{
	return &conn->peer;
}

void conn_set_user(struct conn *conn, void *user)
{
	conn->user = user;
}

void *conn_get_user(const struct conn *conn)
{
	return conn->user;
}

unsigned int conn_n_in_flight(const struct conn *conn)
{
	return conn->n_in_flight;
}

/* A request has its answer. Return: whether it can still be sent. */
static bool answer(struct conn *conn, const struct dmaheap_header *request)
{
	assert(conn->n_in_flight > 0); /* one reply for each request */
	conn->n_in_flight--;
	conn->n_with_fds -= request->n_fds > 0;
	return !conn->closing;
}

void conn_reply(struct conn *conn, const struct dmaheap_header *request,
		const struct iovec *iov, size_t n_iov, int *fds, size_t n_fds)
{
	struct dmaheap_header header;
	size_t n_bytes = 0;

	if (!answer(conn, request)) {
		for (size_t i = 0; i < n_fds; i++)
			fds[i] = fd_close(fds[i]);
		return;
	}
	for (size_t i = 0; i < n_iov; i++)
		n_bytes += iov[i].iov_len;
	codec_reply_header(&header, request, 0, n_bytes, n_fds);
	outbox_send(conn, &header, iov, n_iov, fds, n_fds);
	conn_read_on(conn);
}

void conn_reply_error(struct conn *conn, const struct dmaheap_header *request,
		      int err, const char *fmt, ...)
{
	char text[DMAHEAP_ERROR_TEXT_MAX_BYTES];
	va_list args;

	assert(err > 0);
	if (!answer(conn, request))
		return;
	va_start(args, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	send_error(conn, request, err, text);
	conn_read_on(conn);
}

void conn_close_fds(struct conn *conn, int *fds, size_t n_fds)
{
	closer_close(conn->leftovers, fds, n_fds);
}
