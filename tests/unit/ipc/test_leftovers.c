/* SPDX-License-Identifier: MIT */
/*
 * What clients send and nobody wants, when closing it does not return: who sent
 * it waits, and stays charged; nobody else notices.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "conn_support.h"
#include "support/blocker.h"

static struct blocker blocker;
static bool has_passrights;

static ssize_t ask(int fd)
{
	return client_send(fd, DMAHEAP_OP_HEAPS, NULL, 0, 0);
}

static void check_served(int fd)
{
	CU_ASSERT(ask(fd) > 0);
	CU_ASSERT_EQUAL(client_receive(fd)->header.status, 0);
}

static bool is_gone(void *ctx)
{
	return fx.n_gone == *(unsigned int *)ctx;
}

static bool wait_gone(unsigned int n)
{
	return test_loop_run_until(fx.loop, is_gone, &n);
}

static bool has_fds(void *ctx)
{
	return test_count_fds() == *(unsigned int *)ctx;
}

static bool wait_fds(unsigned int n)
{
	return test_loop_run_until(fx.loop, has_fds, &n);
}

static void set_up(void)
{
	const int off = 0;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	has_passrights = setsockopt(fd, SOL_SOCKET, 83, &off, sizeof(off)) == 0;
	fd_close(fd);
	fixture_set_up();
	T_REQUIRE(blocker_tcp(&blocker));
}

static void tear_down(void)
{
	blocker_free(&blocker);
	fixture_tear_down();
}

/* Sends what cannot be closed; our own copy is closed first, so that the
 * daemon's is the last. */
static void send_blocking(int fd, uint16_t opcode, const void *body,
			  size_t n_bytes)
{
	CU_ASSERT(client_send_fds(fd, opcode, body, n_bytes, blocker.fd, 1) >
		  0);
	blocker_close_fd(&blocker);
}

static void who_sent_it_is_not_read_until_it_is_closed(void)
{
	int fd = client_greet(), other = client_greet();

	send_blocking(fd, DMAHEAP_OP_HEAPS, NULL, 0);
	CU_ASSERT_EQUAL(client_receive(fd)->header.status, -EINVAL);
	CU_ASSERT(ask(fd) > 0);
	for (int i = 0; i < 10; i++)
		check_served(other);
	CU_ASSERT_TRUE(client_has_nothing(fd));
	blocker_release(&blocker);
	CU_ASSERT_EQUAL(client_receive(fd)->header.status, 0);
	check_served(fd);
	fd_close(fd);
	fd_close(other);
}

static void who_sent_it_and_leaves_is_gone_when_it_is_closed(void)
{
	int fd = client_greet(), other = client_greet();

	send_blocking(fd, DMAHEAP_OP_HEAPS, NULL, 0);
	CU_ASSERT_EQUAL(client_receive(fd)->header.status, -EINVAL);
	conn_close(listener_next(fx.listener, NULL));
	test_loop_run_for(fx.loop, 5);
	CU_ASSERT_EQUAL(fx.n_closed, 1);
	CU_ASSERT_EQUAL(fx.n_gone, 0);
	check_served(other);
	CU_ASSERT_EQUAL(fx.n_gone, 0);
	blocker_release(&blocker);
	CU_ASSERT_TRUE(wait_gone(1));
	check_served(other);
	fd_close(fd);
	fd_close(other);
}

/* More than are allowed: those beyond that are nothing that the kernel may
 * close in the loop's thread. */
static void too_many_are_no_different(unsigned int n_fds)
{
	int fd = client_greet(), other = client_greet();

	CU_ASSERT(client_send_fds_and(fd, DMAHEAP_OP_HEAPS, NULL, 0, fx.memfd,
				      n_fds, blocker.fd) > 0);
	blocker_close_fd(&blocker);
	CU_ASSERT_TRUE(client_is_closed(fd));
	CU_ASSERT_EQUAL(fx.last_fault.err, EMFILE);
	check_served(other);
	CU_ASSERT_EQUAL(fx.n_closed, 1);
	CU_ASSERT_EQUAL(fx.n_gone, 0);
	blocker_release(&blocker);
	CU_ASSERT_TRUE(wait_gone(1));
	fd_close(fd);
	fd_close(other);
}

