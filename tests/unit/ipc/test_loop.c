/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <dmaheap/protocol.h>

#include "base/clock.h"
#include "base/fd.h"
#include "loop_support.h"

static struct loop *loop;
static int pair[2] = {-1, -1}; /* [0] is the loop's */
static int listen_fd = -1;
static struct sockaddr_un address;
static unsigned int n_fds_before;

static void set_up(void)
{
	n_fds_before = test_count_fds();
	loop = test_loop_new();
	T_REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) ==
		  0);
	T_REQUIRE(fcntl(pair[0], F_SETFL, O_NONBLOCK) == 0);
}

static void tear_down(void)
{
	loop = loop_free(loop);
	pair[0] = fd_close(pair[0]);
	pair[1] = fd_close(pair[1]);
	listen_fd = fd_close(listen_fd);
	CU_ASSERT_EQUAL(test_count_fds(), n_fds_before);
}

/* ---- timers ---- */

static char fired[16];
static size_t n_fired;

struct named_timer {
	struct loop_timer timer;
	char name;
};

static void on_named_timer(void *ctx)
{
	struct named_timer *t = ctx;

	if (n_fired < sizeof(fired) - 1)
		fired[n_fired++] = t->name;
}

static void timers_fire_in_the_order_of_their_time(void)
{
	struct named_timer t[4];
	uint64_t now_ns = clock_now_ns();

	n_fired = 0;
	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		t[i].name = (char)('a' + i);
		loop_timer_init(&t[i].timer, on_named_timer, &t[i]);
	}
	loop_timer_set(loop, &t[0].timer, now_ns + 3 * NSEC_PER_MSEC);
	loop_timer_set(loop, &t[1].timer, 0);
	loop_timer_set(loop, &t[2].timer, now_ns + 2 * NSEC_PER_MSEC);
	loop_timer_set(loop, &t[3].timer, now_ns + NSEC_PER_MSEC);
	loop_timer_clear(loop, &t[3].timer);
	loop_timer_clear(loop, &t[3].timer);
	while (n_fired < 3)
		test_loop_run_for(loop, 1);
	test_loop_run_for(loop, 2);
	fired[n_fired] = '\0';
	CU_ASSERT_STRING_EQUAL(fired, "bca");
	CU_ASSERT_FALSE(t[0].timer.armed);
}

static struct loop_timer eager;
static unsigned int n_eager;

static void on_eager(void *ctx)
{
	(void)ctx;
	n_eager++;
	loop_timer_set(loop, &eager, 0);
}

static void a_timer_armed_for_the_past_does_not_stop_the_loop(void)
{
	n_eager = 0;
	loop_timer_init(&eager, on_eager, NULL);
	loop_timer_set(loop, &eager, 0);
	test_loop_run_for(loop, 5);
	CU_ASSERT(n_eager > 3);
	loop_timer_clear(loop, &eager);
}

static void a_timer_is_never_early(void)
{
	struct named_timer t = {.name = 'x'};
	uint64_t at_ns = clock_now_ns() + 1500 * NSEC_PER_USEC;

	n_fired = 0;
	loop_timer_init(&t.timer, on_named_timer, &t);
	loop_timer_set(loop, &t.timer, at_ns);
	while (n_fired == 0)
		test_loop_run_for(loop, 1);
	CU_ASSERT(clock_now_ns() >= at_ns);
}

/* ---- watches ---- */

static struct loop_watch *watch, *other_watch;
static int event_fd, other_event_fd;
static unsigned int n_ready;

static void on_level(void *ctx)
{
	(void)ctx;
	if (++n_ready == 3) /* twice left as it is */
		CU_ASSERT_EQUAL(read(event_fd, &(uint64_t){0}, 8), 8);
}

static void a_watch_is_called_while_the_fd_is_ready(void)
{
	n_ready = 0;
	event_fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
	CU_ASSERT_EQUAL(loop_watch_new(&watch, loop, event_fd, LOOP_READABLE,
				       on_level, NULL),
			0);
	test_loop_run_for(loop, 5);
	CU_ASSERT_EQUAL(n_ready, 3);
	CU_ASSERT_EQUAL(write(event_fd, &(uint64_t){1}, 8), 8);
	n_ready = 2;
	test_loop_run_for(loop, 5);
	CU_ASSERT_EQUAL(n_ready, 3);
	watch = loop_watch_free(watch);
	event_fd = fd_close(event_fd);
}

