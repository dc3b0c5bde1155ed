/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "integration/common.h"
#include "support/raw.h"

#define LEN        IT_KIB(64)
#define RELEASE_MS 50
#define ROUNDS     300 /* in CI; DMAHEAP_TEST_ROUNDS sets another number */
#define NS_PER_MS  1000000u

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Without the library: its handle cannot be shared with a child. */
static int alloc_in_child(void)
{
	struct dmaheap *dh;
	int fd;

	if (dmaheap_connect(&dh, it_daemon.socket))
		return -1;
	fd = dmaheap_alloc(dh, "system", LEN, O_RDWR | O_CLOEXEC, 0);
	dmaheap_close(dh);
	return fd;
}

static void send_fd(int sock, int fd)
{
	if (raw_send(sock, "x", 1, &fd, 1))
		abort();
}

static uint64_t n_buffers(void)
{
	return it_heap_stats("system")->buffers;
}

static bool none_left(void *ctx)
{
	(void)ctx;
	return n_buffers() == 0 && it_pool("system", 4)->blocks == 1;
}

static bool comes_back(void)
{
	return wait_until(none_left, NULL, 5000);
}

/* A busy machine must not fail a test: how fast is for the stress run. */
static bool is_timed(void)
{
	return getenv("DMAHEAP_TEST_ROUNDS");
}

static void it_outlives_its_client_while_another_process_has_the_fd(void)
{
	int pair[2], fd, status;
	pid_t pid;

	T_REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) ==
		  0);
	pid = it_fork();
	if (pid == 0) {
		fd = alloc_in_child();
		send_fd(pair[1], fd);
		_exit(0);
	}
	close(pair[1]);
	fd = raw_receive_fd(pair[0]);
	waitpid(pid, &status, 0);
	T_REQUIRE(fd >= 0);
	/* The reply to this came after whatever the death has caused. */
	CU_ASSERT_EQUAL(n_buffers(), 1);
	close(fd);
	close(pair[0]);
	CU_ASSERT_TRUE(comes_back());
}

static void it_lives_while_only_a_mapping_is_left(void)
{
	int fd = it_alloc("system", LEN, NULL);
	uint64_t *p;

	T_REQUIRE(fd >= 0);
	p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	T_REQUIRE(p != MAP_FAILED);
	close(fd);
	p[7] = 77;
	CU_ASSERT_EQUAL(n_buffers(), 1);
	CU_ASSERT_EQUAL(p[7], 77);
	munmap(p, LEN);
	CU_ASSERT_TRUE(comes_back());
}

static void it_lives_while_it_is_in_flight_in_a_socket(void)
{
	int pair[2], fd = it_alloc("system", LEN, NULL);

	T_REQUIRE(fd >= 0);
	T_REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) ==
		  0);
	send_fd(pair[0], fd);
	close(fd);
	CU_ASSERT_EQUAL(n_buffers(), 1);
	fd = raw_receive_fd(pair[1]);
	CU_ASSERT_TRUE(fd >= 0);
	CU_ASSERT_EQUAL(n_buffers(), 1);
	send_fd(pair[0], fd);
	close(fd);
	/* Nobody ever reads it. */
	close(pair[0]);
	close(pair[1]);
	CU_ASSERT_TRUE(comes_back());
}

static void a_client_killed_by_kill_9_gives_its_buffers_back(void)
{
	int ready[2], status;
	char c;
	pid_t pid;

	T_REQUIRE(pipe2(ready, O_CLOEXEC) == 0);
	pid = it_fork();
	if (pid == 0) {
		c = alloc_in_child() >= 0 ? 'y' : 'n';
		if (write(ready[1], &c, 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	T_REQUIRE(read(ready[0], &c, 1) == 1 && c == 'y');
	close(ready[0]);
	CU_ASSERT_EQUAL(n_buffers(), 1);
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	CU_ASSERT_TRUE(comes_back());
}

static unsigned int n_rounds(void)
{
	const char *text = getenv("DMAHEAP_TEST_ROUNDS");

	return text ? (unsigned int)strtoul(text, NULL, 10) : ROUNDS;
}

static void no_release_is_ever_missed(void)
{
	unsigned int rounds = n_rounds(), late = 0;
	uint64_t slowest = 0;

	for (unsigned int i = 0; i < rounds; i++) {
		int fd = it_alloc("system", LEN, NULL);
		uint64_t start, took;
		void *p = NULL;

		T_REQUIRE(fd >= 0);
		if (i % 2) {
			p = mmap(NULL, LEN, PROT_READ, MAP_SHARED, fd, 0);
			T_REQUIRE(p != MAP_FAILED);
		}
		close(fd);
		if (p)
			munmap(p, LEN);
		start = now_ns();
		T_REQUIRE(wait_until(none_left, NULL, 5000));
		took = now_ns() - start;
		slowest = took > slowest ? took : slowest;
		late += took > RELEASE_MS * NS_PER_MS;
	}
	printf("(%u rounds, slowest %.1f ms) ", rounds,
	       (double)slowest / NS_PER_MS);
	if (is_timed())
		CU_ASSERT_EQUAL(late, 0);
	/* Without inotify all of them are the sweep's. */
	if (!strcmp(it_stats()->daemon.lifetime, "exact"))
		CU_ASSERT_EQUAL(it_stats()->backing.late_releases, 0);
}

static void a_client_that_asks_and_dies_leaves_nothing(void)
{
	unsigned int rounds = n_rounds() / 10;

	for (unsigned int i = 0; i < rounds; i++) {
		const struct timespec pause_for = {.tv_nsec = (long)(i % 40) *
							      25000};
		int status;
		pid_t pid = it_fork();

		if (pid == 0) {
			struct dmaheap *dh;
			int fds[4];

			if (dmaheap_connect(&dh, it_daemon.socket))
				_exit(1);
			for (;;)
				(void)!dmaheap_alloc_many(dh, "system",
							  IT_MIB(2), O_RDWR, 0,
							  4, fds);
		}
		nanosleep(&pause_for, NULL);
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
	}
	CU_ASSERT_TRUE(it_wait_all_free("system"));
	/* teardown() compares fds, watches and pools with the start. */
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"it outlives its client while another process has the fd",
		 it_outlives_its_client_while_another_process_has_the_fd},
		{"it lives while only a mapping is left",
		 it_lives_while_only_a_mapping_is_left},
		{"it lives while it is in flight in a socket",
		 it_lives_while_it_is_in_flight_in_a_socket},
		{"a client killed by kill -9 gives its buffers back",
		 a_client_killed_by_kill_9_gives_its_buffers_back},
		{"no release is ever missed", no_release_is_ever_missed},
		{"a client that asks and dies leaves nothing",
		 a_client_that_asks_and_dies_leaves_nothing},
		CU_TEST_INFO_NULL,
	};

	it_options.config = "[daemon]\nconfine = kill\n";
	return it_main(argc, argv, tests);
}
