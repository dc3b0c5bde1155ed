/* SPDX-License-Identifier: MIT */
/*
 * Where the kernel refuses leases the end of a buffer cannot be learnt: RELEASE
 * and the end of the connection are the release, and nothing is recycled.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "integration/common.h"
#include "support/raw.h"

static struct raw_reply reply;

/* Return: the id of a new buffer, whose fd is closed at once. */
static uint64_t alloc_and_close(int sock)
{
	struct dmaheap_alloc_req req = {.len_bytes = IT_MIB(1),
					.fd_flags = O_RDWR,
					.count = 1};
	struct dmaheap_alloc_report report;

	T_REQUIRE(raw_call(sock, DMAHEAP_OP_ALLOC, &req, sizeof(req), &reply) ==
		  0);
	T_REQUIRE(reply.n_fds == 1);
	close(reply.fds[0]);
	memcpy(&report, reply.payload + sizeof(struct dmaheap_alloc_reply),
	       sizeof(report));
	return report.id;
}

static int release(int sock, uint64_t id)
{
	struct dmaheap_release_req req = {.id = id};

	return raw_call(sock, DMAHEAP_OP_RELEASE, &req, sizeof(req), &reply);
}

static void it_says_that_release_is_needed(void)
{
	struct dmaheap_hello_reply hello;

	T_REQUIRE(dmaheap_hello(it_dh, &hello) == 0);
	CU_ASSERT_EQUAL(hello.features & DMAHEAP_FEATURE_EXACT_LIFETIME, 0);
	CU_ASSERT_STRING_EQUAL(it_stats()->daemon.lifetime, "explicit");
	CU_ASSERT_TRUE(daemon_log_wait(&it_daemon, "lifetime=explicit"));
}

static void a_closed_buffer_lives_until_it_is_released(void)
{
	int sock = raw_open(it_daemon.socket);
	int other = raw_open(it_daemon.socket);
	uint64_t id;

	T_REQUIRE(sock >= 0 && other >= 0);
	id = alloc_and_close(sock);
	CU_ASSERT_EQUAL(it_heap_stats("system")->buffers, 1);
	/* It is nobody else's to release. */
	CU_ASSERT_EQUAL(release(other, id), -ENOENT);
	CU_ASSERT_EQUAL(release(sock, id + 1), -ENOENT);
	CU_ASSERT_EQUAL(it_heap_stats("system")->buffers, 1);
	CU_ASSERT_EQUAL(release(sock, id), 0);
	CU_ASSERT_TRUE(it_wait_all_free("system"));
	CU_ASSERT_EQUAL(release(sock, id), -ENOENT);
	close(sock);
	close(other);
}

static void the_end_of_the_connection_releases_all(void)
{
	int sock = raw_open(it_daemon.socket);

	T_REQUIRE(sock >= 0);
	for (int i = 0; i < 5; i++)
		alloc_and_close(sock);
	CU_ASSERT_EQUAL(it_heap_stats("system")->buffers, 5);
	close(sock);
	CU_ASSERT_TRUE(it_wait_all_free("system"));
}

static void nothing_is_recycled(void)
{
	int sock = raw_open(it_daemon.socket);
	uint64_t id;

	T_REQUIRE(sock >= 0);
	for (int i = 0; i < 3; i++) {
		id = alloc_and_close(sock);
		CU_ASSERT_EQUAL(release(sock, id), 0);
	}
	CU_ASSERT_EQUAL(it_stats()->backing.parked_bytes, 0);
	CU_ASSERT_EQUAL(it_stats()->backing.parked_hits, 0);
	close(sock);
}

int main(int argc, char **argv)
{
	char *wrap[] = {(char[]){WITHOUT_LEASES}, NULL};
	CU_TestInfo tests[] = {
		{"it says that RELEASE is needed",
		 it_says_that_release_is_needed},
		{"a closed buffer lives until it is released",
		 a_closed_buffer_lives_until_it_is_released},
		{"the end of the connection releases all",
		 the_end_of_the_connection_releases_all},
		{"nothing is recycled", nothing_is_recycled},
		CU_TEST_INFO_NULL,
	};

	it_options.config = "[daemon]\nconfine = kill\n";
	it_options.wrap = wrap;
	return it_main(argc, argv, tests);
}