static void on_writable(void *ctx)
{
	(void)ctx;
	n_ready++;
	watch = loop_watch_free(watch);
}

static void a_watch_may_be_freed_by_its_callback(void)
{
	n_ready = 0;
	CU_ASSERT_EQUAL(loop_watch_new(&watch, loop, pair[0], LOOP_WRITABLE,
				       on_writable, NULL),
			0);
	test_loop_run_for(loop, 5);
	CU_ASSERT_EQUAL(n_ready, 1);
	CU_ASSERT_PTR_NULL(watch);
}

static void on_pause(void *ctx)
{
	(void)ctx;
	n_ready++;
	loop_watch_pause(watch, true);
}

static void a_paused_watch_is_silent_until_turned_on(void)
{
	n_ready = 0;
	event_fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
	CU_ASSERT_EQUAL(loop_watch_new(&watch, loop, event_fd, LOOP_READABLE,
				       on_pause, NULL),
			0);
	test_loop_run_for(loop, 5);
	CU_ASSERT_EQUAL(n_ready, 1); /* it pauses itself */
	loop_watch_pause(watch, false);
	test_loop_run_for(loop, 5);
	CU_ASSERT_EQUAL(n_ready, 2);
	loop_watch_pause(watch, false);
	loop_watch_pause(watch, true);
	test_loop_run_for(loop, 5);
	CU_ASSERT_EQUAL(n_ready, 2);
	/* In flight with nothing to tell, then off and on in one round. */
	CU_ASSERT_EQUAL(read(event_fd, &(uint64_t){0}, 8), 8);
	loop_watch_pause(watch, false);
	test_loop_run_for(loop, 2);
	loop_watch_pause(watch, true);
	loop_watch_pause(watch, false);
	test_loop_run_for(loop, 2);
	CU_ASSERT_EQUAL(n_ready, 2);
	CU_ASSERT_EQUAL(write(event_fd, &(uint64_t){1}, 8), 8);
	test_loop_run_for(loop, 5);
	CU_ASSERT_EQUAL(n_ready, 3);
	watch = loop_watch_free(watch);
	event_fd = fd_close(event_fd);
}

static void on_free_both(void *ctx)
{
	(void)ctx;
	n_ready++;
	watch = loop_watch_free(watch);
	other_watch = loop_watch_free(other_watch);
	event_fd = fd_close(event_fd);
	other_event_fd = fd_close(other_event_fd);
}

static void a_watch_may_be_freed_by_another_of_the_same_round(void)
{
	n_ready = 0;
	event_fd = eventfd(1, EFD_CLOEXEC);
	other_event_fd = eventfd(1, EFD_CLOEXEC);
	CU_ASSERT_EQUAL(loop_watch_new(&watch, loop, event_fd, LOOP_READABLE,
				       on_free_both, NULL),
			0);
	CU_ASSERT_EQUAL(loop_watch_new(&other_watch, loop, other_event_fd,
				       LOOP_READABLE, on_free_both, NULL),
			0);
	test_loop_run_for(loop, 5);
	CU_ASSERT_EQUAL(n_ready, 1);
}

/* ---- sockets ---- */

static struct loop_socket *sock;
static struct {
	unsigned int n;
	int r;
	size_t n_bytes;
	size_t n_fds;
	bool bytes_truncated;
	bool fds_truncated;
	int kept_fd;
	char first;
	bool read_on;
	unsigned int n_room;
} got;

static void on_message(void *ctx, struct loop_message *message)
{
	(void)ctx;
	got.n++;
	got.r = message->r;
	got.n_bytes = message->n_bytes;
	got.n_fds = message->n_fds;
	got.bytes_truncated = message->bytes_truncated;
	got.fds_truncated = message->fds_truncated;
	if (message->n_bytes)
		got.first = *(const char *)message->bytes;
	if (message->n_fds) {
		got.kept_fd = message->fds[0];
		message->fds[0] = -1;
	}
	if (got.read_on)
		loop_socket_read(sock);
}

static void on_room(void *ctx)
{
	(void)ctx;
	got.n_room++;
}

static const struct loop_socket_ops socket_ops = {
	.on_message = on_message,
	.on_room = on_room,
};

