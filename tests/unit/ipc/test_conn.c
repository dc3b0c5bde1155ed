/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "conn_support.h"

#define HEADER_BYTES ((ssize_t)sizeof(struct dmaheap_header))

static ssize_t ask(int fd)
{
	return client_send(fd, DMAHEAP_OP_HEAPS, NULL, 0, 0);
}

/* ---- requests and replies ---- */

static void a_request_gets_its_reply(void)
{
	int fd = client_greet();
	struct client_reply *reply;

	CU_ASSERT_EQUAL(ask(fd), HEADER_BYTES);
	reply = client_receive(fd);
	CU_ASSERT_EQUAL(reply->r, HEADER_BYTES);
	CU_ASSERT_EQUAL(reply->header.opcode, DMAHEAP_OP_HEAPS);
	CU_ASSERT_EQUAL(reply->header.seq, 1000 + DMAHEAP_OP_HEAPS);
	CU_ASSERT_EQUAL(reply->header.flags, DMAHEAP_F_REPLY);
	CU_ASSERT_EQUAL(reply->header.status, 0);
	CU_ASSERT_EQUAL(fx.n_requests, 2);
	fd_close(fd);
}

static void a_reply_carries_payload_and_fds(void)
{
	int fd = client_greet();
	struct client_reply *reply;

	fx.answer = FIXTURE_WITH_FDS;
	fx.reply_n_fds = 3;
	fx.reply_bytes = DMAHEAP_MESSAGE_MAX_BYTES - sizeof(reply->header);
	CU_ASSERT(ask(fd) > 0);
	reply = client_receive(fd);
	CU_ASSERT_EQUAL(reply->r, DMAHEAP_MESSAGE_MAX_BYTES);
	CU_ASSERT_EQUAL(reply->header.payload_bytes, fx.reply_bytes);
	CU_ASSERT_EQUAL(reply->header.n_fds, 3);
	CU_ASSERT_EQUAL(reply->n_fds, 3);
	fd_close(fd);
}

static void the_peer_is_known_when_it_connects(void)
{
	int fd = client_greet();
	struct pollfd p = {.fd = fx.peer.pidfd, .events = POLLIN};

	CU_ASSERT_EQUAL(fx.peer.uid, getuid());
	CU_ASSERT_EQUAL(fx.peer.gid, getgid());
	CU_ASSERT_EQUAL(fx.peer.pid, getpid());
	CU_ASSERT(fx.peer.pidfd >= 0);
	CU_ASSERT_EQUAL(poll(&p, 1, 0), 0); /* we live */
	CU_ASSERT_EQUAL(fx.peer.n_groups, (size_t)getgroups(0, NULL));
	fd_close(fd);
}

static void errors_say_why(void)
{
	int fd = client_greet();
	struct client_reply *reply;

	fx.answer = FIXTURE_LATER;
	CU_ASSERT(ask(fd) > 0);
	test_loop_run_for(fx.loop, 2);
	CU_ASSERT_EQUAL(fx.n_pending, 1);
	CU_ASSERT_EQUAL(conn_n_in_flight(fx.conn), 1);
	conn_reply_error(fx.pending[0].conn, &fx.pending[0].header, EDQUOT,
			 "uid %u is over it", 7u);
	fx.n_pending = 0;
	CU_ASSERT_EQUAL(conn_n_in_flight(fx.conn), 0);
	reply = client_receive(fd);
	CU_ASSERT_EQUAL(reply->header.status, -EDQUOT);
	CU_ASSERT_STRING_EQUAL(reply->payload, "uid 7 is over it");
	CU_ASSERT_EQUAL(reply->header.payload_bytes, strlen(reply->payload));
	fd_close(fd);
}

static void a_bad_request_is_answered_and_the_connection_lives(void)
{
	int fd = client_greet();
	struct client_reply *reply;

	CU_ASSERT(client_send(fd, 999, NULL, 0, 0) > 0);
	reply = client_receive(fd);
	CU_ASSERT_EQUAL(reply->header.status, -EOPNOTSUPP);
	CU_ASSERT_EQUAL(reply->header.opcode, 999);
	CU_ASSERT_PTR_NOT_NULL(strstr(reply->payload, "opcode 999"));
	CU_ASSERT_EQUAL(fx.n_faults, 1);
	CU_ASSERT_EQUAL(fx.n_fatal_faults, 0);
	CU_ASSERT(ask(fd) > 0);
	CU_ASSERT_EQUAL(client_receive(fd)->header.status, 0);
	fd_close(fd);
}

