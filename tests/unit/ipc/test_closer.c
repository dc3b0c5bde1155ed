/* SPDX-License-Identifier: MIT */
#include "ipc/closer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "loop_support.h"
#include "support/blocker.h"
#include "support/fail_malloc.h"
#include "support/faults.h"

#define N_BLOCKING 16u /* uids that can block at once */

static struct closer *closer;
static unsigned int n_fds_before;

/* A descriptor and how to see that it was closed: the end of a pipe. */
struct probe {
	int given;
	int kept;
};

static struct probe probe_new(void)
{
	int fds[2];

	T_REQUIRE(pipe2(fds, O_CLOEXEC | O_NONBLOCK) == 0);
	return (struct probe){.given = fds[1], .kept = fds[0]};
}

static bool probe_is_closed(const struct probe *p)
{
	char byte;

	return read(p->kept, &byte, 1) == 0;
}

static void probe_free(struct probe *p)
{
	fd_close(p->kept);
}

struct user {
	struct closer_group *group;
	unsigned int n_done;
};

static void on_done(void *ctx)
{
	struct user *u = ctx;

	u->n_done++;
}

static void user_init(struct user *u, uid_t uid)
{
	u->n_done = 0;
	u->group = closer_group_new(closer, uid, on_done, u);
	T_REQUIRE(u->group != NULL);
}

/* Dispatches until @u was told @n times that all is closed. */
static bool user_wait(const struct user *u, unsigned int n)
{
	struct pollfd p = {.fd = closer_event_fd(closer), .events = POLLIN};

	while (u->n_done < n) {
		CU_ASSERT_TRUE(closer_check(closer));
		if (poll(&p, 1, 30000) != 1)
			return false;
		closer_dispatch(closer);
	}
	return u->n_done == n;
}

static void user_close(struct user *u, int fd)
{
	closer_close(u->group, &fd, 1);
	CU_ASSERT_EQUAL(fd, -1);
	CU_ASSERT_TRUE(closer_group_is_busy(u->group));
	CU_ASSERT_TRUE(closer_check(closer));
}

static void set_up(void)
{
	n_fds_before = test_count_fds();
	T_REQUIRE(closer_new(&closer) == 0);
}

static bool no_fd_is_left(void *ctx)
{
	(void)ctx;
	return test_count_fds() == n_fds_before;
}

static void tear_down(void)
{
	closer = closer_free(closer);
	faults_clear();
	/* What was held up is closed once that ends. */
	for (int i = 0; i < 5000 && !no_fd_is_left(NULL); i++)
		(void)poll(NULL, 0, 1);
	CU_ASSERT_TRUE(no_fd_is_left(NULL));
}

static void what_is_given_is_closed_and_told_once(void)
{
	struct user u;
	struct probe p[3];
	int fds[5] = {-1, -1, -1, -1, -1};

	user_init(&u, 1);
	CU_ASSERT_FALSE(closer_group_is_busy(u.group));
	closer_close(u.group, fds, 5); /* nothing to do */
	CU_ASSERT_FALSE(closer_group_is_busy(u.group));
	for (int i = 0; i < 3; i++) {
		p[i] = probe_new();
		fds[i + 1] = p[i].given;
	}
	closer_close(u.group, fds, 5);
	for (int i = 0; i < 5; i++)
		CU_ASSERT_EQUAL(fds[i], -1);
	CU_ASSERT_TRUE(user_wait(&u, 1));
	CU_ASSERT_FALSE(closer_group_is_busy(u.group));
	for (int i = 0; i < 3; i++) {
		CU_ASSERT_TRUE(probe_is_closed(&p[i]));
		probe_free(&p[i]);
	}
	closer_group_free(u.group);
}

static void a_full_group_is_closed(void)
{
	struct user u;
	int fds[CLOSER_GROUP_MAX];

	user_init(&u, 1);
	for (unsigned int i = 0; i < CLOSER_GROUP_MAX; i++) {
		fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		T_REQUIRE(fds[i] >= 0);
	}
	closer_close(u.group, fds, CLOSER_GROUP_MAX);
	/* How often it was told depends on who is faster. */
	while (closer_group_is_busy(u.group))
		CU_ASSERT_TRUE(user_wait(&u, u.n_done + 1));
	CU_ASSERT_EQUAL(test_count_fds(), n_fds_before + 1);
	closer_group_free(u.group);
}

