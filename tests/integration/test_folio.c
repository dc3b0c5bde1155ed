/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backing/selftest.h"
#include "integration/common.h"

/*
 * The composition that the heap decided is the one of the real folios, as the
 * kernel shows them in /proc/kpageflags. Root only; the daemon sets the
 * kernel's switches (manage_thp) and puts them back.
 */
#define BYTES IT_MIB(10)

/* Return: whether the @order folios that begin in the buffer are @n. */
static void expect_folios(int fd, unsigned int order, uint32_t n)
{
	uint32_t counts[11] = {0};
	void *p = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, fd, 0);

	T_REQUIRE(p != MAP_FAILED);
	T_REQUIRE(madvise(p, BYTES, MADV_POPULATE_READ) == 0);
	CU_ASSERT_EQUAL(selftest_folio_orders(p, BYTES, counts), 0);
	CU_ASSERT_EQUAL(counts[order], n);
	if (counts[order] != n)
		printf("%u of order %u\n", counts[order], order);
	munmap(p, BYTES);
}

static void composition_is_real(const char *policy, unsigned int order,
				uint32_t n)
{
	struct dmaheap_alloc_report report;
	int fd;

	CU_ASSERT_EQUAL(it_set_policy("system", policy), 0);
	for (int parked = 0; parked < 2; parked++) {
		fd = it_alloc("system", BYTES, &report);
		T_REQUIRE(fd >= 0);
		CU_ASSERT_EQUAL(report.blocks[order], n);
		CU_ASSERT_EQUAL(report.backing_got, DMAHEAP_BACKING_FOLIO);
		expect_folios(fd, order, n);
		close(fd);
		CU_ASSERT_TRUE(it_wait_all_free("system"));
	}
	CU_ASSERT_EQUAL(report.source, DMAHEAP_SOURCE_PARKED);
	it_shrink(0);
}

static void of_840_high_ten_of_order_8(void)
{
	composition_is_real("policy=840-high", 8, 10);
}

static void of_4_0_160_of_order_4(void)
{
	composition_is_real("orders=4 0", 4, 160);
}

static void of_0_only_2560_pages(void)
{
	composition_is_real("policy=0-only", 0, 2560);
}

static void of_940_high_five_of_order_9(void)
{
	composition_is_real("policy=940-high", 9, 5);
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"840-high: ten folios of order 8", of_840_high_ten_of_order_8},
		{"orders 4 0: 160 folios of order 4", of_4_0_160_of_order_4},
		{"0-only: 2560 pages", of_0_only_2560_pages},
		{"940-high: five folios of order 9",
		 of_940_high_five_of_order_9},
		CU_TEST_INFO_NULL,
	};
	static char config[256];
	int lock;

	if (geteuid() != 0 || access("/proc/kpageflags", R_OK) != 0)
		t_skip("needs root and /proc/kpageflags");
	if (access("/sys/kernel/mm/transparent_hugepage/hugepages-64kB/"
		   "shmem_enabled",
		   W_OK) != 0)
		t_skip("needs writable per-size THP switches (Linux 6.11)");
	/* The switches are the host's: one such program at a time. */
	lock = open("/run/dmaheap-test-thp.lock", O_RDWR | O_CREAT | O_CLOEXEC,
		    0600);
	if (lock < 0 || flock(lock, LOCK_EX) < 0)
		t_skip("cannot lock /run/dmaheap-test-thp.lock");
	snprintf(config, sizeof(config),
		 "[backing]\nmode = folio\nmanage_thp = yes\n"
		 "state_file = /run/dmaheap-test-%d.state\n",
		 (int)getpid());
	it_options.config = config;
	return it_main(argc, argv, tests);
}
