/* SPDX-License-Identifier: MIT */
#include "conn_support.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"

struct fixture fx;
static struct sockaddr_un address;
static struct client_reply reply;

static int on_connect(void *ctx, struct conn *conn, char *text,
		      size_t text_bytes)
{
	(void)ctx;
	fx.n_connected++;
	fx.conn = conn;
	fx.peer = *conn_get_peer(conn);
	if (fx.refuse_with)
		(void)snprintf(text, text_bytes, "no more of these");
	return fx.refuse_with;
}

static void reply_with_fds(struct conn *conn,
			   const struct dmaheap_header *header)
{
	static char payload[DMAHEAP_MESSAGE_MAX_BYTES];
	struct iovec iov = {.iov_base = payload, .iov_len = fx.reply_bytes};
	int fds[CONN_MAX_UNREAD_FDS];

	for (size_t i = 0; i < fx.reply_n_fds; i++)
		fds[i] = fcntl(fx.memfd, F_DUPFD_CLOEXEC, 3);
	conn_reply(conn, header, &iov, 1, fds, fx.reply_n_fds);
	for (size_t i = 0; i < fx.reply_n_fds; i++)
		CU_ASSERT_EQUAL(fds[i], -1);
}

static void on_request(void *ctx, struct conn *conn,
		       const struct conn_request *request)
{
	const struct dmaheap_header *header = &request->codec->header;
	bool is_hello = header->opcode == DMAHEAP_OP_HELLO;

	(void)ctx;
	fx.n_requests++;
	CU_ASSERT(request->received_ns > 0);
	if (fx.answer == FIXTURE_CLOSE && !is_hello) {
		conn_close(conn);
	} else if (fx.answer == FIXTURE_LATER && !is_hello) {
		fx.pending[fx.n_pending].conn = conn;
		fx.pending[fx.n_pending++].header = *header;
	} else if (fx.answer == FIXTURE_WITH_FDS && !is_hello) {
		reply_with_fds(conn, header);
	} else {
		if (fx.answer == FIXTURE_KEEP_FD && request->n_fds) {
			fx.kept_fd = request->fds[0];
			request->fds[0] = -1;
		}
		conn_reply(conn, header, NULL, 0, NULL, 0);
	}
}

static void on_fault(void *ctx, struct conn *conn,
		     const struct codec_error *error, bool closing)
{
	(void)ctx;
	(void)conn;
	fx.n_faults++;
	fx.n_fatal_faults += closing;
	fx.last_fault = *error;
}

static void on_closed(void *ctx, struct conn *conn)
{
	size_t n = 0;

	(void)ctx;
	fx.n_closed++;
	for (size_t i = 0; i < fx.n_pending; i++)
		if (fx.pending[i].conn != conn)
			fx.pending[n++] = fx.pending[i];
	fx.n_pending = n;
}

static void on_gone(void *ctx, struct conn *conn)
{
	(void)ctx;
	(void)conn;
	fx.n_gone++;
}

static const struct conn_ops ops = {
	.on_connect = on_connect,
	.on_request = on_request,
	.on_fault = on_fault,
	.on_closed = on_closed,
	.on_gone = on_gone,
};

void fixture_restart(void)
{
	fx.listener = listener_free(fx.listener);
	T_REQUIRE(listener_new(&fx.listener, fx.loop, fx.listen_fd, &fx.limits,
			       &ops, NULL) == 0);
}

void fixture_set_up(void)
{
	memset(&fx, 0, sizeof(fx));
	fx.n_fds_before = test_count_fds();
	fx.limits = conn_limits_default;
	fx.kept_fd = -1;
	fx.memfd = memfd_create("test", MFD_CLOEXEC);
	fx.loop = test_loop_new();
	address = (struct sockaddr_un){.sun_family = AF_UNIX};
	(void)snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1,
		       "dmaheap-test-conn-%d-%d", getpid(), test_loop_kind);
	fx.listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	T_REQUIRE(fx.listen_fd >= 0);
	T_REQUIRE(bind(fx.listen_fd, (struct sockaddr *)&address,
		       sizeof(address)) == 0);
	T_REQUIRE(listen(fx.listen_fd, 128) == 0);
	fixture_restart();
}

void fixture_tear_down(void)
{
	struct listener_stats stats;

	listener_get_stats(fx.listener, &stats);
	CU_ASSERT_EQUAL(stats.n_connections + fx.n_closed,
			fx.refuse_with ? 0 : fx.n_connected);
	fx.listener = listener_free(fx.listener);
	CU_ASSERT_EQUAL(fx.n_gone, fx.n_closed);
	fx.loop = loop_free(fx.loop);
	fd_close(fx.listen_fd);
	fd_close(fx.memfd);
	fd_close(fx.kept_fd);
	CU_ASSERT_EQUAL(test_count_fds(), fx.n_fds_before);
}

