/* SPDX-License-Identifier: MIT */
/*
 * A client sends files of which close() does not return: others are served, and
 * he can pile up no more than his quota of connections.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "integration/common.h"
#include "support/blocker.h"
#include "support/raw.h"

#define CONNECTIONS 12
#define CONFIG                                                                 \
	"[daemon]\nconfine = kill\n[node]\nsize = 64M\n"                       \
	"[quota]\nconnections = 12\n"

static struct raw_reply reply;
static struct blocker blocker;

/* The tests run for each kind of file that can be had here. */
static bool (*const kinds[])(struct blocker *) = {blocker_tcp, blocker_fuse};

static bool serves(void)
{
	int fd = it_alloc("system", 4096, NULL);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static uint64_t connections_used(void)
{
	struct {
		struct dmaheap_records_reply head;
		struct dmaheap_quota_record records[8];
	} quota;

	if (it_call(it_dh, DMAHEAP_OP_QUOTA, NULL, 0, &quota, sizeof(quota)) <
	    0)
		return 0;
	return quota.records[0].connections_used;
}

static bool uses_connections(void *ctx)
{
	return connections_used() == *(unsigned int *)ctx;
}

static bool wait_for_connections(unsigned int n)
{
	return wait_until(uses_connections, &n, 10000);
}

static bool closer_is_inside(void *ctx)
{
	const struct blocker *b = ctx;

	return b->n_flushes > 0;
}

/*
 * Sends it along with a request on each of @socks, and lets our own copy go
 * while the daemon stands still: of a TCP socket only the last close waits.
 */
static void send_blocking(const int *socks, unsigned int n_socks,
			  unsigned int n_copies)
{
	int fds[64];

	for (unsigned int i = 0; i < n_copies; i++)
		fds[i] = blocker.fd;
	kill(it_daemon.pid, SIGSTOP);
	for (unsigned int i = 0; i < n_socks; i++)
		CU_ASSERT_EQUAL(raw_request(socks[i], DMAHEAP_OP_HEAPS, NULL, 0,
					    fds, n_copies),
				0);
	blocker_close_fd(&blocker);
	kill(it_daemon.pid, SIGCONT);
	for (unsigned int i = 0; i < n_socks; i++) {
		CU_ASSERT_EQUAL(raw_receive(socks[i], &reply), 0);
		CU_ASSERT_EQUAL(reply.header.status, -EINVAL);
	}
	if (blocker.dir[0])
		CU_ASSERT_TRUE(wait_until(closer_is_inside, &blocker, 10000));
}

static bool has_answer(int sock)
{
	struct pollfd p = {.fd = sock, .events = POLLIN};

	return poll(&p, 1, 0) > 0;
}

static void others_are_served_and_the_sender_waits(void)
{
	for (size_t i = 0; i < 2; i++) {
		int sock;

		if (!kinds[i](&blocker))
			continue;
		sock = raw_open(it_daemon.socket);
		T_REQUIRE(sock >= 0);
		send_blocking(&sock, 1, 1);
		CU_ASSERT_EQUAL(raw_request(sock, DMAHEAP_OP_HEAPS, NULL, 0,
					    NULL, 0),
				0);
		for (int n = 0; n < 20; n++)
			CU_ASSERT_TRUE(serves());
		CU_ASSERT_FALSE(has_answer(sock));
		blocker_release(&blocker);
		CU_ASSERT_EQUAL(raw_receive(sock, &reply), 0);
		CU_ASSERT_EQUAL(reply.header.status, 0);
		close(sock);
		blocker_free(&blocker);
	}
}

static void who_leaves_what_cannot_be_closed_stays_charged(void)
{
	unsigned int fds = count_fds(it_daemon.pid);
	int socks[CONNECTIONS - 1], refused;

	if (!blocker_fuse(&blocker))
		return;
	for (unsigned int i = 0; i < CONNECTIONS - 1; i++) {
		socks[i] = raw_open(it_daemon.socket);
		T_REQUIRE(socks[i] >= 0);
	}
	send_blocking(socks, CONNECTIONS - 1, 64);
	for (unsigned int i = 0; i < CONNECTIONS - 1; i++)
		close(socks[i]);
	CU_ASSERT_TRUE(serves());
	CU_ASSERT_EQUAL(connections_used(), CONNECTIONS);
	refused = raw_connect(it_daemon.socket);
	CU_ASSERT_EQUAL(raw_receive(refused, &reply), 0);
	CU_ASSERT_EQUAL(reply.header.status, -EDQUOT);
	close(refused);
	/* Sixty-four each, and the three of a connection; the buffers that were
	 * allocated meanwhile may be parked. */
	CU_ASSERT(count_fds(it_daemon.pid) <= fds + (CONNECTIONS - 1) * 67 + 4);
	blocker_release(&blocker);
	CU_ASSERT_TRUE(wait_for_connections(1));
	CU_ASSERT_TRUE(serves());
	blocker_free(&blocker);
}

/* Not a FUSE file's: a process ends no sooner than its flushes do. */
static void the_daemon_ends_without_waiting(void)
{
	int sock = raw_open(it_daemon.socket);

	T_REQUIRE(blocker_tcp(&blocker) && sock >= 0);
	send_blocking(&sock, 1, 2);
	close(sock);
	it_dh = dmaheap_close(it_dh);
	CU_ASSERT_TRUE(daemon_stop(&it_daemon));
	blocker_free(&blocker);
	T_REQUIRE(daemon_start(&it_daemon, &it_options));
	T_REQUIRE(dmaheap_connect(&it_dh, it_daemon.socket) == 0);
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"others are served, and the sender waits",
		 others_are_served_and_the_sender_waits},
		{"who leaves what cannot be closed stays charged",
		 who_leaves_what_cannot_be_closed_stays_charged},
		{"the daemon ends without waiting",
		 the_daemon_ends_without_waiting},
		CU_TEST_INFO_NULL,
	};

	it_options.config = CONFIG;
	return it_main(argc, argv, tests);
}