static void a_broken_frame_closes_its_connection_alone(void)
{
	int fd = client_greet(), other = client_greet();

	CU_ASSERT_EQUAL(send(fd, "what is this", 12, MSG_NOSIGNAL), 12);
	CU_ASSERT_TRUE(client_is_closed(fd));
	CU_ASSERT_EQUAL(fx.n_fatal_faults, 1);
	CU_ASSERT_EQUAL(fx.n_closed, 1);
	CU_ASSERT(ask(other) > 0);
	CU_ASSERT_EQUAL(client_receive(other)->header.status, 0);
	fd_close(fd);
	fd_close(other);
}

static void a_flood_of_faults_is_slowed_down(void)
{
	int fd = client_greet(), other = client_greet();
	uint64_t start_ns = clock_now_ns();

	for (int i = 0; i < 36; i++) {
		CU_ASSERT(client_send(fd, 999, NULL, 0, 0) > 0);
		CU_ASSERT_EQUAL(client_receive(fd)->header.status, -EOPNOTSUPP);
		/* Who does nothing wrong is not kept waiting. */
		CU_ASSERT(ask(other) > 0);
		CU_ASSERT_EQUAL(client_receive(other)->header.status, 0);
	}
	/* 32 are free, but each 10 ms that pass give one more. */
	CU_ASSERT(clock_now_ns() - start_ns > 30 * NSEC_PER_MSEC);
	CU_ASSERT(ask(fd) > 0);
	CU_ASSERT_EQUAL(client_receive(fd)->header.status, 0);
	CU_ASSERT_EQUAL(fx.n_closed, 0);
	fd_close(fd);
	fd_close(other);
}

static void a_message_that_is_too_long_closes(void)
{
	static char bytes[DMAHEAP_MESSAGE_MAX_BYTES + 1];
	int fd = client_greet();

	CU_ASSERT(send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL) > 0);
	CU_ASSERT_TRUE(client_is_closed(fd));
	CU_ASSERT_EQUAL(fx.last_fault.err, EMSGSIZE);
	fd_close(fd);
}

static void an_empty_packet_closes(void)
{
	int fd = client_greet();

	CU_ASSERT_EQUAL(send(fd, "", 0, MSG_NOSIGNAL), 0);
	CU_ASSERT_TRUE(client_is_closed(fd));
	CU_ASSERT_EQUAL(fx.n_faults, 0);
	fd_close(fd);
}

/* ---- handshake ---- */

static void the_first_request_must_be_hello(void)
{
	int fd = client_connect();
	struct client_reply *reply;

	CU_ASSERT(ask(fd) > 0);
	reply = client_receive(fd);
	CU_ASSERT_EQUAL(reply->header.status, -EPROTO);
	CU_ASSERT_PTR_NOT_NULL(strstr(reply->payload, "HELLO"));
	CU_ASSERT_EQUAL(fx.n_requests, 0);
	fd_close(fd);
}

static void who_says_nothing_is_closed(void)
{
	int silent, greeted;

	fx.limits.handshake_timeout_ns = 100 * NSEC_PER_MSEC;
	fixture_restart();
	greeted = client_greet();
	silent = client_connect();
	CU_ASSERT_TRUE(client_is_closed(silent));
	CU_ASSERT_EQUAL(fx.last_fault.err, ETIMEDOUT);
	test_loop_run_for(fx.loop, 120);
	CU_ASSERT_EQUAL(fx.n_closed, 1);
	CU_ASSERT(ask(greeted) > 0);
	CU_ASSERT_EQUAL(client_receive(greeted)->header.status, 0);
	fd_close(silent);
	fd_close(greeted);
}

