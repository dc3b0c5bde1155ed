/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fd.h"
#include "conn_support.h"
#include "support/fail_malloc.h"
#include "support/faults.h"

#define HEADER_BYTES ((ssize_t)sizeof(struct dmaheap_header))

static void tear_down(void)
{
	faults_clear();
	fixture_tear_down();
}

static ssize_t ask(int fd)
{
	return client_send(fd, DMAHEAP_OP_HEAPS, NULL, 0, 0);
}

static bool is_uring(void)
{
	return test_loop_kind == LOOP_URING;
}

/* ---- starting ---- */

static int try_loop(enum loop_kind kind, char reason[256])
{
	struct loop *l = NULL;
	int r = loop_new(&l, kind, reason, 256);

	CU_ASSERT_EQUAL(r == 0, l != NULL);
	loop_free(l);
	return r;
}

static void each_step_of_the_uring_may_be_refused(void)
{
	static const struct {
		enum fault fault;
		unsigned int skip;
		int err;
		const char *word;
	} steps[] = {
		{FAULT_URING_SETUP, 0, EPERM, "seccomp"},
		{FAULT_URING_SETUP, 0, ENOSYS, "io_uring_setup"},
		{FAULT_URING_SETUP, 0, EINVAL, "6.1"},
		{FAULT_URING_PROBE, 0, EINVAL, "probed"},
		{FAULT_URING_BUF_RING, 0, EINVAL, "buf_ring"},
		{FAULT_URING_REGISTER, 0, EINVAL, "restrictions"},
		{FAULT_URING_REGISTER, 1, EBADFD, "enabling"},
		{FAULT_URING_GET_EVENTS, 0, EPERM, "io_uring_enter"},
		{FAULT_MMAP, 0, ENOMEM, "buffers"},
		{FAULT_MMAP, 1, ENOMEM, "buffers"},
	};
	char reason[256];
	struct loop *l;

	if (!is_uring())
		return;
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		faults_arm(steps[i].fault, steps[i].skip, 1, steps[i].err);
		CU_ASSERT(try_loop(LOOP_URING, reason) < 0);
		CU_ASSERT_PTR_NOT_NULL(strstr(reason, steps[i].word));
		CU_ASSERT_EQUAL(faults_hits(steps[i].fault), 1);

		/* And auto takes epoll, with the same words. */
		faults_arm(steps[i].fault, steps[i].skip, 1, steps[i].err);
		CU_ASSERT_EQUAL(loop_new(&l, LOOP_AUTO, reason, sizeof(reason)),
				0);
		CU_ASSERT_STRING_EQUAL(loop_name(l), "epoll");
		CU_ASSERT_PTR_NOT_NULL(strstr(reason, steps[i].word));
		loop_free(l);
		faults_clear();
	}
}

static void epoll_may_be_refused(void)
{
	char reason[256];

	faults_arm(FAULT_EPOLL_CREATE1, 0, 1, EMFILE);
	CU_ASSERT_EQUAL(try_loop(LOOP_EPOLL, reason), -EMFILE);
	CU_ASSERT_PTR_NOT_NULL(strstr(reason, "epoll"));
}

static void stop(void *ctx)
{
	loop_stop(ctx);
}

/* Waits have a timeout then. */
static void without_a_timerfd_timers_come_still(void)
{
	uint64_t start_ns = clock_now_ns();
	struct loop_timer timer;
	struct loop *l = NULL;
	char reason[256];

	faults_arm(FAULT_TIMERFD_CREATE, 0, 1, EMFILE);
	CU_ASSERT_EQUAL(loop_new(&l, test_loop_kind, reason, sizeof(reason)),
			0);
	CU_ASSERT_EQUAL(faults_hits(FAULT_TIMERFD_CREATE), 1);
	faults_clear();
	loop_timer_init(&timer, stop, l);
	loop_timer_set(l, &timer, start_ns + 5 * NSEC_PER_MSEC);
	CU_ASSERT_EQUAL(loop_run(l), 0);
	CU_ASSERT_TRUE(clock_now_ns() - start_ns >= 5 * NSEC_PER_MSEC);
	loop_free(l);
}