static void open_socket(void)
{
	memset(&got, 0, sizeof(got));
	got.kept_fd = -1;
	CU_ASSERT_EQUAL(loop_socket_new(&sock, loop, pair[0], &socket_ops,
					NULL),
			0);
}

static bool has_message(void *ctx)
{
	(void)ctx;
	return got.n > 0;
}

/* @n_fds copies of an fd travel along. */
static void send_with_fds(const void *bytes, size_t n_bytes, size_t n_fds)
{
	union {
		char buf[CMSG_SPACE(253 * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {.iov_base = (void *)(uintptr_t)bytes,
			    .iov_len = n_bytes};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	int fds[253];

	for (size_t i = 0; i < n_fds; i++)
		fds[i] = pair[1];
	if (n_fds) {
		struct cmsghdr *c = &control.align;

		msg.msg_control = control.buf;
		msg.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
	}
	CU_ASSERT_EQUAL(sendmsg(pair[1], &msg, MSG_NOSIGNAL), (ssize_t)n_bytes);
}

static void one_message_for_each_read(void)
{
	open_socket();
	send_with_fds("a", 1, 0);
	send_with_fds("bb", 2, 0);
	test_loop_run_for(loop, 5);
	CU_ASSERT_EQUAL(got.n, 0); /* nobody asked */
	loop_socket_read(sock);
	loop_socket_read(sock);
	test_loop_run_for(loop, 5);
	CU_ASSERT_EQUAL(got.n, 1);
	CU_ASSERT_EQUAL(got.r, 0);
	CU_ASSERT_EQUAL(got.first, 'a');
	CU_ASSERT_EQUAL(got.n_bytes, 1);
	loop_socket_read(sock);
	test_loop_run_for(loop, 5);
	CU_ASSERT_EQUAL(got.n, 2);
	CU_ASSERT_EQUAL(got.first, 'b');
	CU_ASSERT_EQUAL(got.n_bytes, 2);
	sock = loop_socket_free(sock);
}

static void fds_come_along_and_those_left_are_closed(void)
{
	unsigned int n;

	open_socket();
	n = test_count_fds();
	send_with_fds("x", 1, LOOP_MESSAGE_MAX_FDS);
	loop_socket_read(sock);
	CU_ASSERT_TRUE(test_loop_run_until(loop, has_message, NULL));
	CU_ASSERT_EQUAL(got.n_fds, LOOP_MESSAGE_MAX_FDS);
	CU_ASSERT_FALSE(got.fds_truncated);
	CU_ASSERT(got.kept_fd >= 0);
	CU_ASSERT(fcntl(got.kept_fd, F_GETFD) & FD_CLOEXEC);
	CU_ASSERT_EQUAL(test_count_fds(), n + 1);
	got.kept_fd = fd_close(got.kept_fd);
	sock = loop_socket_free(sock);
}

static void a_full_fd_table_is_told(void)
{
	struct rlimit old, low;
	int kept;

	open_socket();
	send_with_fds("x", 1, 8);
	loop_socket_read(sock);
	T_REQUIRE(getrlimit(RLIMIT_NOFILE, &old) == 0);
	low = old;
	kept = fcntl(pair[1], F_DUPFD_CLOEXEC, 3); /* the lowest free one */
	low.rlim_cur = (rlim_t)kept + 3;
	T_REQUIRE(setrlimit(RLIMIT_NOFILE, &low) == 0);
	(void)test_loop_run_until(loop, has_message, NULL);
	T_REQUIRE(setrlimit(RLIMIT_NOFILE, &old) == 0);
	CU_ASSERT_TRUE(got.fds_truncated);
	CU_ASSERT(got.n_fds < 8);
	got.kept_fd = fd_close(got.kept_fd);
	fd_close(kept);
	sock = loop_socket_free(sock);
}

static void a_long_message_is_cut_off_and_told(void)
{
	static char bytes[DMAHEAP_MESSAGE_MAX_BYTES + 1];

	open_socket();
	send_with_fds(bytes, DMAHEAP_MESSAGE_MAX_BYTES, 0);
	loop_socket_read(sock);
	CU_ASSERT_TRUE(test_loop_run_until(loop, has_message, NULL));
	CU_ASSERT_FALSE(got.bytes_truncated);
	CU_ASSERT_EQUAL(got.n_bytes, DMAHEAP_MESSAGE_MAX_BYTES);
	got.n = 0;
	send_with_fds(bytes, sizeof(bytes), 0);
	loop_socket_read(sock);
	CU_ASSERT_TRUE(test_loop_run_until(loop, has_message, NULL));
	CU_ASSERT_TRUE(got.bytes_truncated);
	sock = loop_socket_free(sock);
}

static void end_and_empty_packet_are_an_empty_message(void)
{
	open_socket();
	send_with_fds("", 0, 0);
	loop_socket_read(sock);
	CU_ASSERT_TRUE(test_loop_run_until(loop, has_message, NULL));
	CU_ASSERT_EQUAL(got.r, 0);
	CU_ASSERT_EQUAL(got.n_bytes, 0);
	got.n = 0;
	pair[1] = fd_close(pair[1]);
	loop_socket_read(sock);
	CU_ASSERT_TRUE(test_loop_run_until(loop, has_message, NULL));
	CU_ASSERT_EQUAL(got.n_bytes, 0);
	sock = loop_socket_free(sock);
}

static void a_socket_freed_while_it_waits_is_not_called(void)
{
	open_socket();
	loop_socket_read(sock);
	test_loop_run_for(loop, 2); /* in flight by now */
	sock = loop_socket_free(sock);
	send_with_fds("x", 1, 3);
	test_loop_run_for(loop, 5);
	CU_ASSERT_EQUAL(got.n, 0);
}

static void a_message_on_its_way_to_a_freed_socket_leaks_no_fd(void)
{
	unsigned int n;

	open_socket();
	n = test_count_fds();
	loop_socket_read(sock);
	test_loop_run_for(loop, 2);
	send_with_fds("x", 1,
		      3); /* received, perhaps, before it is cancelled */
	sock = loop_socket_free(sock);
	test_loop_run_for(loop, 5);
	CU_ASSERT_EQUAL(got.n, 0);
	CU_ASSERT_EQUAL(test_count_fds(), n);
}

static void many_messages_pass_through_few_buffers(void)
{
	open_socket();
	got.read_on = true;
	loop_socket_read(sock);
	for (unsigned int i = 1; i <= 1000; i++) {
		send_with_fds("x", 1, 0);
		/* all read before the socket is full: sending would wait */
		while (i % 50 == 0 && got.n < i)
			test_loop_run_for(loop, 1);
	}
	CU_ASSERT_EQUAL(got.n, 1000);
	sock = loop_socket_free(sock);
}

/* A peer that has hung up stays ready for ever; nobody asked, so nobody may be
 * kept busy by it. */
static void a_hang_up_that_nobody_asked_for_costs_nothing(void)
{
	uint64_t cpu_ns;

	open_socket();
	loop_socket_read(sock);
	send_with_fds("x", 1, 0);
	CU_ASSERT_TRUE(test_loop_run_until(loop, has_message, NULL));
	pair[1] = fd_close(pair[1]);
	cpu_ns = clock_thread_cpu_ns();
	test_loop_run_for(loop, 100);
	cpu_ns = clock_thread_cpu_ns() - cpu_ns;
	CU_ASSERT(cpu_ns < 50 * NSEC_PER_MSEC);
	sock = loop_socket_free(sock);
}

static unsigned int fill_socket(void)
{
	static char bytes[8192];
	unsigned int n = 0;

	while (send(pair[0], bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		n++;
	return n;
}

static void room_is_told_when_the_peer_reads(void)
{
	static char bytes[8192];
	unsigned int n, n_before;

	open_socket();
	n = fill_socket();
	loop_socket_await_room(sock, true);
	test_loop_run_for(loop, 5);
	CU_ASSERT_EQUAL(got.n_room, 0);
	for (unsigned int i = 0; i < n; i++)
		CU_ASSERT(recv(pair[1], bytes, sizeof(bytes), 0) > 0);
	test_loop_run_for(loop, 5);
	CU_ASSERT(got.n_room > 0);
	/* Writable all the time, and yet told of each message read. */
	CU_ASSERT(send(pair[0], "x", 1, 0) == 1);
	test_loop_run_for(loop, 5);
	n_before = got.n_room;
	CU_ASSERT(recv(pair[1], bytes, sizeof(bytes), 0) == 1);
	test_loop_run_for(loop, 5);
	CU_ASSERT(got.n_room > n_before);
	loop_socket_await_room(sock, false);
	test_loop_run_for(loop, 5);
	n_before = got.n_room;
	CU_ASSERT(send(pair[0], "x", 1, 0) == 1);
	CU_ASSERT(recv(pair[1], bytes, sizeof(bytes), 0) == 1);
	test_loop_run_for(loop, 5);
	CU_ASSERT_EQUAL(got.n_room, n_before);
	sock = loop_socket_free(sock);
}

static void messages_come_while_room_is_awaited(void)
{
	open_socket();
	(void)fill_socket();
	loop_socket_await_room(sock, true);
	loop_socket_read(sock);
	test_loop_run_for(loop, 2);
	for (unsigned int i = 1; i <= 5; i++) {
		send_with_fds("x", 1, 0);
		send_with_fds("y", 1, 0);
		test_loop_run_for(loop, 2);
		loop_socket_read(sock);
		test_loop_run_for(loop, 2);
		loop_socket_read(sock);
		CU_ASSERT_EQUAL(got.n, 2 * i);
	}
	sock = loop_socket_free(sock);
}

static void room_can_be_turned_off_and_on_in_one_round(void)
{
	open_socket();
	loop_socket_await_room(sock, true);
	test_loop_run_for(loop, 2);
	loop_socket_await_room(sock, false);
	loop_socket_await_room(sock, true);
	got.n_room = 0;
	test_loop_run_for(loop, 2);
	CU_ASSERT(send(pair[0], "x", 1, 0) == 1);
	CU_ASSERT(recv(pair[1], &(char){0}, 1, 0) == 1);
	test_loop_run_for(loop, 5);
	CU_ASSERT(got.n_room > 0);
	sock = loop_socket_free(sock);
}

/* ---- acceptor ---- */

static struct loop_acceptor *acceptor;
static int accepted_fds[100];
static unsigned int n_accepted;
static int accept_error;

static void on_accept(void *ctx, int fd)
{
	(void)ctx;
	if (fd >= 0)
		accepted_fds[n_accepted++] = fd;
	else
		accept_error = fd;
}

static void start_listening(void)
{
	n_accepted = 0;
	accept_error = 0;
	address = (struct sockaddr_un){.sun_family = AF_UNIX};
	/* An abstract name: nothing to clean up. */
	(void)snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1,
		       "dmaheap-test-loop-%d-%d", getpid(), test_loop_kind);
	listen_fd = socket(AF_UNIX,
			   SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	T_REQUIRE(listen_fd >= 0);
	T_REQUIRE(bind(listen_fd, (struct sockaddr *)&address,
		       sizeof(address)) == 0);
	T_REQUIRE(listen(listen_fd, 128) == 0);
	CU_ASSERT_EQUAL(loop_acceptor_new(&acceptor, loop, listen_fd, on_accept,
					  NULL),
			0);
}

static int connect_once(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	CU_ASSERT(fd >= 0);
	CU_ASSERT_EQUAL(connect(fd, (struct sockaddr *)&address,
				sizeof(address)),
			0);
	return fd;
}

static void close_accepted(void)
{
	while (n_accepted)
		fd_close(accepted_fds[--n_accepted]);
}

static void connections_are_accepted_in_any_number(void)
{
	int fds[80];

	start_listening();
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = connect_once();
	test_loop_run_for(loop, 10);
	CU_ASSERT_EQUAL(n_accepted, ARRAY_SIZE(fds));
	CU_ASSERT(fcntl(accepted_fds[0], F_GETFD) & FD_CLOEXEC);
	CU_ASSERT(fcntl(accepted_fds[0], F_GETFL) & O_NONBLOCK);
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fd_close(fds[i]);
	close_accepted();
	acceptor = loop_acceptor_free(acceptor);
}

static void lack_of_fds_is_told_once_until_resumed(void)
{
	struct rlimit old, low;
	int client, lowest;

	/* io_uring takes the limit of the time when the accept is armed. */
	start_listening();
	client = connect_once();
	T_REQUIRE(getrlimit(RLIMIT_NOFILE, &old) == 0);
	low = old;
	lowest = fcntl(client, F_DUPFD_CLOEXEC, 3);
	fd_close(lowest);
	low.rlim_cur = (rlim_t)lowest;
	T_REQUIRE(setrlimit(RLIMIT_NOFILE, &low) == 0);
	test_loop_run_for(loop, 10);
	T_REQUIRE(setrlimit(RLIMIT_NOFILE, &old) == 0);
	CU_ASSERT_EQUAL(n_accepted, 0);
	CU_ASSERT_EQUAL(accept_error, -EMFILE);
	test_loop_run_for(loop, 5);
	CU_ASSERT_EQUAL(n_accepted, 0);
	loop_acceptor_resume(acceptor);
	test_loop_run_for(loop, 5);
	CU_ASSERT_EQUAL(n_accepted, 1);
	fd_close(client);
	close_accepted();
	acceptor = loop_acceptor_free(acceptor);
}

static void a_freed_acceptor_accepts_nothing(void)
{
	int client;

	start_listening();
	test_loop_run_for(loop, 2);
	client = connect_once();
	acceptor = loop_acceptor_free(acceptor);
	test_loop_run_for(loop, 5);
	CU_ASSERT_EQUAL(n_accepted, 0);
	fd_close(client);
}

/* ---- loop ---- */

static void the_name_is_that_of_the_kind(void)
{
	CU_ASSERT_STRING_EQUAL(loop_name(loop), test_loop_kind == LOOP_EPOLL
							? "epoll"
							: "uring");
}

static void auto_picks_one_and_says_why_not_the_other(void)
{
	char reason[256] = "x";
	struct loop *l;

	CU_ASSERT_EQUAL(loop_new(&l, LOOP_AUTO, reason, sizeof(reason)), 0);
	CU_ASSERT_EQUAL(!strcmp(loop_name(l), "uring"), reason[0] == '\0');
	loop_free(l);
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"timers fire in the order of their time",
		 timers_fire_in_the_order_of_their_time},
		{"a timer armed for the past does not stop the loop",
		 a_timer_armed_for_the_past_does_not_stop_the_loop},
		{"a timer is never early", a_timer_is_never_early},
		{"a watch is called while the fd is ready",
		 a_watch_is_called_while_the_fd_is_ready},
		{"a paused watch is silent until turned on",
		 a_paused_watch_is_silent_until_turned_on},
		{"a watch may be freed by its callback",
		 a_watch_may_be_freed_by_its_callback},
		{"a watch may be freed by another of the same round",
		 a_watch_may_be_freed_by_another_of_the_same_round},
		{"one message for each read", one_message_for_each_read},
		{"fds come along and those left are closed",
		 fds_come_along_and_those_left_are_closed},
		{"a full fd table is told", a_full_fd_table_is_told},
		{"a long message is cut off and told",
		 a_long_message_is_cut_off_and_told},
		{"end and empty packet are an empty message",
		 end_and_empty_packet_are_an_empty_message},
		{"a socket freed while it waits is not called",
		 a_socket_freed_while_it_waits_is_not_called},
		{"a message on its way to a freed socket leaks no fd",
		 a_message_on_its_way_to_a_freed_socket_leaks_no_fd},
		{"many messages pass through few buffers",
		 many_messages_pass_through_few_buffers},
		{"a hang-up that nobody asked for costs nothing",
		 a_hang_up_that_nobody_asked_for_costs_nothing},
		{"room is told when the peer reads",
		 room_is_told_when_the_peer_reads},
		{"messages come while room is awaited",
		 messages_come_while_room_is_awaited},
		{"room can be turned off and on in one round",
		 room_can_be_turned_off_and_on_in_one_round},
		{"connections are accepted in any number",
		 connections_are_accepted_in_any_number},
		{"lack of fds is told once until resumed",
		 lack_of_fds_is_told_once_until_resumed},
		{"a freed acceptor accepts nothing",
		 a_freed_acceptor_accepts_nothing},
		{"the name is that of the kind", the_name_is_that_of_the_kind},
		{"auto picks one and says why not the other",
		 auto_picks_one_and_says_why_not_the_other},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		TEST_LOOP_SUITES("loop", tear_down, tests),
		CU_SUITE_INFO_NULL,
	};

	test_loop_set_up = set_up;
	return t_main(argc, argv, suites);
}