/* HELLO is on its way, or not yet: the client must learn the reason. */
static void a_refused_peer_is_told_why(void)
{
	int early = client_connect(), late = client_connect();
	struct client_reply *reply;

	fx.refuse_with = EDQUOT;
	CU_ASSERT(client_send(early, DMAHEAP_OP_HELLO, NULL, 0, 0) > 0);
	reply = client_receive(early);
	CU_ASSERT_EQUAL(reply->header.status, -EDQUOT);
	CU_ASSERT_EQUAL(reply->header.opcode, DMAHEAP_OP_HELLO);
	CU_ASSERT_STRING_EQUAL(reply->payload, "no more of these");
	CU_ASSERT_TRUE(client_is_closed(early));
	CU_ASSERT(client_send(late, DMAHEAP_OP_HELLO, NULL, 0, 0) < 0);
	CU_ASSERT_EQUAL(client_receive(late)->header.status, -EDQUOT);
	CU_ASSERT_EQUAL(fx.n_closed, 0);
	fd_close(early);
	fd_close(late);
}

/* ---- fds received ---- */

static bool has_fds(void *ctx)
{
	return test_count_fds() == *(unsigned int *)ctx;
}

/* Other threads close what nobody wanted. Return: true once @n are left. */
static bool fds_become(unsigned int n)
{
	return test_loop_run_until(fx.loop, has_fds, &n);
}

static void fds_that_nobody_expects_are_closed(void)
{
	int fd = client_greet();
	unsigned int n = test_count_fds();

	CU_ASSERT(client_send(fd, DMAHEAP_OP_HEAPS, NULL, 0, 10) > 0);
	CU_ASSERT_EQUAL(client_receive(fd)->header.status, -EINVAL);
	CU_ASSERT_TRUE(fds_become(n));
	fd_close(fd);
}

static void fds_that_are_expected_may_be_kept(void)
{
	const struct dmaheap_adopt_req adopt = {0};
	int fd = client_greet();
	unsigned int n = test_count_fds();

	fx.answer = FIXTURE_KEEP_FD;
	CU_ASSERT(client_send(fd, DMAHEAP_OP_ADOPT, &adopt, sizeof(adopt),
			      DMAHEAP_ADOPT_MAX_COUNT) > 0);
	CU_ASSERT_EQUAL(client_receive(fd)->header.status, 0);
	CU_ASSERT(fcntl(fx.kept_fd, F_GETFD) & FD_CLOEXEC);
	CU_ASSERT_TRUE(fds_become(n + 1));
	fd_close(fd);
}

static void too_many_fds_close_the_connection(void)
{
	int fd = client_greet();
	unsigned int n = test_count_fds();

	CU_ASSERT(client_send(fd, DMAHEAP_OP_ADOPT, NULL, 0, 65) > 0);
	CU_ASSERT_TRUE(client_is_closed(fd));
	CU_ASSERT_EQUAL(fx.last_fault.err, EMFILE);
	CU_ASSERT_TRUE(fds_become(n - 2)); /* its socket and pidfd */
	fd_close(fd);
}

/* ---- limits ---- */

static void requests_in_flight_are_limited(void)
{
	int fd;

	fx.limits.max_in_flight = 4;
	fixture_restart();
	fd = client_greet();
	fx.answer = FIXTURE_LATER;
	for (int i = 0; i < 10; i++)
		CU_ASSERT(ask(fd) > 0);
	test_loop_run_for(fx.loop, 5);
	CU_ASSERT_EQUAL(fx.n_pending, 4);
	CU_ASSERT_EQUAL(conn_n_in_flight(fx.conn), 4);
	fixture_answer_pending();
	test_loop_run_for(fx.loop, 5);
	CU_ASSERT_EQUAL(fx.n_pending, 4);
	fixture_answer_pending();
	test_loop_run_for(fx.loop, 5);
	CU_ASSERT_EQUAL(fx.n_pending, 2);
	fixture_answer_pending();
	for (int i = 0; i < 10; i++)
		CU_ASSERT_EQUAL(client_receive(fd)->r, HEADER_BYTES);
	fd_close(fd);
}

static bool is_pending(void *ctx)
{
	(void)ctx;
	return fx.n_pending > 0;
}