static void noop(void *ctx)
{
	(void)ctx;
}

static void without_memory_nothing_is_made_and_nothing_leaks(void)
{
	struct loop_watch *watch = NULL;
	struct listener *listener = NULL;
	struct loop *l = NULL;
	char reason[256];
	int r;

	FAIL_MALLOC_EACH({
		l = NULL;
		r = loop_new(&l, test_loop_kind, reason, sizeof(reason));
		CU_ASSERT_EQUAL(r == 0, l != NULL);
		CU_ASSERT_EQUAL(r == 0, !fail_malloc_hit());
		loop_free(l);
	});
	FAIL_MALLOC_EACH({
		static const struct conn_ops unused;

		listener = NULL;
		fx.listener = listener_free(fx.listener);
		r = listener_new(&listener, fx.loop, fx.listen_fd, &fx.limits,
				 &unused, NULL);
		CU_ASSERT_EQUAL(r, fail_malloc_hit() ? -ENOMEM : 0);
		listener_free(listener);
	});
	FAIL_MALLOC_EACH({
		watch = NULL;
		r = loop_watch_new(&watch, fx.loop, fx.listen_fd, LOOP_READABLE,
				   noop, NULL);
		CU_ASSERT_EQUAL(r, fail_malloc_hit() ? -ENOMEM : 0);
		loop_watch_free(watch);
	});
	fixture_restart();
}

static void an_fd_that_epoll_refuses_is_told(void)
{
	struct loop_watch *watch = NULL;
	struct listener *listener = NULL;
	static const struct conn_ops unused;

	if (is_uring())
		return;
	fx.listener = listener_free(fx.listener);
	faults_arm(FAULT_EPOLL_CTL, 0, 2, ENOSPC);
	CU_ASSERT_EQUAL(loop_watch_new(&watch, fx.loop, fx.listen_fd,
				       LOOP_READABLE, noop, NULL),
			-ENOSPC);
	CU_ASSERT_EQUAL(listener_new(&listener, fx.loop, fx.listen_fd,
				     &fx.limits, &unused, NULL),
			-ENOSPC);
	fixture_restart();
}

/* ---- accepting ---- */

static void a_connection_without_memory_is_closed_and_others_live(void)
{
	struct listener_stats stats;
	int fd, other = client_greet();
	unsigned int n_failed = 0;

	FAIL_MALLOC_EACH({
		fd = client_connect();
		test_loop_run_for(fx.loop, 2);
		n_failed += (unsigned int)fail_malloc_hit();
		fd_close(fd);
		test_loop_run_for(fx.loop, 2);
	});
	listener_get_stats(fx.listener, &stats);
	CU_ASSERT(n_failed > 0);
	CU_ASSERT_EQUAL(stats.shed, n_failed);
	CU_ASSERT(ask(other) > 0);
	CU_ASSERT_EQUAL(client_receive(other)->header.status, 0);
	fd_close(other);
}

static void credentials_that_cannot_be_had_close(void)
{
	struct listener_stats stats;
	int fd;

	/* SO_PEERCRED, SO_PEERGROUPS, then its second call if there are any. */
	for (unsigned int i = 0; i < 2; i++) {
		fd = client_connect();
		faults_arm(FAULT_GETSOCKOPT, i, 1, ENOBUFS);
		CU_ASSERT_TRUE(client_is_closed(fd));
		CU_ASSERT_EQUAL(faults_hits(FAULT_GETSOCKOPT), 1);
		fd_close(fd);
	}
	listener_get_stats(fx.listener, &stats);
	CU_ASSERT_EQUAL(stats.shed, 2);
	CU_ASSERT_EQUAL(fx.n_connected, 0);
}

static void without_so_peerpidfd_the_pid_is_opened(void)
{
	int fd = client_connect();

	faults_arm(FAULT_GETSOCKOPT, 2, 1, ENOPROTOOPT);
	test_loop_run_for(fx.loop, 3);
	if (getgroups(0, NULL) == 0)
		CU_ASSERT_EQUAL(faults_hits(FAULT_GETSOCKOPT), 1);
	CU_ASSERT_EQUAL(fx.n_connected, 1);
	CU_ASSERT(fx.peer.pidfd >= 0);
	fd_close(fd);
}

