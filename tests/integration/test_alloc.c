/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "integration/common.h"
#include "support/raw.h"

#define SEAL_EXEC 0x20 /* F_SEAL_EXEC: kernels since 6.3 add it */

static struct dmaheap_alloc_report report;

static void allocated_as(uint64_t len_bytes, uint32_t n8, uint32_t n4,
			 uint32_t n0)
{
	int fd = it_alloc("system", len_bytes, &report);
	struct stat st;

	if (fd < 0) {
		CU_FAIL("no buffer");
		fprintf(stderr, "alloc: %s\n", it_error);
		return;
	}
	IT_COMPOSITION(&report, n8, n4, n0);
	CU_ASSERT_EQUAL(report.source, DMAHEAP_SOURCE_NODE);
	CU_ASSERT_EQUAL(report.size_bytes, (len_bytes + 4095) & ~4095ull);
	CU_ASSERT_EQUAL(fstat(fd, &st), 0);
	CU_ASSERT_EQUAL((uint64_t)st.st_size, report.size_bytes);
	/* It is all there before the reply. */
	CU_ASSERT_EQUAL((uint64_t)st.st_blocks * 512, report.size_bytes);
	CU_ASSERT_EQUAL(st.st_mode & 0777, 0600);
	CU_ASSERT_EQUAL((uint64_t)lseek(fd, 0, SEEK_END), report.size_bytes);
	close(fd);
	CU_ASSERT_TRUE(it_wait_all_free("system"));
	it_shrink(0);
}

static void a_fresh_node_gives_the_largest_blocks(void)
{
	allocated_as(IT_MIB(10), 10, 0, 0);
	allocated_as(IT_MIB(1) + IT_KIB(4), 1, 0, 1);
	allocated_as(IT_KIB(60), 0, 0, 15);
	allocated_as(IT_KIB(64), 0, 1, 0);
	allocated_as(1, 0, 0, 1);
}

static void a_policy_without_order_4_never_yields_it(void)
{
	CU_ASSERT_EQUAL(it_set_policy("system", "orders=8 0 0"), 0);
	allocated_as(IT_MIB(1) + IT_KIB(64), 1, 0, 16);
	CU_ASSERT_EQUAL(it_set_policy("system", "orders=8 0"), 0);
	allocated_as(IT_MIB(1) + IT_KIB(128), 1, 0, 32);
	CU_ASSERT_EQUAL(it_set_policy("system", "policy=0-only"), 0);
	allocated_as(IT_MIB(1), 0, 0, 256);
	CU_ASSERT_EQUAL(it_set_policy("system", "orders=4 8 0"), -EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(it_error, "order"));
	CU_ASSERT_EQUAL(it_set_policy("system", "orders=8 4"), -EINVAL);
	CU_ASSERT_EQUAL(it_set_policy("system", "colour=8"), -EINVAL);
	CU_ASSERT_EQUAL(it_set_policy("system", "gfp.8=BLUE"), -EINVAL);
	CU_ASSERT_EQUAL(it_set_policy("nowhere", "orders=0"), -ENOENT);
}

static void a_second_allocation_is_a_pool_hit_of_each_block(void)
{
	int fd = it_alloc("system", IT_MIB(10), &report);
	uint64_t id = report.id;

	T_REQUIRE(fd >= 0);
	close(fd);
	CU_ASSERT_TRUE(it_wait_all_free("system"));
	CU_ASSERT_EQUAL(it_pool("system", 8)->blocks, 10);
	CU_ASSERT_EQUAL(it_pool("system", 8)->hits, 0);
	fd = it_alloc("system", IT_MIB(10), &report);
	T_REQUIRE(fd >= 0);
	IT_COMPOSITION(&report, 10, 0, 0);
	CU_ASSERT_TRUE(report.source == DMAHEAP_SOURCE_PARKED ||
		       report.source == DMAHEAP_SOURCE_POOL);
	CU_ASSERT_EQUAL(it_pool("system", 8)->hits, 10);
	CU_ASSERT_EQUAL(it_pool("system", 8)->blocks, 0);
	(void)id;
	close(fd);
}