static void a_request_with_fds_is_answered_before_the_next_is_read(void)
{
	struct dmaheap_adopt_req adopt = {0};
	int fd = client_greet();

	fx.answer = FIXTURE_LATER;
	for (int i = 0; i < 3; i++)
		CU_ASSERT(client_send(fd, DMAHEAP_OP_ADOPT, &adopt,
				      sizeof(adopt), 2) > 0);
	for (unsigned int i = 0; i < 3; i++) {
		/* It takes until the fds of the last are closed. */
		CU_ASSERT_TRUE(test_loop_run_until(fx.loop, is_pending, NULL));
		test_loop_run_for(fx.loop, 5);
		CU_ASSERT_EQUAL(fx.n_pending, 1);
		fixture_answer_pending();
	}
	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(client_receive(fd)->r, HEADER_BYTES);
	fd_close(fd);
}

static void unread_fds_are_limited(void)
{
	int fd;

	fd = client_greet();
	fx.answer = FIXTURE_WITH_FDS;
	fx.reply_n_fds = 16;
	for (int i = 0; i < 10; i++)
		CU_ASSERT(ask(fd) > 0);
	test_loop_run_for(fx.loop, 5);
	/* Four replies of 16; the fifth waits, and with it the rest. */
	CU_ASSERT_EQUAL(fx.n_requests, 1 + 5);
	for (int i = 0; i < 10; i++) {
		struct client_reply *reply = client_receive(fd);

		CU_ASSERT_EQUAL(reply->n_fds, 16);
	}
	CU_ASSERT_EQUAL(fx.n_requests, 1 + 10);
	fd_close(fd);
}

static void who_leaves_fds_unread_is_closed(void)
{
	int silent, reader;

	fx.limits.send_timeout_ns = 80 * NSEC_PER_MSEC;
	fixture_restart();
	silent = client_greet();
	reader = client_greet();
	fx.answer = FIXTURE_WITH_FDS;
	fx.reply_n_fds = 1;
	CU_ASSERT(ask(silent) > 0);
	CU_ASSERT(ask(reader) > 0);
	CU_ASSERT_EQUAL(client_receive(reader)->n_fds, 1);
	test_loop_run_for(fx.loop, 250);
	CU_ASSERT_EQUAL(fx.n_closed, 1);
	CU_ASSERT_EQUAL(fx.last_fault.err, ETIMEDOUT);
	CU_ASSERT_TRUE(client_is_closed(silent));
	CU_ASSERT(ask(reader) > 0);
	CU_ASSERT_EQUAL(client_receive(reader)->n_fds, 1);
	fd_close(silent);
	fd_close(reader);
}

/* A reply to somebody who does not read it is no sign of life. */
static void who_asks_but_reads_nothing_is_closed(void)
{
	unsigned int n = 0;
	int fd;

	fx.limits.send_timeout_ns = 50 * NSEC_PER_MSEC;
	fixture_restart();
	fd = client_greet();
	fx.answer = FIXTURE_WITH_FDS;
	fx.reply_n_fds = 1;
	CU_ASSERT(ask(fd) > 0);
	test_loop_run_for(fx.loop, 2);
	fx.answer = FIXTURE_AT_ONCE;
	/* The socket would take more replies than these. */
	for (; n < 150 && fx.n_closed == 0; n++) {
		(void)ask(fd);
		test_loop_run_for(fx.loop, 5);
	}
	CU_ASSERT_EQUAL(fx.n_closed, 1);
	CU_ASSERT_EQUAL(fx.last_fault.err, ETIMEDOUT);
	fd_close(fd);
}

static void who_asks_more_than_he_reads_lives(void)
{
	uint64_t end_ns;
	int fd;

	/* Long, since a busy host keeps us from reading, too. */
	fx.limits.send_timeout_ns = 800 * NSEC_PER_MSEC;
	fixture_restart();
	fd = client_greet();
	fx.answer = FIXTURE_WITH_FDS;
	fx.reply_n_fds = 1;
	/* One is always unread. */
	CU_ASSERT(ask(fd) > 0);
	end_ns = clock_now_ns() + 5 * fx.limits.send_timeout_ns / 2;
	for (unsigned int n = 0; clock_now_ns() < end_ns; n++) {
		if (n % 4 == 0)
			CU_ASSERT(ask(fd) > 0);
		CU_ASSERT(ask(fd) > 0);
		test_loop_run_for(fx.loop, 20);
		CU_ASSERT_EQUAL(client_receive(fd)->n_fds, 1);
	}
	CU_ASSERT_EQUAL(fx.n_closed, 0);
	fd_close(fd);
}