static void who_blocks_holds_up_the_strange_fds_of_his_uid_alone(void)
{
	struct user blocking, same, other, memfd;
	struct probe late = probe_new(), p = probe_new();
	struct blocker b;

	if (!blocker_tcp(&b))
		t_skip("no TCP on the loopback interface");
	user_init(&blocking, 1);
	user_init(&same, 1);
	user_init(&other, 2);
	user_init(&memfd, 1);
	user_close(&blocking, TAKE_FD(b.fd));
	user_close(&same, late.given);
	user_close(&other, p.given);
	user_close(&memfd, memfd_create("m", MFD_CLOEXEC));
	CU_ASSERT_TRUE(user_wait(&other, 1));
	CU_ASSERT_TRUE(user_wait(&memfd, 1));
	CU_ASSERT_TRUE(probe_is_closed(&p));
	CU_ASSERT_EQUAL(blocking.n_done + same.n_done, 0);
	CU_ASSERT_FALSE(probe_is_closed(&late));
	blocker_release(&b);
	CU_ASSERT_TRUE(user_wait(&blocking, 1));
	CU_ASSERT_TRUE(user_wait(&same, 1));
	closer_group_free(blocking.group);
	closer_group_free(same.group);
	closer_group_free(other.group);
	closer_group_free(memfd.group);
	probe_free(&late);
	probe_free(&p);
	blocker_free(&b);
}

static void memfds_are_closed_whoever_blocks(void)
{
	struct blocker b[N_BLOCKING];
	struct user u[N_BLOCKING], memfd, strange;
	struct probe p = probe_new();

	for (unsigned int i = 0; i < N_BLOCKING; i++) {
		T_REQUIRE(blocker_tcp(&b[i]));
		user_init(&u[i], 100 + i);
		user_close(&u[i], TAKE_FD(b[i].fd));
	}
	user_init(&strange, 1);
	user_init(&memfd, 2);
	user_close(&strange, p.given);
	user_close(&memfd, memfd_create("m", MFD_CLOEXEC));
	CU_ASSERT_TRUE(user_wait(&memfd, 1));
	CU_ASSERT_FALSE(probe_is_closed(&p));
	blocker_release(&b[2]);
	CU_ASSERT_TRUE(user_wait(&strange, 1));
	for (unsigned int i = 0; i < N_BLOCKING; i++)
		blocker_release(&b[i]);
	for (unsigned int i = 0; i < N_BLOCKING; i++) {
		CU_ASSERT_TRUE(user_wait(&u[i], 1));
		closer_group_free(u[i].group);
		blocker_free(&b[i]);
	}
	closer_group_free(memfd.group);
	closer_group_free(strange.group);
	probe_free(&p);
}

/* A group of memfds becomes a strange one while it waits. */
static void memfds_in_strange_company_are_strange(void)
{
	struct user blocking, mixed;
	struct probe p = probe_new();
	struct blocker b;
	int fds[2];

	T_REQUIRE(blocker_tcp(&b));
	user_init(&blocking, 1);
	user_init(&mixed, 1);
	user_close(&blocking, TAKE_FD(b.fd));
	fds[0] = memfd_create("m", MFD_CLOEXEC);
	fds[1] = p.given;
	closer_close(mixed.group, fds, 2);
	user_close(&mixed, memfd_create("m", MFD_CLOEXEC));
	blocker_release(&b);
	CU_ASSERT_TRUE(user_wait(&blocking, 1));
	CU_ASSERT_TRUE(user_wait(&mixed, 1));
	CU_ASSERT_TRUE(probe_is_closed(&p));
	closer_group_free(blocking.group);
	closer_group_free(mixed.group);
	probe_free(&p);
	blocker_free(&b);
}