static void accept_that_fails_is_tried_again_later(void)
{
	int fd = client_connect();

	if (!is_uring())
		faults_arm(FAULT_ACCEPT4, 0, 1, ENOMEM);
	test_loop_run_for(fx.loop, 5);
	if (!is_uring())
		CU_ASSERT_EQUAL(fx.n_connected, 0);
	test_loop_run_for(fx.loop, 80);
	CU_ASSERT_EQUAL(fx.n_connected, 1);
	fd_close(fd);
}

static void shedding_that_fails_is_tried_again_later(void)
{
	int fd = client_connect();

	if (is_uring()) {
		fd_close(fd);
		return;
	}
	/* The acceptor's own call, then the one into the spare place. */
	faults_arm(FAULT_ACCEPT4, 0, 2, EMFILE);
	test_loop_run_for(fx.loop, 5);
	CU_ASSERT_EQUAL(fx.n_connected, 0);
	test_loop_run_for(fx.loop, 80);
	CU_ASSERT_EQUAL(fx.n_connected, 1);
	fd_close(fd);
}

/* ---- receiving ---- */

static void a_receive_that_fails_closes_that_connection(void)
{
	int fd = client_greet();

	if (is_uring()) {
		fd_close(fd);
		return;
	}
	faults_arm(FAULT_RECVMSG, 0, 1, ENOMEM);
	CU_ASSERT(ask(fd) > 0);
	test_loop_run_for(fx.loop, 5);
	CU_ASSERT_EQUAL(fx.n_closed, 1);
	fd_close(fd);
}

static void an_interrupted_receive_is_done_again(void)
{
	int fd = client_greet();

	if (!is_uring())
		faults_arm(FAULT_RECVMSG, 0, 1, EINTR);
	CU_ASSERT(ask(fd) > 0);
	test_loop_run_for(fx.loop, 5);
	CU_ASSERT_EQUAL(fx.n_requests, 2);
	fd_close(fd);
}

static void a_registration_that_fails_is_tried_again_then_told(void)
{
	int once, twice;

	if (is_uring())
		return;
	once = client_connect();
	/* Accepting needs none; the first is for reading. */
	faults_arm(FAULT_EPOLL_CTL, 0, 1, ENOMEM);
	test_loop_run_for(fx.loop, 5);
	CU_ASSERT_EQUAL(faults_hits(FAULT_EPOLL_CTL), 1);
	CU_ASSERT(client_send(once, DMAHEAP_OP_HELLO, NULL, 0, 0) > 0);
	CU_ASSERT_EQUAL(client_receive(once)->header.status, 0);
	twice = client_connect();
	faults_arm(FAULT_EPOLL_CTL, 0, 2, ENOMEM);
	CU_ASSERT_TRUE(client_is_closed(twice));
	CU_ASSERT_EQUAL(fx.n_closed, 1);
	fd_close(once);
	fd_close(twice);
}

/* ---- sending ---- */

static void too_many_refs_are_waited_out(void)
{
	int fd = client_greet();

	fx.answer = FIXTURE_WITH_FDS;
	fx.reply_n_fds = 2;
	/* The client's own sendmsg() is the first. */
	faults_arm(FAULT_SENDMSG, 2, 2, ETOOMANYREFS);
	CU_ASSERT(ask(fd) > 0);
	CU_ASSERT(ask(fd) > 0);
	CU_ASSERT_TRUE(client_has_nothing(fd));
	CU_ASSERT_EQUAL(faults_hits(FAULT_SENDMSG), 1);
	test_loop_run_for(fx.loop, 40);
	CU_ASSERT_EQUAL(faults_hits(FAULT_SENDMSG), 2);
	CU_ASSERT_EQUAL(client_receive(fd)->n_fds, 2);
	CU_ASSERT_EQUAL(client_receive(fd)->n_fds, 2);
	CU_ASSERT_EQUAL(fx.n_closed, 0);
	fd_close(fd);
}