static void who_reads_slowly_but_steadily_lives(void)
{
	uint64_t end_ns;
	int fd;

	fx.limits.send_timeout_ns = 250 * NSEC_PER_MSEC;
	fixture_restart();
	fd = client_greet();
	fx.answer = FIXTURE_WITH_FDS;
	fx.reply_n_fds = 16;
	/* Always more waiting than may lie unread. */
	for (int i = 0; i < 8; i++)
		CU_ASSERT(ask(fd) > 0);
	end_ns = clock_now_ns() + 3 * fx.limits.send_timeout_ns;
	while (clock_now_ns() < end_ns) {
		test_loop_run_for(fx.loop, 5);
		CU_ASSERT_EQUAL(client_receive(fd)->n_fds, 16);
		CU_ASSERT(ask(fd) > 0);
	}
	CU_ASSERT_EQUAL(fx.n_closed, 0);
	fd_close(fd);
}

static void who_never_reads_a_full_socket_is_closed(void)
{
	int fd;

	fx.limits.send_timeout_ns = 20 * NSEC_PER_MSEC;
	fixture_restart();
	fd = client_greet();
	fx.answer = FIXTURE_WITH_FDS;
	fx.reply_n_fds = 0;
	fx.reply_bytes = 30000;
	for (int i = 0; i < 50; i++)
		(void)ask(fd);
	CU_ASSERT(fx.n_closed == 0);
	test_loop_run_for(fx.loop, 80);
	CU_ASSERT_EQUAL(fx.n_closed, 1);
	CU_ASSERT_EQUAL(fx.last_fault.err, ETIMEDOUT);
	fd_close(fd);
}

static void replies_that_pile_up_close(void)
{
	int fd;

	fx.limits.max_queue_bytes = 1000;
	fixture_restart();
	fd = client_greet();
	fx.answer = FIXTURE_LATER;
	fx.reply_n_fds = 40;
	for (int i = 0; i < 2; i++)
		CU_ASSERT(ask(fd) > 0);
	test_loop_run_for(fx.loop, 2);
	CU_ASSERT_EQUAL(fx.n_pending, 2);
	for (size_t i = 0; i < 2; i++) {
		char payload[2000] = "";
		struct iovec iov = {.iov_base = payload,
				    .iov_len = sizeof(payload)};
		int fds[40];

		for (size_t k = 0; k < 40; k++)
			fds[k] = fcntl(fx.memfd, F_DUPFD_CLOEXEC, 3);
		conn_reply(fx.pending[i].conn, &fx.pending[i].header, &iov, 1,
			   fds, 40);
		CU_ASSERT_EQUAL(fds[39], -1);
	}
	CU_ASSERT_EQUAL(fx.n_closed, 0); /* not from within */
	CU_ASSERT_TRUE(client_is_closed(fd));
	CU_ASSERT_EQUAL(fx.n_closed, 1);
	CU_ASSERT_EQUAL(fx.last_fault.err, ENOBUFS);
	fd_close(fd);
}

/* ---- closing ---- */

static void a_client_that_goes_is_noticed(void)
{
	int fd = client_greet();

	fd_close(fd);
	test_loop_run_for(fx.loop, 5);
	CU_ASSERT_EQUAL(fx.n_closed, 1);
	CU_ASSERT_EQUAL(fx.n_faults, 0);
}

static void the_user_may_close_inside_on_request(void)
{
	int fd = client_greet();

	fx.answer = FIXTURE_CLOSE;
	CU_ASSERT(ask(fd) > 0);
	CU_ASSERT_TRUE(client_is_closed(fd));
	CU_ASSERT_EQUAL(fx.n_closed, 1);
	fd_close(fd);
}

