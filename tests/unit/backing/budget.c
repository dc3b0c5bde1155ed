/* SPDX-License-Identifier: MIT */
#include "backing/budget.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backing/hostmem.h"
#include "support/fail_malloc.h"
#include "support/test.h"

static char error[BACKING_ERROR_BYTES];

static const char *tree(const char *name)
{
	static char path[512];

	snprintf(path, sizeof(path), DMAHEAP_TEST_DATA "/hostmem/%s/", name);
	return path;
}

/* Return: the level of that name, read. */
static struct hostmem_reading read_level(const struct hostmem *h,
					 const char *name)
{
	struct hostmem_reading reading = {0};
	int r = -1;

	for (unsigned int i = 0; i < h->n_levels; i++)
		if (h->level[i].name && strcmp(h->level[i].name, name) == 0)
			r = hostmem_read(h, i, &reading);
	CU_ASSERT_EQUAL(r, 0);
	return reading;
}

static void version_2_is_read_up_to_the_root(void)
{
	struct hostmem_reading r;
	struct hostmem h;

	T_REQUIRE(hostmem_init(&h, tree("v2")) == 0);
	CU_ASSERT_EQUAL(h.n_levels, 1 + 5);
	T_REQUIRE(hostmem_read(&h, 0, &r) == 0);
	CU_ASSERT_EQUAL(r.limit_bytes, UINT64_C(16307340) * 1024);
	CU_ASSERT_EQUAL(r.available_bytes, GIB(9));
	r = read_level(&h,
		       "/user.slice/user-1000.slice/app.slice/heap.service");
	CU_ASSERT_EQUAL(r.limit_bytes, MIB(512));
	CU_ASSERT_EQUAL(r.available_bytes, MIB(512 - 128 + 64));
	CU_ASSERT_STRING_EQUAL(r.key, "memory.high");
	r = read_level(&h, "/user.slice/user-1000.slice");
	CU_ASSERT_EQUAL(r.limit_bytes, GIB(1));
	CU_ASSERT_EQUAL(r.available_bytes, MIB(1024 - 768 + 64));
	CU_ASSERT_STRING_EQUAL(r.key, "memory.max");
	CU_ASSERT_EQUAL(read_level(&h, "/user.slice").limit_bytes,
			HOSTMEM_NO_LIMIT);
	CU_ASSERT_EQUAL(read_level(&h, "/").limit_bytes, HOSTMEM_NO_LIMIT);
	hostmem_fini(&h);
}

static void version_2_is_read_from_within_a_container(void)
{
	struct hostmem_reading r;
	struct hostmem h;

	T_REQUIRE(hostmem_init(&h, tree("v2-container")) == 0);
	r = read_level(&h, "/");
	CU_ASSERT_EQUAL(r.limit_bytes, MIB(256));
	CU_ASSERT_EQUAL(r.available_bytes, MIB(256 - 100 + 64));
	hostmem_fini(&h);
}

static void version_1_is_read_up_to_the_root(void)
{
	struct hostmem_reading r;
	struct hostmem h;

	T_REQUIRE(hostmem_init(&h, tree("v1")) == 0);
	r = read_level(&h, "/outer");
	CU_ASSERT_EQUAL(r.limit_bytes, MIB(512));
	CU_ASSERT_EQUAL(r.available_bytes, MIB(512 - 384 + 32));
	CU_ASSERT_STRING_EQUAL(r.key, "memory.limit_in_bytes");
	r = read_level(&h, "/outer/inner");
	CU_ASSERT_EQUAL(r.available_bytes, MIB(1024 - 100 + 32));
	hostmem_fini(&h);
}

static void version_1_tells_of_a_limit_above_what_is_seen(void)
{
	struct hostmem_reading r;
	struct hostmem h;

	T_REQUIRE(hostmem_init(&h, tree("v1-container")) == 0);
	r = read_level(&h, "/");
	CU_ASSERT_EQUAL(r.limit_bytes, MIB(384));
	CU_ASSERT_EQUAL(r.available_bytes, MIB(384 - 128 + 32));
	CU_ASSERT_STRING_EQUAL(r.key, "hierarchical_memory_limit");
	hostmem_fini(&h);
}

