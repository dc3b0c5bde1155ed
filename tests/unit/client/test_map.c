/* SPDX-License-Identifier: MIT */
/* That a mapping is complete, whatever its memory is made of. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <dmaheap/dmaheap.h>

#include "support/faults.h"
#include "support/settings.h"
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

/* Address space in use, in pages. */
static size_t count_address_space(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	size_t n = 0;

	T_REQUIRE(file != NULL && fscanf(file, "%zu", &n) == 1);
	fclose(file);
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

/* Only kernels since 6.14 take many of them in one call. */
static void without_many_at_once_the_pages_are_entered_one_by_one(void)
{
	int fd = make(3 * MIB_BYTES + 5 * PAGE_BYTES, 0);

	faults_arm(FAULT_PROCESS_MADVISE, 0, 1000, EINVAL);
	expect_complete(fd, 3 * MIB_BYTES + 5 * PAGE_BYTES, PROT_READ);
	CU_ASSERT_EQUAL(faults_hits(FAULT_PROCESS_MADVISE), 1);
	faults_clear();
	close(fd);
}

/* Buffers of all sizes next to each other, in gaps and below them. */
static void what_lies_beside_others_is_congruent_too(void)
{
	size_t lens[] = {HUGE_BYTES, 3 * HUGE_BYTES, PAGE_BYTES,
			 HUGE_BYTES + PAGE_BYTES};
	void *maps[64];
	int fd = make(3 * HUGE_BYTES, 0);

	for (size_t i = 0; i < 64; i++) {
		maps[i] = dmaheap_map(fd, lens[i % 4], PROT_READ);
		T_REQUIRE(maps[i] != MAP_FAILED);
		CU_ASSERT_EQUAL((uintptr_t)maps[i] % HUGE_BYTES, 0);
		/* Every third leaves a hole for those that follow. */
		if (i % 3 == 2)
			munmap(maps[i - 1], lens[(i - 1) % 4]);
	}
	for (size_t i = 0; i < 64; i++)
		if (i % 3 != 1)
			munmap(maps[i], lens[i % 4]);
	close(fd);
}

/* They need no page: it is refused before one is asked for. */
static void a_part_of_a_huge_page_is_refused(void)
{
	int fd = memfd_create("map", MFD_CLOEXEC | MFD_HUGETLB);
	size_t before = count_address_space();

	if (fd < 0 || ftruncate(fd, 2 * HUGE_BYTES) < 0) {
		printf(" (no hugetlb here: not tried) ");
		return;
	}
	errno = 0;
	CU_ASSERT_PTR_EQUAL(dmaheap_map(fd, PAGE_BYTES, PROT_READ), MAP_FAILED);
	CU_ASSERT_EQUAL(errno, EINVAL);
	errno = 0;
	CU_ASSERT_PTR_EQUAL(dmaheap_map(fd, HUGE_BYTES + PAGE_BYTES, PROT_READ),
			    MAP_FAILED);
	CU_ASSERT_EQUAL(errno, EINVAL);
	CU_ASSERT_EQUAL(count_address_space(), before);
	close(fd);
}

static void expect_nothing_left(int fd, size_t len_bytes, enum fault fault,
				unsigned int n_good)
{
	size_t before = count_address_space();
	void *map;

	faults_arm(fault, n_good, 1, ENOMEM);
	map = dmaheap_map(fd, len_bytes, PROT_READ);
	if (map == MAP_FAILED)
		CU_ASSERT_EQUAL(errno, ENOMEM);
	CU_ASSERT(fault != FAULT_MMAP ||
		  (map == MAP_FAILED) == (faults_hits(fault) > 0));
	faults_clear();
	if (map != MAP_FAILED)
		munmap(map, len_bytes);
	CU_ASSERT_EQUAL(count_address_space(), before);
}

static void a_mapping_that_ends_or_fails_leaves_nothing(void)
{
	int fd = make(HUGE_BYTES + PAGE_BYTES, 0);

	expect_nothing_left(fd, PAGE_BYTES, FAULT_MUNMAP, 0);
	expect_nothing_left(fd, PAGE_BYTES, FAULT_MUNMAP, 1);
	for (unsigned int n_good = 0; n_good < 4; n_good++) {
		expect_nothing_left(fd, HUGE_BYTES + PAGE_BYTES, FAULT_MMAP,
				    n_good);
		expect_nothing_left(fd, PAGE_BYTES, FAULT_MMAP, n_good);
	}
	close(fd);
}

/* ---- folios of all sizes ---- */

#define SWITCH(kib)                                                            \
	"/sys/kernel/mm/transparent_hugepage/hugepages-" #kib "kB/"            \
							      "shmem_enabled"
#define RUNS_MAX 4

static const char *const switches[] = {SWITCH(8), SWITCH(32), SWITCH(1024),
				       SWITCH(2048), NULL};

struct run {
	unsigned int order;
	size_t len_bytes;
};

/* The kernel takes the largest folio for which address and offset agree. */
static void fill_run(int fd, size_t at, const struct run *run)
{
	size_t folio_bytes = (size_t)PAGE_BYTES << run->order;
	size_t span = run->len_bytes + 4 * HUGE_BYTES;
	char *base =
		mmap(NULL, span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *p;

	T_REQUIRE(base != MAP_FAILED);
	p = (char *)(((uintptr_t)base + 2 * HUGE_BYTES - 1) &
		     ~(uintptr_t)(2 * HUGE_BYTES - 1)) +
	    at % HUGE_BYTES + (folio_bytes < HUGE_BYTES ? folio_bytes : 0);
	T_REQUIRE(mmap(p, run->len_bytes, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_FIXED, fd, (off_t)at) == p);
	(void)madvise(p, run->len_bytes, MADV_HUGEPAGE);
	for (size_t i = 0; i < run->len_bytes; i += PAGE_BYTES)
		p[i] = 'x';
	munmap(base, span);
}

static void each_folio_is_entered_in_any_mix(void)
{
	static const struct run mixes[][RUNS_MAX] = {
		{{8, 10 * MIB_BYTES}},
		{{3, 10 * MIB_BYTES}},
		{{1, 4 * MIB_BYTES}},
		{{9, 4 * MIB_BYTES}, {8, MIB_BYTES}, {0, PAGE_BYTES}},
		{{8, 3 * MIB_BYTES}, {3, MIB_BYTES}, {0, 3 * MIB_BYTES}},
		{{8, HUGE_BYTES}, {9, HUGE_BYTES}, {8, HUGE_BYTES}},
		{{8, 4 * HUGE_BYTES},
		 {9, 2 * HUGE_BYTES},
		 {0, HUGE_BYTES},
		 {8, HUGE_BYTES}},
		{{0, HUGE_BYTES}, {9, HUGE_BYTES}},
		{{3, HUGE_BYTES}, {0, 4 * HUGE_BYTES}},
	};
	struct settings_guard guard;

	if (access(switches[0], W_OK) != 0) {
		printf(" (no switches to set: not tried) ");
		return;
	}
	settings_guard(&guard, switches);
	for (size_t i = 0; switches[i]; i++)
		CU_ASSERT_TRUE(settings_write(switches[i], "advise"));
	for (size_t i = 0; i < sizeof(mixes) / sizeof(mixes[0]); i++) {
		int fd = memfd_create("map", MFD_CLOEXEC);
		size_t at = 0;

		T_REQUIRE(fd >= 0 && ftruncate(fd, 32 * MIB_BYTES) == 0);
		for (size_t k = 0; k < RUNS_MAX; k++) {
			if (mixes[i][k].len_bytes > 0)
				fill_run(fd, at, &mixes[i][k]);
			at += mixes[i][k].len_bytes;
		}
		expect_complete(fd, at, PROT_READ | PROT_WRITE);
		expect_complete(fd, at, PROT_READ);
		close(fd);
	}
	settings_restore(&guard);
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"every page is entered and none is changed",
		 every_page_is_entered_and_none_is_changed},
		{"without the advice the pages are entered all the same",
		 without_the_advice_the_pages_are_entered_all_the_same},
		{"without many at once the pages are entered one by one",
		 without_many_at_once_the_pages_are_entered_one_by_one},
		{"what lies beside others is congruent too",
		 what_lies_beside_others_is_congruent_too},
		{"a part of a huge page is refused",
		 a_part_of_a_huge_page_is_refused},
		{"a mapping that ends or fails leaves nothing",
		 a_mapping_that_ends_or_fails_leaves_nothing},
		{"each folio is entered, in any mix",
		 each_folio_is_entered_in_any_mix},
		CU_TEST_INFO_NULL,
	};
	int lock;
	CU_SuiteInfo suites[] = {
		{.pName = "map",
		 .pSetUpFunc = setup,
		 .pTearDownFunc = teardown,
		 .pTests = tests},
		CU_SUITE_INFO_NULL,
	};

	/* The switches are the host's: one such program at a time. */
	lock = open("/run/dmaheap-test-thp.lock", O_RDWR | O_CREAT | O_CLOEXEC,
		    0600);
	if (lock >= 0)
		(void)flock(lock, LOCK_EX);
	return t_main(argc, argv, suites);
}