static void who_leaves_before_the_end_is_not_told(void)
{
	struct user u, idle;
	struct probe p = probe_new();
	struct blocker b;

	T_REQUIRE(blocker_tcp(&b));
	user_init(&u, 1);
	user_init(&idle, 2);
	user_close(&u, TAKE_FD(b.fd));
	user_close(&u, p.given);
	closer_group_free(u.group);
	closer_group_free(idle.group);
	blocker_release(&b);
	while (!probe_is_closed(&p))
		(void)poll(NULL, 0, 1);
	closer_dispatch(closer);
	CU_ASSERT_EQUAL(u.n_done, 0);
	probe_free(&p);
	blocker_free(&b);
}

static void freeing_waits_for_nobody_and_all_is_closed_in_the_end(void)
{
	struct user u, other;
	struct probe late = probe_new(), p = probe_new();
	struct blocker b;

	T_REQUIRE(blocker_tcp(&b));
	user_init(&u, 1);
	user_init(&other, 2);
	user_close(&u, TAKE_FD(b.fd));
	user_close(&u, late.given);
	user_close(&other, p.given);
	closer_group_free(u.group);
	closer_group_free(other.group);
	closer = closer_free(closer);
	CU_ASSERT_TRUE(probe_is_closed(&p));
	blocker_release(&b);
	while (!probe_is_closed(&late))
		(void)poll(NULL, 0, 1);
	probe_free(&late);
	probe_free(&p);
	blocker_free(&b);
}

/* ---- sockets with unread messages ---- */

static void send_message(int sock, size_t n_bytes, int fd)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	char bytes[8] = "";
	struct iovec iov = {.iov_base = bytes, .iov_len = n_bytes};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	if (fd >= 0) {
		msg.msg_control = control.buf;
		msg.msg_controllen = sizeof(control.buf);
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.align), &fd, sizeof(int));
	}
	T_REQUIRE(sendmsg(sock, &msg, MSG_NOSIGNAL) == (ssize_t)n_bytes);
}

static void make_pair(int pair[2])
{
	T_REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) ==
		  0);
}

static void plain_messages_are_read_away_even_empty_ones(void)
{
	int pair[2];
	char byte;

	make_pair(pair);
	CU_ASSERT_TRUE(closer_empty_socket(pair[0]));
	send_message(pair[1], 5, -1);
	send_message(pair[1], 0, -1);
	send_message(pair[1], 0, -1);
	send_message(pair[1], 8, -1);
	(void)shutdown(pair[0], SHUT_RDWR);
	CU_ASSERT_TRUE(closer_empty_socket(pair[0]));
	fd_close(pair[0]);
	/* The end, and no ECONNRESET. */
	CU_ASSERT_EQUAL(recv(pair[1], &byte, 1, 0), 0);
	fd_close(pair[1]);
}

static void messages_with_fds_are_found_behind_others(void)
{
	struct probe p = probe_new();
	struct user u;
	int pair[2];

	make_pair(pair);
	send_message(pair[1], 3, -1);
	send_message(pair[1], 0, -1);
	send_message(pair[1], 0, p.given);
	fd_close(p.given);
	(void)shutdown(pair[0], SHUT_RDWR);
	CU_ASSERT_FALSE(closer_empty_socket(pair[0]));
	CU_ASSERT_FALSE(probe_is_closed(&p));
	user_init(&u, 1);
	closer_close_socket(u.group, pair[0]);
	CU_ASSERT_TRUE(user_wait(&u, 1));
	CU_ASSERT_TRUE(probe_is_closed(&p));
	closer_group_free(u.group);
	fd_close(pair[1]);
	probe_free(&p);
}

static void an_unread_fd_that_blocks_holds_up_its_uid_alone(void)
{
	struct user u, other;
	struct probe p = probe_new();
	struct blocker b;
	int pair[2];

	T_REQUIRE(blocker_tcp(&b));
	make_pair(pair);
	send_message(pair[1], 1, b.fd);
	blocker_close_fd(&b);
	(void)shutdown(pair[0], SHUT_RDWR);
	CU_ASSERT_FALSE(closer_empty_socket(pair[0]));
	user_init(&u, 1);
	user_init(&other, 2);
	closer_close_socket(u.group, pair[0]);
	user_close(&other, p.given);
	CU_ASSERT_TRUE(user_wait(&other, 1));
	CU_ASSERT_EQUAL(u.n_done, 0);
	blocker_release(&b);
	CU_ASSERT_TRUE(user_wait(&u, 1));
	closer_group_free(u.group);
	closer_group_free(other.group);
	fd_close(pair[1]);
	probe_free(&p);
	blocker_free(&b);
}