static void too_many_refs_for_ever_end_the_connection(void)
{
	uint64_t start_ns = clock_now_ns();
	int fd;

	fx.limits.send_timeout_ns = 30 * NSEC_PER_MSEC;
	fixture_restart();
	fd = client_greet();
	faults_arm(FAULT_SENDMSG, 1, UINT32_MAX, ETOOMANYREFS);
	CU_ASSERT(ask(fd) > 0);
	CU_ASSERT_TRUE(client_is_closed(fd));
	CU_ASSERT_EQUAL(fx.n_closed, 1);
	/* Others may be to blame: they get less time than this one. */
	CU_ASSERT(clock_now_ns() - start_ns > 100 * NSEC_PER_MSEC);
	fd_close(fd);
}

static void a_full_socket_queues_and_an_interruption_does_not(void)
{
	int fd = client_greet();

	faults_arm(FAULT_SENDMSG, 1, 1, EINTR);
	CU_ASSERT(ask(fd) > 0);
	CU_ASSERT_EQUAL(client_receive(fd)->r, HEADER_BYTES);
	faults_arm(FAULT_SENDMSG, 1, 1, EAGAIN);
	CU_ASSERT(ask(fd) > 0);
	CU_ASSERT_EQUAL(client_receive(fd)->r, HEADER_BYTES);
	CU_ASSERT_EQUAL(faults_hits(FAULT_SENDMSG), 1);
	fd_close(fd);
}

static void a_send_that_fails_closes_now_and_from_the_queue(void)
{
	int fd = client_greet();

	fx.answer = FIXTURE_WITH_FDS;
	fx.reply_n_fds = 3;
	faults_arm(FAULT_SENDMSG, 1, 1, EPIPE);
	CU_ASSERT(ask(fd) > 0);
	CU_ASSERT_TRUE(client_is_closed(fd));
	fd_close(fd);

	fx.answer = FIXTURE_AT_ONCE;
	fd = client_greet();
	fx.answer = FIXTURE_WITH_FDS;
	CU_ASSERT(ask(fd) > 0);
	faults_arm(FAULT_SENDMSG, 0, 1, EAGAIN);
	while (faults_hits(FAULT_SENDMSG) == 0)
		test_loop_run_for(fx.loop, 0);
	faults_arm(FAULT_SENDMSG, 0, 1, EPIPE);
	CU_ASSERT_TRUE(client_is_closed(fd));
	CU_ASSERT_EQUAL(fx.n_closed, 2);
	fd_close(fd);
}

static void without_memory_to_queue_the_connection_ends(void)
{
	int fd = client_greet();

	fx.answer = FIXTURE_LATER;
	CU_ASSERT(ask(fd) > 0);
	test_loop_run_for(fx.loop, 2);
	faults_arm(FAULT_SENDMSG, 0, 1, EAGAIN);
	fail_malloc_at(1);
	fixture_answer_pending();
	CU_ASSERT_TRUE(fail_malloc_hit());
	fail_malloc_at(0);
	CU_ASSERT_TRUE(client_is_closed(fd));
	CU_ASSERT_EQUAL(fx.last_fault.err, ENOBUFS);
	fd_close(fd);
}

/* ---- waiting ---- */

static void waits_that_fail_now_and_then_lose_nothing(void)
{
	int fd;

	faults_arm_every(is_uring() ? FAULT_URING_WAIT : FAULT_EPOLL_WAIT, 2,
			 is_uring() ? EAGAIN : EINTR);
	fd = client_greet();
	for (int i = 0; i < 20; i++) {
		CU_ASSERT(ask(fd) > 0);
		test_loop_run_for(fx.loop, 8);
		CU_ASSERT_EQUAL(client_receive(fd)->r, HEADER_BYTES);
	}
	fd_close(fd);
}

static void a_wait_that_fails_for_good_ends_the_loop(void)
{
	enum fault fault = is_uring() ? FAULT_URING_WAIT : FAULT_EPOLL_WAIT;

	faults_arm(fault, 0, 1, EBADF);
	CU_ASSERT_EQUAL(loop_run(fx.loop), -EBADF);
	if (is_uring()) {
		faults_arm(fault, 0, UINT32_MAX, ENOMEM);
		CU_ASSERT_EQUAL(loop_run(fx.loop), -ENOMEM);
		CU_ASSERT(faults_hits(fault) > 100);
	}
	faults_clear();
}