static void a_reply_to_one_who_has_gone_closes_its_fds(void)
{
	int fd = client_greet(), sent;

	fx.answer = FIXTURE_LATER;
	CU_ASSERT(ask(fd) > 0);
	test_loop_run_for(fx.loop, 2);
	conn_close(fx.conn);
	conn_close(fx.conn);
	sent = fcntl(fx.memfd, F_DUPFD_CLOEXEC, 3);
	conn_reply(fx.conn, &fx.pending[0].header, NULL, 0, &sent, 1);
	CU_ASSERT_EQUAL(sent, -1);
	CU_ASSERT_EQUAL(fx.n_closed, 0);
	test_loop_run_for(fx.loop, 2);
	CU_ASSERT_EQUAL(fx.n_closed, 1);
	fd_close(fd);
}

static void an_error_to_one_who_has_gone_is_dropped(void)
{
	int fd = client_greet();

	fx.answer = FIXTURE_LATER;
	CU_ASSERT(ask(fd) > 0);
	CU_ASSERT(ask(fd) > 0);
	test_loop_run_for(fx.loop, 2);
	fd_close(fd);
	conn_reply_error(fx.conn, &fx.pending[0].header, ENOMEM, "x");
	conn_reply_error(fx.conn, &fx.pending[1].header, ENOMEM, "x");
	test_loop_run_for(fx.loop, 2);
	CU_ASSERT_EQUAL(fx.n_closed, 1);
}

static void a_draining_listener_serves_who_is_there(void)
{
	int fd = client_greet(), late;

	listener_stop_accepting(fx.listener);
	late = client_connect();
	test_loop_run_for(fx.loop, 5);
	CU_ASSERT_EQUAL(fx.n_connected, 1);
	CU_ASSERT(ask(fd) > 0);
	CU_ASSERT_EQUAL(client_receive(fd)->header.status, 0);
	fd_close(fd);
	fd_close(late);
}

static void freeing_the_listener_closes_all(void)
{
	int fds[5];

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = client_greet();
	conn_close(fx.conn); /* one is closing already */
	CU_ASSERT_PTR_NOT_NULL(listener_next(fx.listener, NULL));
	fixture_restart();
	CU_ASSERT_EQUAL(fx.n_closed, 5);
	CU_ASSERT_PTR_NULL(listener_next(fx.listener, NULL));
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fd_close(fds[i]);
}

static void connections_can_be_walked(void)
{
	int fds[3];
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = client_greet();
	for (struct conn *c = listener_next(fx.listener, NULL); c;
	     c = listener_next(fx.listener, c)) {
		conn_set_user(c, &fds[n]);
		CU_ASSERT_PTR_EQUAL(conn_get_user(c), &fds[n]);
		n++;
	}
	CU_ASSERT_EQUAL(n, 3);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fd_close(fds[i]);
}

static void new_limits_count_for_new_connections(void)
{
	struct conn_limits limits = conn_limits_default;
	int before = client_greet(), after;

	limits.max_in_flight = 1;
	listener_set_limits(fx.listener, &limits);
	after = client_greet();
	fx.answer = FIXTURE_LATER;
	for (int i = 0; i < 3; i++) {
		CU_ASSERT(ask(before) > 0);
		CU_ASSERT(ask(after) > 0);
	}
	test_loop_run_for(fx.loop, 5);
	CU_ASSERT_EQUAL(fx.n_pending, 3 + 1);
	fd_close(before);
	fd_close(after);
}

/* ---- exhaustion ---- */