static void one_too_many_is_no_different(void)
{
	too_many_are_no_different(DMAHEAP_ADOPT_MAX_COUNT + 1);
}

static void as_many_as_linux_lets_through_are_no_different(void)
{
	too_many_are_no_different(LOOP_MESSAGE_MAX_FDS);
}

/* It lies in the socket's queue when the connection ends. */
static void what_was_never_read_is_no_different(void)
{
	const struct dmaheap_adopt_req adopt = {0};
	int fd = client_greet(), other = client_greet();
	unsigned int n = test_count_fds();

	fx.answer = FIXTURE_LATER;
	CU_ASSERT(client_send(fd, DMAHEAP_OP_ADOPT, &adopt, sizeof(adopt), 1) >
		  0);
	test_loop_run_for(fx.loop, 5);
	CU_ASSERT_EQUAL(fx.n_pending, 1);
	send_blocking(fd, DMAHEAP_OP_ADOPT, &adopt, sizeof(adopt));
	conn_close(fx.pending[0].conn);
	fx.answer = FIXTURE_AT_ONCE;
	test_loop_run_for(fx.loop, 5);
	CU_ASSERT_EQUAL(fx.n_closed, 1);
	CU_ASSERT_EQUAL(fx.n_gone, 0);
	check_served(other);
	CU_ASSERT_EQUAL(fx.n_gone, 0);
	blocker_release(&blocker);
	CU_ASSERT_TRUE(wait_gone(1));
	/* The connection's socket and pidfd, and the blocker's two. */
	CU_ASSERT_TRUE(wait_fds(n - 4));
	fd_close(fd);
	fd_close(other);
}

static void a_message_that_is_under_way_when_it_closes_is_no_different(void)
{
	int fd = client_greet(), other = client_greet();

	send_blocking(fd, DMAHEAP_OP_HEAPS, NULL, 0);
	conn_close(listener_next(fx.listener, NULL));
	test_loop_run_for(fx.loop, 5);
	CU_ASSERT_EQUAL(fx.n_closed, 1);
	CU_ASSERT_EQUAL(fx.n_requests, 2);
	CU_ASSERT_EQUAL(fx.n_gone, 0);
	check_served(other);
	blocker_release(&blocker);
	CU_ASSERT_TRUE(wait_gone(1));
	fd_close(fd);
	fd_close(other);
}

/* The user has taken it, as a request that waits for its turn. */
static void what_the_user_gives_back_is_no_different(void)
{
	const struct dmaheap_adopt_req adopt = {0};
	int fd = client_greet(), other = client_greet();
	struct conn *conn = listener_next(fx.listener, NULL);

	fx.answer = FIXTURE_KEEP_FD;
	send_blocking(fd, DMAHEAP_OP_ADOPT, &adopt, sizeof(adopt));
	CU_ASSERT_EQUAL(client_receive(fd)->header.status, 0);
	fx.answer = FIXTURE_AT_ONCE;
	conn_close_fds(conn, &fx.kept_fd, 1);
	CU_ASSERT_EQUAL(fx.kept_fd, -1);
	check_served(other);
	conn_close(conn);
	test_loop_run_for(fx.loop, 5);
	CU_ASSERT_EQUAL(fx.n_gone, 0);
	blocker_release(&blocker);
	CU_ASSERT_TRUE(wait_gone(1));
	fd_close(fd);
	fd_close(other);
}