void fixture_answer_pending(void)
{
	while (fx.n_pending) {
		fx.n_pending--;
		conn_reply(fx.pending[fx.n_pending].conn,
			   &fx.pending[fx.n_pending].header, NULL, 0, NULL, 0);
	}
}

int client_connect(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
			0);

	T_REQUIRE(fd >= 0);
	T_REQUIRE(connect(fd, (struct sockaddr *)&address, sizeof(address)) ==
		  0);
	return fd;
}

ssize_t client_send(int fd, uint16_t opcode, const void *body, size_t n_bytes,
		    size_t n_fds)
{
	return client_send_fds(fd, opcode, body, n_bytes, fx.memfd, n_fds);
}

ssize_t client_send_fds(int fd, uint16_t opcode, const void *body,
			size_t n_bytes, int sent, size_t n_fds)
{
	return client_send_fds_and(fd, opcode, body, n_bytes, sent, n_fds,
				   sent);
}

ssize_t client_send_fds_and(int fd, uint16_t opcode, const void *body,
			    size_t n_bytes, int sent, size_t n_fds, int last)
{
	struct dmaheap_header header = {.magic = DMAHEAP_PROTOCOL_MAGIC,
					.version = DMAHEAP_PROTOCOL_VERSION,
					.opcode = opcode,
					.payload_bytes = (uint32_t)n_bytes,
					.seq = 1000 + opcode,
					.n_fds = (uint32_t)n_fds};
	struct iovec iov[2] = {{.iov_base = &header, .iov_len = sizeof(header)},
			       {.iov_base = (void *)(uintptr_t)body,
				.iov_len = n_bytes}};
	union {
		char buf[CMSG_SPACE(253 * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};
	int fds[253];
	ssize_t n;

	for (size_t i = 0; i < n_fds; i++)
		fds[i] = i + 1 < n_fds ? sent : last;
	if (n_fds) {
		struct cmsghdr *c = &control.align;

		msg.msg_control = control.buf;
		msg.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
	}
	n = sendmsg(fd, &msg, MSG_NOSIGNAL);
	return n < 0 ? -errno : n;
}

bool client_has_nothing(int fd)
{
	char byte;

	test_loop_run_for(fx.loop, 2);
	return recv(fd, &byte, 1, MSG_PEEK) < 0 && errno == EAGAIN;
}

struct client_reply *client_receive(int fd)
{
	union {
		char buf[CMSG_SPACE(253 * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov[2] = {{.iov_base = &reply.header,
				.iov_len = sizeof(reply.header)},
			       {.iov_base = reply.payload,
				.iov_len = sizeof(reply.payload)}};
	struct msghdr msg = {.msg_iov = iov,
			     .msg_iovlen = 2,
			     .msg_control = control.buf,
			     .msg_controllen = sizeof(control.buf)};

	for (int i = 0; i < 100 && client_has_nothing(fd); i++)
		;
	memset(&reply, 0, sizeof(reply));
	reply.r = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
	if (reply.r < 0) {
		reply.r = -errno;
		return &reply;
	}
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c;
	     c = CMSG_NXTHDR(&msg, c)) {
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		for (size_t i = 0; i < n; i++) {
			int received;

			memcpy(&received, CMSG_DATA(c) + i * sizeof(int),
			       sizeof(int));
			fd_close(received);
			reply.n_fds++;
		}
	}
	return &reply;
}

int client_greet(void)
{
	int fd = client_connect();
	const struct dmaheap_hello_req hello = {.client_name = "test"};

	CU_ASSERT(client_send(fd, DMAHEAP_OP_HELLO, &hello, sizeof(hello), 0) >
		  0);
	CU_ASSERT(client_receive(fd)->r >= (ssize_t)sizeof(reply.header));
	CU_ASSERT_EQUAL(reply.header.status, 0);
	return fd;
}

static bool is_closed(void *ctx)
{
	const int *fd = ctx;
	char byte;

	/* What lies before the end does not matter. */
	for (;;) {
		ssize_t n = recv(*fd, &byte, 1, 0);

		if (n == 0 || (n < 0 && errno == ECONNRESET))
			return true;
		if (n < 0)
			return false;
	}
}

bool client_is_closed(int fd)
{
	bool closed = test_loop_run_until(fx.loop, is_closed, &fd);

	test_loop_run_for(fx.loop, 2); /* on_closed() comes a round later */
	return closed;
}