static struct loop_watch *watches[1000];
static unsigned int n_called;

static void count_call(void *ctx)
{
	struct loop_watch **watch = ctx;

	n_called++;
	*watch = loop_watch_free(*watch);
}

static void more_ops_than_the_queue_holds_are_submitted_in_turn(void)
{
	int pair[2];

	T_REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) ==
		  0);
	if (!is_uring()) { /* which takes an fd only once */
		fd_close(pair[0]);
		fd_close(pair[1]);
		return;
	}
	n_called = 0;
	faults_arm(FAULT_URING_SUBMIT, 0, 2, EBUSY);
	for (size_t i = 0; i < ARRAY_SIZE(watches); i++)
		CU_ASSERT_EQUAL(loop_watch_new(&watches[i], fx.loop, pair[0],
					       LOOP_WRITABLE, count_call,
					       &watches[i]),
				0);
	test_loop_run_for(fx.loop, 20);
	CU_ASSERT_EQUAL(n_called, ARRAY_SIZE(watches));
	CU_ASSERT_EQUAL(faults_hits(FAULT_URING_SUBMIT), 2);
	fd_close(pair[0]);
	fd_close(pair[1]);
}

static void a_ring_that_fails_for_good_frees_what_it_holds(void)
{
	struct loop_watch *watch = NULL;
	struct loop *l = test_loop_new();

	CU_ASSERT_EQUAL(loop_watch_new(&watch, l, fx.listen_fd, LOOP_READABLE,
				       noop, NULL),
			0);
	test_loop_run_for(l, 2); /* in flight */
	faults_arm(FAULT_URING_WAIT, 0, UINT32_MAX, EBADF);
	loop_watch_free(watch);
	loop_free(l);
	faults_clear();
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"each step of the io_uring may be refused",
		 each_step_of_the_uring_may_be_refused},
		{"epoll may be refused", epoll_may_be_refused},
		{"without a timerfd timers come still",
		 without_a_timerfd_timers_come_still},
		{"without memory nothing is made and nothing leaks",
		 without_memory_nothing_is_made_and_nothing_leaks},
		{"an fd that epoll refuses is told",
		 an_fd_that_epoll_refuses_is_told},
		{"a connection without memory is closed and others live",
		 a_connection_without_memory_is_closed_and_others_live},
		{"credentials that cannot be had close",
		 credentials_that_cannot_be_had_close},
		{"without SO_PEERPIDFD the pid is opened",
		 without_so_peerpidfd_the_pid_is_opened},
		{"accept that fails is tried again later",
		 accept_that_fails_is_tried_again_later},
		{"shedding that fails is tried again later",
		 shedding_that_fails_is_tried_again_later},
		{"a receive that fails closes that connection",
		 a_receive_that_fails_closes_that_connection},
		{"an interrupted receive is done again",
		 an_interrupted_receive_is_done_again},
		{"a registration that fails is tried again then told",
		 a_registration_that_fails_is_tried_again_then_told},
		{"too many refs are waited out", too_many_refs_are_waited_out},
		{"too many refs for ever end the connection",
		 too_many_refs_for_ever_end_the_connection},
		{"a full socket queues and an interruption does not",
		 a_full_socket_queues_and_an_interruption_does_not},
		{"a send that fails closes, now and from the queue",
		 a_send_that_fails_closes_now_and_from_the_queue},
		{"without memory to queue the connection ends",
		 without_memory_to_queue_the_connection_ends},
		{"waits that fail now and then lose nothing",
		 waits_that_fail_now_and_then_lose_nothing},
		{"a wait that fails for good ends the loop",
		 a_wait_that_fails_for_good_ends_the_loop},
		{"more ops than the queue holds are submitted in turn",
		 more_ops_than_the_queue_holds_are_submitted_in_turn},
		{"a ring that fails for good frees what it holds",
		 a_ring_that_fails_for_good_frees_what_it_holds},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		TEST_LOOP_SUITES("faults", tear_down, tests),
		CU_SUITE_INFO_NULL,
	};

	test_loop_set_up = fixture_set_up;
	return t_main(argc, argv, suites);
}