/* The first metadata leaves a batch of pages on the per-CPU lists, where, as in
 * the kernel, buddyinfo does not count them. */
static void fill_cpu_lists(void)
{
	int fd = it_alloc("system", IT_MIB(10), &report);

	T_REQUIRE(fd >= 0);
	close(fd);
	CU_ASSERT_TRUE(it_wait_all_free("system"));
	it_shrink(0);
}

static void without_a_pool_every_block_is_back_in_buddyinfo(void)
{
	char *before, *after;
	int fd;

	CU_ASSERT_EQUAL(it_set_policy("system", "pool.limit=0"), 0);
	fill_cpu_lists();
	before = it_node_text(DMAHEAP_NODE_BUDDYINFO);
	for (int i = 0; i < 3; i++) {
		fd = it_alloc("system", IT_MIB(10), &report);
		T_REQUIRE(fd >= 0);
		CU_ASSERT_EQUAL(report.source, DMAHEAP_SOURCE_NODE);
		close(fd);
		CU_ASSERT_TRUE(it_wait_all_free("system"));
	}
	after = it_node_text(DMAHEAP_NODE_BUDDYINFO);
	CU_ASSERT_STRING_EQUAL(before, after);
	CU_ASSERT_EQUAL(it_pool("system", 8)->hits, 0);
	CU_ASSERT_EQUAL(it_pool("system", 8)->blocks, 0);
	free(before);
	free(after);
}

static uint64_t free_bytes(void)
{
	const struct dmaheap_stats *s = it_stats();
	uint64_t sum = 0;

	for (uint32_t i = 0; i < s->node.n_zones; i++)
		sum += s->node.zone[i].free_bytes;
	return sum;
}

static void shrink_moves_blocks_from_the_pools_to_the_node(void)
{
	uint64_t at_first, pooled;
	int fd;

	fill_cpu_lists();
	at_first = free_bytes();
	fd = it_alloc("system", IT_MIB(10), &report);

	T_REQUIRE(fd >= 0);
	close(fd);
	CU_ASSERT_TRUE(it_wait_all_free("system"));
	pooled = free_bytes();
	CU_ASSERT_TRUE(at_first - pooled >= IT_MIB(10));
	CU_ASSERT_EQUAL(it_shrink(0), 0);
	CU_ASSERT_EQUAL(free_bytes(), at_first);
	CU_ASSERT_EQUAL(it_pool("system", 8)->blocks, 0);
}

static bool is_zero(int fd, uint64_t len_bytes)
{
	const uint64_t *p = mmap(NULL, len_bytes, PROT_READ, MAP_SHARED, fd, 0);
	bool zero = p != MAP_FAILED;

	for (uint64_t i = 0; zero && i < len_bytes / 8; i++)
		zero = p[i] == 0;
	if (p != MAP_FAILED)
		munmap((void *)(uintptr_t)p, len_bytes);
	return zero;
}

static void fill(int fd, uint64_t len_bytes)
{
	void *p = mmap(NULL, len_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		       0);

	T_REQUIRE(p != MAP_FAILED);
	memset(p, 0xff, len_bytes);
	munmap(p, len_bytes);
}

static void content_is_zero_at_first_and_after_recycling(void)
{
	for (int i = 0; i < 4; i++) {
		int fd = it_alloc("system", IT_MIB(3) + IT_KIB(4), &report);

		T_REQUIRE(fd >= 0);
		CU_ASSERT_TRUE(is_zero(fd, report.size_bytes));
		fill(fd, report.size_bytes);
		close(fd);
		CU_ASSERT_TRUE(it_wait_all_free("system"));
	}
	CU_ASSERT_TRUE(it_pool("system", 8)->hits > 0);
}

