/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "integration/common.h"
#include "support/raw.h"

#define CONFIG                                                                 \
	"[daemon]\nconfine = kill\nhandshake_timeout_ms = 200\n"               \
	"send_timeout_ms = 300\n[node]\nsize = 256M\n"                         \
	"[quota]\nconnections = 2000\nbuffers = 100000\n"

static struct raw_reply reply;

static uint32_t next_random(void)
{
	static uint32_t x = 2463534242u;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	return x;
}

static void random_bytes(char *buf, size_t n)
{
	for (size_t i = 0; i < n; i++)
		buf[i] = (char)next_random();
}

static bool serves(void)
{
	int fd = it_alloc("system", 4096, NULL);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* Blocks until the daemon has closed the connection, or answered. */
static int outcome_of(int sock)
{
	const struct timeval limit = {.tv_sec = 5};

	setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	return raw_receive(sock, &reply);
}

static bool thousand_were_bad(void *ctx)
{
	(void)ctx;
	return it_stats()->daemon.bad_requests >= 1000;
}

static void a_thousand_connections_of_garbage_harm_nobody(void)
{
	char garbage[512];
	struct dmaheap_header h = {
		.magic = DMAHEAP_PROTOCOL_MAGIC,
		.version = DMAHEAP_PROTOCOL_VERSION,
	};

	for (int i = 0; i < 1000; i++) {
		size_t n = 1 + next_random() % (sizeof(garbage) - 1);
		int sock = raw_connect(it_daemon.socket);

		T_REQUIRE(sock >= 0);
		random_bytes(garbage, n);
		/* Every other one looks like a message at first. */
		if (i % 2 && n > sizeof(h)) {
			h.opcode = (uint16_t)(next_random() % 40);
			h.payload_bytes = (uint32_t)(n - sizeof(h));
			memcpy(garbage, &h, sizeof(h));
		}
		raw_send(sock, garbage, n, NULL, 0);
		close(sock);
	}
	CU_ASSERT_TRUE(serves());
	CU_ASSERT_TRUE(wait_until(thousand_were_bad, NULL, 5000));
}

static void a_broken_frame_closes_its_connection_only(void)
{
	int sock = raw_open(it_daemon.socket);

	T_REQUIRE(sock >= 0);
	raw_send(sock, "nonsense", 8, NULL, 0);
	CU_ASSERT_EQUAL(outcome_of(sock), -ECONNRESET);
	close(sock);
	CU_ASSERT_TRUE(serves());
}

static void a_bad_request_leaves_its_connection_open(void)
{
	struct dmaheap_alloc_req bad = {.len_bytes = 4096, .count = 65};
	int sock = raw_open(it_daemon.socket);

	T_REQUIRE(sock >= 0);
	CU_ASSERT_EQUAL(raw_call(sock, 999, NULL, 0, &reply), -EOPNOTSUPP);
	CU_ASSERT_EQUAL(raw_call(sock, DMAHEAP_OP_ALLOC, &bad, sizeof(bad),
				 &reply),
			-EINVAL);
	CU_ASSERT_EQUAL(raw_call(sock, DMAHEAP_OP_HEAPS, NULL, 0, &reply), 0);
	close(sock);
}

static bool has_at_most(void *ctx)
{
	return count_fds(it_daemon.pid) <= *(unsigned int *)ctx;
}

static void uninvited_fds_are_closed(void)
{
	unsigned int before = count_fds(it_daemon.pid);
	int fds[64], sock = raw_open(it_daemon.socket), null;

	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	T_REQUIRE(sock >= 0 && null >= 0);
	for (int i = 0; i < 64; i++)
		fds[i] = null;
	for (int i = 0; i < 20; i++) {
		T_REQUIRE(raw_request(sock, DMAHEAP_OP_HEAPS, NULL, 0, fds,
				      64) == 0);
		T_REQUIRE(outcome_of(sock) == 0);
		CU_ASSERT_EQUAL(reply.header.status, -EINVAL);
	}
	/* The connection takes three. */
	before += 3;
	CU_ASSERT_TRUE(wait_until(has_at_most, &before, 2000));
	/* More than any request takes: cut off, and the sender closed. */
	{
		int many[200];

		for (int i = 0; i < 200; i++)
			many[i] = null;
		raw_request(sock, DMAHEAP_OP_ADOPT, NULL, 0, many, 200);
		CU_ASSERT_EQUAL(outcome_of(sock), -ECONNRESET);
	}
	close(sock);
	close(null);
	CU_ASSERT_TRUE(serves());
}

static void who_never_says_hello_is_closed(void)
{
	int sock = raw_connect(it_daemon.socket);

	T_REQUIRE(sock >= 0);
	CU_ASSERT_EQUAL(outcome_of(sock), -ECONNRESET);
	close(sock);
	CU_ASSERT_TRUE(daemon_log_wait(&it_daemon, "closing uid="));
}

/* Asks for as many buffers as the socket takes, and reads no reply. */
static int greedy_and_silent(void)
{
	struct dmaheap_alloc_req req = {.len_bytes = 4096,
					.fd_flags = O_RDWR,
					.count = 64};
	int sock = raw_open(it_daemon.socket);

	if (sock < 0)
		return sock;
	fcntl(sock, F_SETFL, O_NONBLOCK);
	for (int i = 0; i < 500; i++)
		if (raw_request(sock, DMAHEAP_OP_ALLOC, &req, sizeof(req), NULL,
				0))
			break;
	return sock;
}

static bool only_one_connection(void *ctx)
{
	(void)ctx;
	return it_stats()->daemon.n_connections == 1;
}

static void clients_that_never_read_are_closed_and_block_nobody(void)
{
	int a = greedy_and_silent(), b = greedy_and_silent();

	T_REQUIRE(a >= 0 && b >= 0);
	for (int i = 0; i < 50; i++)
		CU_ASSERT_TRUE(serves());
	CU_ASSERT_TRUE(wait_until(only_one_connection, NULL, 5000));
	close(a);
	close(b);
}

static int sealed_text(const char *text)
{
	int fd = memfd_create("text", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (write(fd, text, strlen(text)) != (ssize_t)strlen(text) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK) <
		    0)
		abort();
	return fd;
}

static int load(int sock, const char *text)
{
	struct dmaheap_pressure_req req = {.kind = DMAHEAP_PRESSURE_LOAD,
					   .fd_kinds = {
						   DMAHEAP_TEXT_BUDDYINFO}};
	int fd = sealed_text(text), r;

	r = raw_request(sock, DMAHEAP_OP_PRESSURE, &req, sizeof(req), &fd, 1);
	if (!r)
		r = outcome_of(sock);
	close(fd);
	return r ? r : reply.header.status;
}

static void a_snapshot_of_nonsense_is_refused_with_the_reason(void)
{
	static const char *const texts[] =
		{"", "nonsense\n",
		 "Node 0, zone Normal -1 0 0 0 0 0 0 0 0 0 0\n",
		 "Node 0, zone Normal 1 2 3\n",
		 "Node 0, zone Normal 9999999999999 0 0 0 0 0 0 0 0 0 1\n"};
	int sock = raw_open(it_daemon.socket);
	int fd = it_alloc("system", 4096, NULL);

	T_REQUIRE(sock >= 0 && fd >= 0);
	CU_ASSERT_EQUAL(load(sock, "Node 0, zone Normal 0 0 0 0 0 0 0 0 0 0 "
				   "64\n"),
			-EBUSY);
	close(fd);
	CU_ASSERT_TRUE(it_wait_all_free("system"));
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		CU_ASSERT_EQUAL(load(sock, texts[i]), -EINVAL);
		CU_ASSERT_PTR_NOT_NULL(strstr(reply.payload, "buddyinfo"));
	}
	CU_ASSERT_TRUE(serves());
	CU_ASSERT_TRUE(it_wait_all_free("system"));
	CU_ASSERT_EQUAL(load(sock, "Node 0, zone Normal 0 0 0 0 0 0 0 0 0 0 "
				   "64\n"),
			0);
	/* The node is another one while the connection lives. */
	CU_ASSERT_TRUE(serves());
	close(sock);
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"a thousand connections of garbage harm nobody",
		 a_thousand_connections_of_garbage_harm_nobody},
		{"a broken frame closes its connection only",
		 a_broken_frame_closes_its_connection_only},
		{"a bad request leaves its connection open",
		 a_bad_request_leaves_its_connection_open},
		{"uninvited fds are closed", uninvited_fds_are_closed},
		{"who never says HELLO is closed",
		 who_never_says_hello_is_closed},
		{"clients that never read are closed and block nobody",
		 clients_that_never_read_are_closed_and_block_nobody},
		{"a snapshot of nonsense is refused with the reason",
		 a_snapshot_of_nonsense_is_refused_with_the_reason},
		CU_TEST_INFO_NULL,
	};

	it_options.config = CONFIG;
	return it_main(argc, argv, tests);
}