static void freeing_the_listener_does_not_wait_for_it(void)
{
	unsigned int n = test_count_fds();
	int fd = client_greet();

	send_blocking(fd, DMAHEAP_OP_HEAPS, NULL, 0);
	CU_ASSERT_EQUAL(client_receive(fd)->header.status, -EINVAL);
	fixture_restart();
	CU_ASSERT_EQUAL(fx.n_closed, 1);
	CU_ASSERT_EQUAL(fx.n_gone, 1);
	fd_close(fd);
	fd = client_greet();
	check_served(fd);
	fd_close(fd);
	blocker_release(&blocker);
	/* Of the old listener's nobody is told; it is closed still. */
	CU_ASSERT_TRUE(wait_fds(n - 2));
}

/* Whom no quota pays for cannot leave anything behind. */
static void nobody_sends_fds_before_he_is_welcome(void)
{
	int fd = client_connect();

	if (!has_passrights) {
		fd_close(fd);
		return; /* Linux before 6.16 */
	}
	CU_ASSERT_EQUAL(client_send(fd, DMAHEAP_OP_HELLO, NULL, 0, 1), -EPERM);
	CU_ASSERT(client_send(fd, DMAHEAP_OP_HELLO, NULL, 0, 0) > 0);
	CU_ASSERT_EQUAL(client_receive(fd)->header.status, 0);
	CU_ASSERT(client_send(fd, DMAHEAP_OP_HEAPS, NULL, 0, 1) > 0);
	CU_ASSERT_EQUAL(client_receive(fd)->header.status, -EINVAL);
	fd_close(fd);
}

static void who_is_refused_with_messages_unread_learns_why(void)
{
	int fd = client_connect();

	fx.refuse_with = EDQUOT;
	for (int i = 0; i < 3; i++)
		CU_ASSERT(ask(fd) > 0);
	CU_ASSERT_EQUAL(client_receive(fd)->header.status, -EDQUOT);
	CU_ASSERT_TRUE(client_is_closed(fd));
	CU_ASSERT_EQUAL(fx.n_closed + fx.n_gone, 0);
	fd_close(fd);
}

/* One message more than may be with the closer can be under way: that is what
 * CLOSER_GROUP_MAX is for. */
static void full_messages_one_after_the_other_fit(void)
{
	const struct dmaheap_adopt_req adopt = {0};
	int fd = client_greet();
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	for (int i = 0; i < 50; i++) {
		CU_ASSERT(client_send_fds(fd, DMAHEAP_OP_ADOPT, &adopt,
					  sizeof(adopt), null, 64) > 0);
		CU_ASSERT(client_send_fds(fd, DMAHEAP_OP_HEAPS, NULL, 0, null,
					  64) > 0);
		CU_ASSERT_EQUAL(client_receive(fd)->header.status, 0);
		CU_ASSERT_EQUAL(client_receive(fd)->header.status, -EINVAL);
	}
	CU_ASSERT_EQUAL(fx.n_closed, 0);
	fd_close(fd);
	fd_close(null);
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"who sent it is not read until it is closed",
		 who_sent_it_is_not_read_until_it_is_closed},
		{"who sent it and leaves is gone when it is closed",
		 who_sent_it_and_leaves_is_gone_when_it_is_closed},
		{"one too many is no different", one_too_many_is_no_different},
		{"as many as Linux lets through are no different",
		 as_many_as_linux_lets_through_are_no_different},
		{"what was never read is no different",
		 what_was_never_read_is_no_different},
		{"a message that is under way when it closes is no different",
		 a_message_that_is_under_way_when_it_closes_is_no_different},
		{"what the user gives back is no different",
		 what_the_user_gives_back_is_no_different},
		{"freeing the listener does not wait for it",
		 freeing_the_listener_does_not_wait_for_it},
		{"nobody sends fds before he is welcome",
		 nobody_sends_fds_before_he_is_welcome},
		{"who is refused with messages unread learns why",
		 who_is_refused_with_messages_unread_learns_why},
		{"full messages one after the other fit",
		 full_messages_one_after_the_other_fit},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		TEST_LOOP_SUITES("leftovers", tear_down, tests),
		CU_SUITE_INFO_NULL,
	};

	test_loop_set_up = set_up;
	return t_main(argc, argv, suites);
}