static void a_client_cannot_resize(void)
{
	int fd = it_alloc("system", IT_MIB(1), &report);

	T_REQUIRE(fd >= 0);
	CU_ASSERT_TRUE(ftruncate(fd, 0) < 0);
	CU_ASSERT_TRUE(ftruncate(fd, (off_t)IT_MIB(2)) < 0);
	CU_ASSERT_TRUE(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) < 0);
	CU_ASSERT_EQUAL(fcntl(fd, F_GET_SEALS) & ~SEAL_EXEC,
			F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	close(fd);
}

static void a_read_only_request_refuses_a_writable_mapping(void)
{
	int fd = dmaheap_alloc(it_dh, NULL, IT_MIB(1), O_RDONLY | O_CLOEXEC, 0);
	void *p;

	T_REQUIRE(fd >= 0);
	p = mmap(NULL, IT_MIB(1), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CU_ASSERT_PTR_EQUAL(p, MAP_FAILED);
	CU_ASSERT_EQUAL(errno, EACCES);
	p = mmap(NULL, IT_MIB(1), PROT_READ, MAP_SHARED, fd, 0);
	CU_ASSERT_PTR_NOT_EQUAL(p, MAP_FAILED);
	munmap(p, IT_MIB(1));
	close(fd);
}

static void many_at_once_come_together_or_not_at_all(void)
{
	int fds[DMAHEAP_ALLOC_MAX_COUNT];

	T_REQUIRE(dmaheap_alloc_many(it_dh, "system", IT_KIB(64),
				     O_RDWR | O_CLOEXEC, 0, 64, fds) == 0);
	CU_ASSERT_EQUAL(it_heap_stats("system")->buffers, 64);
	for (int i = 0; i < 64; i++)
		close(fds[i]);
	CU_ASSERT_TRUE(it_wait_all_free("system"));
	CU_ASSERT_EQUAL(dmaheap_alloc_many(it_dh, "system", IT_MIB(100),
					   O_RDWR | O_CLOEXEC, 0, 11, fds),
			-ENOMEM);
	CU_ASSERT_EQUAL(it_heap_stats("system")->buffers, 0);
}

#define N_AGAIN 16u

static void who_comes_while_many_are_recycled_waits_for_those(void)
{
	struct dmaheap_alloc_report reports[N_AGAIN];
	char why[DMAHEAP_ERROR_TEXT_MAX_BYTES];
	int fds[DMAHEAP_ALLOC_MAX_COUNT];
	/* Else a release is noticed only by the next sweep. */
	bool exact = !strcmp(it_stats()->daemon.lifetime, "exact");

	T_REQUIRE(dmaheap_alloc_many(it_dh, NULL, IT_KIB(64),
				     O_RDWR | O_CLOEXEC, 0,
				     DMAHEAP_ALLOC_MAX_COUNT, fds) == 0);
	for (size_t i = 0; i < DMAHEAP_ALLOC_MAX_COUNT; i++) {
		CU_ASSERT_EQUAL(pwrite(fds[i], "x", 1, 4096), 1);
		close(fds[i]);
	}
	T_REQUIRE(dmaheap_alloc_ex(it_dh, NULL, IT_KIB(64), O_RDWR | O_CLOEXEC,
				   0, N_AGAIN, fds, reports, why,
				   sizeof(why)) == 0);
	for (size_t i = 0; i < N_AGAIN; i++) {
		char byte = 'y';

		if (exact)
			CU_ASSERT_EQUAL(reports[i].source,
					DMAHEAP_SOURCE_PARKED);
		CU_ASSERT_EQUAL(pread(fds[i], &byte, 1, 4096), 1);
		CU_ASSERT_EQUAL(byte, 0);
		close(fds[i]);
	}
	CU_ASSERT_TRUE(it_wait_all_free("system"));
}

static void who_waits_and_goes_leaves_nothing(void)
{
	int fds[DMAHEAP_ALLOC_MAX_COUNT];
	struct dmaheap_alloc_req req = {.len_bytes = IT_KIB(64),
					.fd_flags = O_RDWR | O_CLOEXEC,
					.count = N_AGAIN};

	for (unsigned int i = 0; i < 8; i++) {
		int sock = raw_open(it_daemon.socket);

		T_REQUIRE(sock >= 0);
		T_REQUIRE(dmaheap_alloc_many(it_dh, NULL, IT_KIB(64),
					     O_RDWR | O_CLOEXEC, 0,
					     DMAHEAP_ALLOC_MAX_COUNT,
					     fds) == 0);
		for (size_t k = 0; k < DMAHEAP_ALLOC_MAX_COUNT; k++)
			close(fds[k]);
		CU_ASSERT_EQUAL(raw_request(sock, DMAHEAP_OP_ALLOC, &req,
					    sizeof(req), NULL, 0),
				0);
		close(sock);
		CU_ASSERT_TRUE(it_wait_all_free("system"));
	}
}

static void bad_requests_get_the_errors_of_the_contract(void)
{
	CU_ASSERT_EQUAL(it_alloc("system", 0, NULL), -EINVAL);
	CU_ASSERT_EQUAL(it_alloc("system", UINT64_MAX, NULL), -EINVAL);
	CU_ASSERT_EQUAL(it_alloc("system", UINT64_MAX - 4094, NULL), -EINVAL);
	CU_ASSERT_EQUAL(it_alloc("system", 1ull << 63, NULL), -ENOMEM);
	CU_ASSERT_EQUAL(it_alloc("system", IT_MIB(2048), NULL), -ENOMEM);
	CU_ASSERT_PTR_NOT_NULL(strstr(it_error, "[node] size"));
	CU_ASSERT_EQUAL(it_alloc("nowhere", 4096, NULL), -ENOENT);
	CU_ASSERT_PTR_NOT_NULL(strstr(it_error, "nowhere"));
	CU_ASSERT_EQUAL(dmaheap_alloc(it_dh, NULL, 4096, 3, 0), -EINVAL);
	CU_ASSERT_EQUAL(dmaheap_alloc(it_dh, NULL, 4096, O_RDWR | O_APPEND, 0),
			-EINVAL);
	CU_ASSERT_EQUAL(dmaheap_alloc(it_dh, NULL, 4096, O_RDWR, 1), -EINVAL);
	allocated_as(IT_KIB(64), 0, 1, 0);
}

static void a_heap_is_found_by_its_aliases(void)
{
	int fd = it_alloc("linux,cma", IT_KIB(4), &report);

	CU_ASSERT_TRUE(fd >= 0);
	close(fd);
	fd = it_alloc("system-uncached", IT_KIB(4), &report);
	CU_ASSERT_TRUE(fd >= 0);
	close(fd);
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"a fresh node gives the largest blocks",
		 a_fresh_node_gives_the_largest_blocks},
		{"a policy without order 4 never yields it",
		 a_policy_without_order_4_never_yields_it},
		{"a second allocation is a pool hit of each block",
		 a_second_allocation_is_a_pool_hit_of_each_block},
		{"without a pool every block is back in buddyinfo",
		 without_a_pool_every_block_is_back_in_buddyinfo},
		{"shrink moves blocks from the pools to the node",
		 shrink_moves_blocks_from_the_pools_to_the_node},
		{"content is zero at first and after recycling",
		 content_is_zero_at_first_and_after_recycling},
		{"a client cannot resize", a_client_cannot_resize},
		{"a read-only request refuses a writable mapping",
		 a_read_only_request_refuses_a_writable_mapping},
		{"many at once come together or not at all",
		 many_at_once_come_together_or_not_at_all},
		{"who comes while many are recycled waits for those",
		 who_comes_while_many_are_recycled_waits_for_those},
		{"who waits and goes leaves nothing",
		 who_waits_and_goes_leaves_nothing},
		{"bad requests get the errors of the contract",
		 bad_requests_get_the_errors_of_the_contract},
		{"a heap is found by its aliases",
		 a_heap_is_found_by_its_aliases},
		CU_TEST_INFO_NULL,
	};

	it_options.config = "[daemon]\nconfine = kill\n";
	return it_main(argc, argv, tests);
}