static void without_proc_there_is_nothing(void)
{
	struct hostmem h;
	struct budget *b = NULL;

	CU_ASSERT_EQUAL(hostmem_init(&h, "/nonexistent/"), -ENOENT);
	CU_ASSERT_EQUAL(budget_new(&b, 0, "/nonexistent/"), -ENOENT);
	CU_ASSERT_PTR_NULL(b);
}

static void lack_of_memory_is_an_error_each_time(void)
{
	struct hostmem h;
	int r = -1;

	FAIL_MALLOC_EACH({
		r = hostmem_init(&h, tree("v2"));
		/* A text that cannot be read for lack of memory counts as not
		 * there: its levels are left out. */
		CU_ASSERT_TRUE(r == 0 || r == -ENOMEM || r == -ENOENT);
		if (!r)
			hostmem_fini(&h);
	});
	CU_ASSERT_EQUAL(r, 0);
}

static void the_tightest_level_refuses_by_name(void)
{
	struct budget *b = NULL;

	T_REQUIRE(budget_new(&b, 0, tree("v2")) == 0);
	/* 320 MiB are left in user-1000.slice, less 51.2 MiB of headroom; 80 %
	 * of 320 MiB is less: 256 MiB. */
	CU_ASSERT_EQUAL(budget_limit_bytes(b), MIB(256));
	CU_ASSERT_EQUAL(budget_reserve(b, BUDGET_HOST, MIB(256) + 1, error),
			BACKING_E_BUDGET);
	CU_ASSERT_PTR_NOT_NULL(
		strstr(error, "memory cgroup /user.slice/user-1000.slice:"));
	CU_ASSERT_PTR_NOT_NULL(strstr(error, "memory.max"));
	CU_ASSERT_PTR_NOT_NULL(strstr(error, "1073741824"));
	CU_ASSERT_PTR_NOT_NULL(strstr(error, "[backing] budget"));
	CU_ASSERT_EQUAL(budget_n_refusals(b), 1);
	CU_ASSERT_EQUAL(budget_reserve(b, BUDGET_HOST, MIB(200), error), 0);
	/* What is promised is not promised twice. */
	CU_ASSERT_EQUAL(budget_reserve(b, BUDGET_HOST, MIB(57), error),
			BACKING_E_BUDGET);
	CU_ASSERT_EQUAL(budget_reserve(b, BUDGET_HOST, MIB(56), error), 0);
	budget_unreserve(b, MIB(56));
	/* Chunks see no "auto", but what others have in hand. */
	CU_ASSERT_EQUAL(budget_chunk_begin(b, BUDGET_HOST, MIB(4), error), 0);
	budget_chunk_end(b, MIB(4), true);
	CU_ASSERT_EQUAL(budget_resident_bytes(b), MIB(4));
	CU_ASSERT_EQUAL(budget_chunk_begin(b, BUDGET_HOST, MIB(4), error), 0);
	budget_chunk_end(b, MIB(4), false);
	CU_ASSERT_EQUAL(budget_resident_bytes(b), MIB(4));
	budget_unreserve(b, MIB(196));
	budget_sub_resident(b, MIB(4));
	CU_ASSERT_EQUAL(budget_resident_bytes(b), 0);
	b = budget_free(b);
}

