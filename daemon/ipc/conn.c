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
 * A connection is on its listener's list conns, and from conn_close() until the
 * loop has called on_closed() on its list leaving. It asks the loop for one
 * message at a time, and for none while replies wait or too many requests are
 * in flight: what the client sends then stays in its own socket.
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

/* Messages thrown away when closing, see discard_unread(). */
#define DISCARD_MAX 64

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
	    conn->n_with_fds > 0 ||
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

static void on_message(void *ctx, struct loop_message *message)
{
	struct conn *conn = ctx;

	conn->reading = false;
	if (message->r < 0 || message->n_bytes == 0)
		conn_close(conn);
	else if (message->fds_truncated)
		conn_fail(conn, EMFILE,
			  "message brought more fds than could be received");
	else if (message->bytes_truncated)
		conn_fail(conn, EMSGSIZE, "message is longer than allowed");
	else
		handle(conn, message);
	conn_read_on(conn);
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

static void on_close_timer(void *ctx)
{
	conn_finish(ctx);
}

/*
 * A socket closed with messages unread gives its peer ECONNRESET before the
 * last reply, which then is often not looked for any more.
 */
static void discard_unread(int fd)
{
	for (int i = 0; i < DISCARD_MAX; i++) {
		char byte;

		/* Without room for control data the fds are never installed. */
		if (recv(fd, &byte, sizeof(byte), MSG_DONTWAIT) <= 0)
			return;
	}
}

void conn_close(struct conn *conn)
{
	struct listener *l = conn->listener;

	if (conn->closing)
		return;
	conn->closing = true;
	conn->socket = loop_socket_free(conn->socket);
	outbox_fini(conn);
	loop_timer_clear(l->loop, &conn->handshake_timer);
	loop_timer_clear(l->loop, &conn->penalty_timer);
	discard_unread(conn->fd);
	/* A receive that is being cancelled still holds the socket open. */
	(void)shutdown(conn->fd, SHUT_RDWR);
	conn->fd = fd_close(conn->fd);
	list_remove(&conn->link);
	list_add_tail(&l->leaving, &conn->link);
	loop_timer_set(l->loop, &conn->close_timer, 0);
}

static void conn_free(struct conn *conn)
{
	struct listener *l = conn->listener;

	loop_timer_clear(l->loop, &conn->close_timer);
	list_remove(&conn->link);
	l->stats.n_connections--;
	peer_fini(&conn->peer);
	slab_free(l->conn_slab, 0, conn);
}

void conn_finish(struct conn *conn)
{
	struct listener *l = conn->listener;

	assert(conn->closing);
	l->ops->on_closed(l->ctx, conn);
	conn_free(conn);
}

/* Lets the user decide. Return: whether the connection lives. */
static bool welcome(struct conn *conn)
{
	static const struct dmaheap_header hello = {.opcode = DMAHEAP_OP_HELLO};
	struct listener *l = conn->listener;
	char text[DMAHEAP_ERROR_TEXT_MAX_BYTES] = "";
	int err;

	err = l->ops->on_connect(l->ctx, conn, text, sizeof(text));
	if (err == 0)
		return true;
	if (!conn->closing)
		send_error(conn, &hello, err, text);
	conn_close(conn);
	conn_free(conn);
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
	r = loop_socket_new(&conn->socket, listener->loop, fd, &socket_ops,
			    conn);
	if (r)
		goto out_peer;
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

out_peer:
	peer_fini(&conn->peer);
out_conn:
	slab_free(listener->conn_slab, 0, conn);
out_fd:
	fd_close(fd);
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