static void without_fds_connections_are_shed_and_later_served(void)
{
	struct rlimit old, low;
	int first, clients[20], lowest;
	struct listener_stats stats;

	fixture_restart(); /* io_uring takes the limit when it arms */
	first = client_connect();
	for (size_t i = 0; i < ARRAY_SIZE(clients); i++)
		clients[i] = client_connect();
	T_REQUIRE(getrlimit(RLIMIT_NOFILE, &old) == 0);
	low = old;
	lowest = fcntl(first, F_DUPFD_CLOEXEC, 3);
	fd_close(lowest);
	low.rlim_cur = (rlim_t)lowest + 2; /* one connection and its pidfd */
	T_REQUIRE(setrlimit(RLIMIT_NOFILE, &low) == 0);
	test_loop_run_for(fx.loop, 20);
	listener_get_stats(fx.listener, &stats);
	/* Two when the pidfd of the first comes too late for its place. */
	CU_ASSERT(stats.n_connections == 1 || stats.n_connections == 2);
	CU_ASSERT_EQUAL(stats.n_connections + stats.shed,
			1 + ARRAY_SIZE(clients));
	/* The one that is in is served meanwhile. */
	CU_ASSERT(client_send(first, DMAHEAP_OP_HELLO, NULL, 0, 0) > 0);
	CU_ASSERT_EQUAL(client_receive(first)->header.status, 0);
	CU_ASSERT_TRUE(client_is_closed(clients[ARRAY_SIZE(clients) - 1]));
	for (size_t i = 0; i < ARRAY_SIZE(clients); i++)
		fd_close(clients[i]);
	T_REQUIRE(setrlimit(RLIMIT_NOFILE, &old) == 0);
	test_loop_run_for(fx.loop, 60);
	/* io_uring goes by the old limit until its accept is armed anew. */
	for (int i = 0; i < 2; i++) {
		int fd = client_connect();

		test_loop_run_for(fx.loop, 60);
		fd_close(fd);
	}
	fd_close(client_greet());
	fd_close(first);
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"a request gets its reply", a_request_gets_its_reply},
		{"a reply carries payload and fds",
		 a_reply_carries_payload_and_fds},
		{"the peer is known when it connects",
		 the_peer_is_known_when_it_connects},
		{"errors say why", errors_say_why},
		{"a bad request is answered and the connection lives",
		 a_bad_request_is_answered_and_the_connection_lives},
		{"a broken frame closes its connection alone",
		 a_broken_frame_closes_its_connection_alone},
		{"a flood of faults is slowed down",
		 a_flood_of_faults_is_slowed_down},
		{"a message that is too long closes",
		 a_message_that_is_too_long_closes},
		{"an empty packet closes", an_empty_packet_closes},
		{"the first request must be HELLO",
		 the_first_request_must_be_hello},
		{"who says nothing is closed", who_says_nothing_is_closed},
		{"a refused peer is told why", a_refused_peer_is_told_why},
		{"fds that nobody expects are closed",
		 fds_that_nobody_expects_are_closed},
		{"fds that are expected may be kept",
		 fds_that_are_expected_may_be_kept},
		{"too many fds close the connection",
		 too_many_fds_close_the_connection},
		{"requests in flight are limited",
		 requests_in_flight_are_limited},
		{"a request with fds is answered before the next is read",
		 a_request_with_fds_is_answered_before_the_next_is_read},
		{"unread fds are limited", unread_fds_are_limited},
		{"who leaves fds unread is closed",
		 who_leaves_fds_unread_is_closed},
		{"who asks but reads nothing is closed",
		 who_asks_but_reads_nothing_is_closed},
		{"who asks more than he reads lives",
		 who_asks_more_than_he_reads_lives},
		{"who reads slowly but steadily lives",
		 who_reads_slowly_but_steadily_lives},
		{"who never reads a full socket is closed",
		 who_never_reads_a_full_socket_is_closed},
		{"replies that pile up close", replies_that_pile_up_close},
		{"a client that goes is noticed",
		 a_client_that_goes_is_noticed},
		{"the user may close inside on_request",
		 the_user_may_close_inside_on_request},
		{"a reply to one who has gone closes its fds",
		 a_reply_to_one_who_has_gone_closes_its_fds},
		{"an error to one who has gone is dropped",
		 an_error_to_one_who_has_gone_is_dropped},
		{"a draining listener serves who is there",
		 a_draining_listener_serves_who_is_there},
		{"freeing the listener closes all",
		 freeing_the_listener_closes_all},
		{"connections can be walked", connections_can_be_walked},
		{"new limits count for new connections",
		 new_limits_count_for_new_connections},
		{"without fds connections are shed and later served",
		 without_fds_connections_are_shed_and_later_served},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		TEST_LOOP_SUITES("conn", fixture_tear_down, tests),
		CU_SUITE_INFO_NULL,
	};

	test_loop_set_up = fixture_set_up;
	return t_main(argc, argv, suites);
}