static void what_cannot_be_looked_into_is_left_to_a_thread(void)
{
	struct probe p = probe_new(); /* no socket at all */
	struct user u;
	int pair[2];

	make_pair(pair);
	(void)shutdown(pair[0], SHUT_RDWR);
	faults_arm(FAULT_RECVMSG, 0, 3, ECONNRESET);
	CU_ASSERT_TRUE(closer_empty_socket(pair[0]));
	faults_arm(FAULT_RECVMSG, 0, 4, ENOMEM);
	CU_ASSERT_FALSE(closer_empty_socket(pair[0]));
	CU_ASSERT_FALSE(closer_empty_socket(p.given));
	user_init(&u, 1);
	closer_close_socket(u.group, p.given);
	CU_ASSERT_TRUE(user_wait(&u, 1));
	CU_ASSERT_TRUE(probe_is_closed(&p));
	closer_group_free(u.group);
	fd_close(pair[0]);
	fd_close(pair[1]);
	probe_free(&p);
}

/* ---- failures ---- */

static void without_any_of_its_threads_there_is_none(void)
{
	struct closer *c = NULL;

	for (unsigned int i = 0; i < 1 + N_BLOCKING; i++) {
		unsigned int n = test_count_fds();

		faults_arm(FAULT_PTHREAD_CREATE, i, 1, EAGAIN);
		CU_ASSERT_EQUAL(closer_new(&c), -EAGAIN);
		CU_ASSERT_EQUAL(faults_hits(FAULT_PTHREAD_CREATE), 1);
		CU_ASSERT_PTR_NULL(c);
		CU_ASSERT_EQUAL(test_count_fds(), n);
	}
	faults_arm(FAULT_EVENTFD, 0, 1, EMFILE);
	CU_ASSERT_EQUAL(closer_new(&c), -EMFILE);
}

static void without_memory_nothing_is_made(void)
{
	struct closer *c = NULL;

	/* Before its threads, whose making takes memory of its own. */
	fail_malloc_at(1);
	CU_ASSERT_EQUAL(closer_new(&c), -ENOMEM);
	fail_malloc_at(1);
	CU_ASSERT_PTR_NULL(closer_group_new(closer, 1, on_done, NULL));
	fail_malloc_at(0);
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"what is given is closed, and told once",
		 what_is_given_is_closed_and_told_once},
		{"a full group is closed", a_full_group_is_closed},
		{"who blocks holds up the strange fds of his uid alone",
		 who_blocks_holds_up_the_strange_fds_of_his_uid_alone},
		{"memfds are closed whoever blocks",
		 memfds_are_closed_whoever_blocks},
		{"memfds in strange company are strange",
		 memfds_in_strange_company_are_strange},
		{"who leaves before the end is not told",
		 who_leaves_before_the_end_is_not_told},
		{"freeing waits for nobody, and all is closed in the end",
		 freeing_waits_for_nobody_and_all_is_closed_in_the_end},
		{"plain messages are read away, even empty ones",
		 plain_messages_are_read_away_even_empty_ones},
		{"messages with fds are found behind others",
		 messages_with_fds_are_found_behind_others},
		{"an unread fd that blocks holds up its uid alone",
		 an_unread_fd_that_blocks_holds_up_its_uid_alone},
		{"what cannot be looked into is left to a thread",
		 what_cannot_be_looked_into_is_left_to_a_thread},
		{"without any of its threads there is none",
		 without_any_of_its_threads_there_is_none},
		{"without memory nothing is made",
		 without_memory_nothing_is_made},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "closer",
		 .pSetUpFunc = set_up,
		 .pTearDownFunc = tear_down,
		 .pTests = tests},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
