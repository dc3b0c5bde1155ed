/* SPDX-License-Identifier: MIT */
/* That a mapping is complete, whatever its memory is made of. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include <dmaheap/dmaheap.h>

#include "support/faults.h"
#include "support/test.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* since 6.1 */
#endif

#define PAGE_BYTES 4096u
#define MIB_BYTES  ((size_t)1 << 20)
#define HUGE_BYTES (2 * MIB_BYTES)
#define IS_PRESENT (UINT64_C(1) << 63) /* of /proc/PID/pagemap */

static int pagemap = -1;

static void setup(void)
{
	T_REQUIRE(sysconf(_SC_PAGESIZE) == PAGE_BYTES);
	pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	T_REQUIRE(pagemap >= 0);
}

static void teardown(void)
{
	faults_clear();
	pagemap = close(pagemap);
}

/* A full memfd, of which the first @huge_bytes are of 2 MiB folios if the
 * kernel can make them. */
static int make(size_t len_bytes, size_t huge_bytes)
{
	int fd = memfd_create("map", MFD_CLOEXEC);
	char byte = 'x';
	char *map;

	T_REQUIRE(fd >= 0 && ftruncate(fd, (off_t)len_bytes) == 0);
	for (size_t i = 0; i < len_bytes; i += PAGE_BYTES)
		T_REQUIRE(pwrite(fd, &byte, 1, (off_t)i) == 1);
	if (huge_bytes == 0)
		return fd;
	map = dmaheap_map(fd, huge_bytes, PROT_READ);
	T_REQUIRE(map != MAP_FAILED);
	(void)madvise(map, huge_bytes, MADV_COLLAPSE);
	munmap(map, huge_bytes);
	return fd;
}

static size_t count_present(const char *map, size_t len_bytes)
{
	size_t n = 0;

	for (size_t i = 0; i < len_bytes; i += PAGE_BYTES) {
		uint64_t entry = 0;
		off_t at = (off_t)(((uintptr_t)map + i) / PAGE_BYTES *
				   sizeof(entry));

		T_REQUIRE(pread(pagemap, &entry, sizeof(entry), at) ==
			  sizeof(entry));
		n += (entry & IS_PRESENT) != 0;
	}
	return n;
}

static void expect_complete(int fd, size_t len_bytes, int prot)
{
	char *map = dmaheap_map(fd, len_bytes, prot);
	size_t n_wrong = 0;

	T_REQUIRE(map != MAP_FAILED);
	CU_ASSERT_EQUAL((uintptr_t)map % HUGE_BYTES, 0);
	CU_ASSERT_EQUAL(count_present(map, len_bytes), len_bytes / PAGE_BYTES);
	for (size_t i = 0; i < len_bytes; i += PAGE_BYTES)
		n_wrong += map[i] != 'x' || map[i + 1] != 0;
	CU_ASSERT_EQUAL(n_wrong, 0);
	munmap(map, len_bytes);
}

static const struct {
	size_t len_bytes;
	size_t huge_bytes;
} files[] = {
	{PAGE_BYTES, 0},
	{17 * PAGE_BYTES, 0},
	{MIB_BYTES, 0},
	{3 * MIB_BYTES + 5 * PAGE_BYTES, 0},
	{HUGE_BYTES, HUGE_BYTES},
	{2 * HUGE_BYTES + PAGE_BYTES, 2 * HUGE_BYTES},
	{3 * HUGE_BYTES + MIB_BYTES, HUGE_BYTES},
};

static void every_page_is_entered_and_none_is_changed(void)
{
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		int fd = make(files[i].len_bytes, files[i].huge_bytes);

		expect_complete(fd, files[i].len_bytes, PROT_READ | PROT_WRITE);
		expect_complete(fd, files[i].len_bytes, PROT_READ);
		close(fd);
	}
}

/* Kernels before 5.14 know no advice to populate. */
static void without_the_advice_the_pages_are_entered_all_the_same(void)
{
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		int fd = make(files[i].len_bytes, files[i].huge_bytes);

		faults_arm(FAULT_MADVISE, 0, 1000, EINVAL);
		expect_complete(fd, files[i].len_bytes, PROT_READ | PROT_WRITE);
		CU_ASSERT(faults_hits(FAULT_MADVISE) > 0);
		faults_clear();
		close(fd);
	}
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"every page is entered and none is changed",
		 every_page_is_entered_and_none_is_changed},
		{"without the advice the pages are entered all the same",
		 without_the_advice_the_pages_are_entered_all_the_same},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "map",
		 .pSetUpFunc = setup,
		 .pTearDownFunc = teardown,
		 .pTests = tests},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