static void a_configured_budget_holds_and_is_named(void)
{
	struct budget *b = NULL;

	T_REQUIRE(budget_new(&b, MIB(100), tree("v2")) == 0);
	CU_ASSERT_EQUAL(budget_limit_bytes(b), MIB(100));
	budget_add_resident(b, MIB(60));
	CU_ASSERT_EQUAL(budget_reserve(b, BUDGET_HOST, MIB(41), error),
			BACKING_E_BUDGET);
	CU_ASSERT_PTR_NOT_NULL(strstr(error, "104857600"));
	CU_ASSERT_PTR_NOT_NULL(strstr(error, "62914560"));
	CU_ASSERT_PTR_NOT_NULL(strstr(error, "[backing] budget"));
	CU_ASSERT_EQUAL(budget_reserve(b, BUDGET_HOST, MIB(40), error), 0);
	/* Lowered below what is in use: nothing more, and no wrap-around. */
	budget_set_limit(b, MIB(10));
	CU_ASSERT_EQUAL(budget_reserve(b, BUDGET_HUGETLB, 1, error),
			BACKING_E_BUDGET);
	budget_set_limit(b, UINT64_MAX);
	/* The host refuses still; reserved pages are not the host's. */
	CU_ASSERT_EQUAL(budget_reserve(b, BUDGET_HOST, GIB(8), error),
			BACKING_E_BUDGET);
	CU_ASSERT_EQUAL(budget_reserve(b, BUDGET_HUGETLB, GIB(8), error), 0);
	CU_ASSERT_EQUAL(budget_chunk_begin(b, BUDGET_HUGETLB, GIB(8), error),
			0);
	b = budget_free(b);
}

/* A tree of our own, to change while it is read. */
static char dir[] = "/tmp/dmaheap-budget-XXXXXX";

static void write_meminfo(unsigned int available_mib)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/proc/meminfo", dir);
	f = fopen(path, "w");
	T_REQUIRE(f != NULL);
	fprintf(f, "MemTotal: 1048576 kB\nMemAvailable: %u kB\n",
		available_mib * 1024);
	fclose(f);
}

static void what_is_left_is_read_again_before_each_chunk(void)
{
	struct budget *b = NULL;
	char path[128];

	T_REQUIRE(mkdtemp(dir) != NULL);
	snprintf(path, sizeof(path), "%s/proc", dir);
	T_REQUIRE(mkdir(path, 0700) == 0);
	write_meminfo(800);
	snprintf(path, sizeof(path), "%s/", dir);
	T_REQUIRE(budget_new(&b, 0, path) == 0);
	CU_ASSERT_EQUAL(budget_reserve(b, BUDGET_HOST, MIB(600), error), 0);
	CU_ASSERT_EQUAL(budget_chunk_begin(b, BUDGET_HOST, MIB(4), error), 0);
	/* A neighbour has taken it: 51.2 MiB of headroom stay. */
	write_meminfo(58);
	CU_ASSERT_EQUAL(budget_chunk_begin(b, BUDGET_HOST, MIB(4), error),
			BACKING_E_BUDGET);
	CU_ASSERT_PTR_NOT_NULL(strstr(error, "host memory"));
	CU_ASSERT_PTR_NOT_NULL(strstr(error, "MemAvailable"));
	budget_chunk_end(b, MIB(4), true);
	CU_ASSERT_EQUAL(budget_chunk_begin(b, BUDGET_HOST, MIB(4), error), 0);
	/* Vanished files: refused, since nothing is known. */
	snprintf(path, sizeof(path), "%s/proc/meminfo", dir);
	unlink(path);
	CU_ASSERT_EQUAL(budget_chunk_begin(b, BUDGET_HOST, MIB(4), error),
			BACKING_E_BUDGET);
	CU_ASSERT_PTR_NOT_NULL(strstr(error, "/proc/meminfo"));
	b = budget_free(b);
	snprintf(path, sizeof(path), "%s/proc", dir);
	rmdir(path);
	rmdir(dir);
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"version 2 is read up to the root",
		 version_2_is_read_up_to_the_root},
		{"version 2 is read from within a container",
		 version_2_is_read_from_within_a_container},
		{"version 1 is read up to the root",
		 version_1_is_read_up_to_the_root},
		{"version 1 tells of a limit above what is seen",
		 version_1_tells_of_a_limit_above_what_is_seen},
		{"without /proc there is nothing",
		 without_proc_there_is_nothing},
		{"lack of memory is an error each time",
		 lack_of_memory_is_an_error_each_time},
		{"the tightest level refuses, by name",
		 the_tightest_level_refuses_by_name},
		{"a configured budget holds and is named",
		 a_configured_budget_holds_and_is_named},
		{"what is left is read again before each chunk",
		 what_is_left_is_read_again_before_each_chunk},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "budget", .pTests = tests},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
