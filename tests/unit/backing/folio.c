/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backing/fill.h"
#include "backing/hugetlb.h"
#include "backing/probe.h"
#include "backing/selftest.h"
#include "backing/thp.h"
#include "harness.h"
#include "support/faults.h"
#include "support/settings.h"

/*
 * The orders of real folios, read from the kernel; as root only. The switches
 * are set by manage_thp and must be as at the beginning of the program after
 * every test: what an earlier test leaves behind must not count as the state
 * before a later one.
 */
#define MASK_840 (1u << 8 | 1u << 4 | 1u)

static char state_file[64];

#define SWITCH_PATH_BYTES 128u
#define SWITCHES_BYTES    2048u

static char at_first[SWITCHES_BYTES]; /* of switches(), before any test */

static void switch_path(unsigned int order, char ret[SWITCH_PATH_BYTES])
{
	snprintf(ret, SWITCH_PATH_BYTES,
		 "/sys/kernel/mm/transparent_hugepage/"
		 "hugepages-%lukB/shmem_enabled",
		 (unsigned long)(thp_bytes(order) / 1024));
}

static void switches(char ret[SWITCHES_BYTES])
{
	size_t len = 0;

	ret[0] = '\0';
	for (unsigned int order = 1; order <= THP_ORDER_MAX; order++) {
		char path[SWITCH_PATH_BYTES], line[128] = "";
		FILE *f;

		switch_path(order, path);
		f = fopen(path, "r");
		if (!f)
			continue;
		if (!fgets(line, sizeof(line), f))
			abort();
		fclose(f);
		len += (size_t)snprintf(ret + len, SWITCHES_BYTES - len,
					"%u %s", order, line);
	}
}

/* What a broken test or daemon leaves behind is not left to the host. */
static void guard_switches(struct settings_guard *ret)
{
	static char paths[THP_ORDER_MAX][SWITCH_PATH_BYTES];
	const char *list[THP_ORDER_MAX + 1] = {NULL};
	unsigned int n = 0;

	for (unsigned int order = 1; order <= THP_ORDER_MAX; order++) {
		switch_path(order, paths[n]);
		list[n] = paths[n];
		if (access(paths[n], F_OK) == 0)
			n++;
	}
	list[n] = NULL;
	settings_guard(ret, list);
}

static void expect_switches_as_at_first(void)
{
	char now[SWITCHES_BYTES];

	switches(now);
	CU_ASSERT_STRING_EQUAL(at_first, now);
}

static void start(struct harness *h, enum backing_kind mode, uint32_t orders)
{
	struct backing_params params;

	harness_params(h, &params);
	params.mode = mode;
	params.orders = orders;
	params.manage_thp = true;
	params.thp_state_file = state_file;
	harness_start(h, &params);
}

static void expect_folios(int fd, uint64_t bytes, unsigned int order,
			  uint32_t n)
{
	uint32_t counts[11] = {0};
	void *p = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);

	T_REQUIRE(p != MAP_FAILED);
	T_REQUIRE(madvise(p, bytes, MADV_POPULATE_READ) == 0);
	CU_ASSERT_EQUAL(selftest_folio_orders(p, bytes, counts), 0);
	CU_ASSERT_EQUAL(counts[order], n);
	if (counts[order] != n)
		for (unsigned int i = 0; i < 11; i++)
			printf("order %u: %u\n", i, counts[i]);
	munmap(p, bytes);
}

/* One 10 MiB buffer of blocks of @order. */
static void folios_of(unsigned int order, uint32_t n)
{
	struct backing_buffer *bb;
	struct harness h;
	int fd;

	start(&h, BACKING_FOLIO, 1u << order | 1u);
	T_REQUIRE(harness_create(&h, MIB(10), order, &bb) == 0);
	harness_wait(&h, &h.n_created, 1);
	T_REQUIRE(h.r == 0);
	CU_ASSERT_EQUAL(h.info.got, BACKING_FOLIO);
	CU_ASSERT_STRING_EQUAL(h.info.reason, "");
	fd = harness_open(&h, bb, O_RDWR);
	CU_ASSERT_TRUE(harness_is_zero(fd, MIB(10)));
	expect_folios(fd, MIB(10), order, n);
	/* And the same after the next use. */
	memset(h.error, 0, sizeof(h.error));
	CU_ASSERT_EQUAL(pwrite(fd, "x", 1, MIB(3)), 1);
	close(fd);
	harness_wait(&h, &h.n_released, 1);
	CU_ASSERT_EQUAL(harness_recycle(&h, bb), BACKING_PARKABLE);
	fd = harness_open(&h, bb, O_RDWR);
	CU_ASSERT_TRUE(harness_is_zero(fd, MIB(10)));
	expect_folios(fd, MIB(10), order, n);
	close(fd);
	harness_stop(&h);
}

static void ten_mib_are_ten_folios_of_order_8(void)
{
	folios_of(8, 10);
}

static void ten_mib_are_160_folios_of_order_4(void)
{
	folios_of(4, 160);
}

static void ten_mib_are_2560_pages(void)
{
	folios_of(0, 2560);
}

static void ten_mib_are_five_folios_of_order_9(void)
{
	folios_of(9, 5);
}

static void a_mixed_composition_is_made_run_by_run(void)
{
	static const struct backing_run runs[] = {{8, 3}, {4, 17}, {0, 5}};
	uint64_t bytes = 3 * MIB(1) + 17 * KIB(64) + 5 * KIB(4);
	uint32_t counts[11] = {0};
	struct backing_spec spec = {.len_bytes = bytes,
				    .uid = 1000,
				    .page_size_bytes = 4096,
				    .heap = "system",
				    .runs = runs,
				    .n_runs = 3};
	struct backing_buffer *bb;
	struct harness h;
	void *p;

	start(&h, BACKING_AUTO, MASK_840);
	T_REQUIRE(harness_create_spec(&h, &spec, &bb) == 0);
	harness_wait(&h, &h.n_created, 1);
	T_REQUIRE(h.r == 0);
	p = mmap(NULL, bytes, PROT_READ, MAP_SHARED, backing_buffer_fd(bb), 0);
	T_REQUIRE(p != MAP_FAILED);
	T_REQUIRE(madvise(p, bytes, MADV_POPULATE_READ) == 0);
	CU_ASSERT_EQUAL(selftest_folio_orders(p, bytes, counts), 0);
	CU_ASSERT_EQUAL(counts[8], 3);
	CU_ASSERT_EQUAL(counts[4], 17);
	CU_ASSERT_EQUAL(counts[0], 5);
	munmap(p, bytes);
	harness_stop(&h);
}

static void collapse_gives_folios_of_order_9(void)
{
	struct harness h;
	struct backing_buffer *bb;

	harness_start(&h, NULL);
	bb = harness_make(&h, MIB(10));
	T_REQUIRE(bb != NULL);
	CU_ASSERT_EQUAL(h.info.got, BACKING_COLLAPSE);
	expect_folios(backing_buffer_fd(bb), MIB(10), 9, 5);
	harness_stop(&h);
}

#define THP_DIR     "/sys/kernel/mm/transparent_hugepage/"
#define SWITCH_ALL  THP_DIR "shmem_enabled"
#define SWITCH_2MIB THP_DIR "hugepages-2048kB/shmem_enabled"

static void expect_collapse(bool manage_thp, enum backing_kind got,
			    const char *reason)
{
	struct backing_params params;
	struct backing_stats stats;
	struct harness h;

	harness_params(&h, &params);
	params.mode = BACKING_COLLAPSE;
	params.manage_thp = manage_thp;
	params.thp_state_file = state_file;
	harness_start(&h, &params);
	CU_ASSERT_PTR_NOT_NULL(harness_make(&h, MIB(4)));
	CU_ASSERT_EQUAL(h.info.got, got);
	backing_get_stats(h.b, &stats);
	if (h.info.got != got)
		printf("\n  %s; %s", h.info.reason, stats.reason);
	CU_ASSERT_PTR_NOT_NULL(strstr(stats.reason, reason));
	harness_stop(&h);
}

static const char *collapse_command(void)
{
	static struct probe_fact facts[PROBE_FACTS_MAX];
	unsigned int n = backing_probe(facts, MASK_840);

	for (unsigned int i = 0; i < n; i++)
		if (strcmp(facts[i].name, "collapse") == 0)
			return facts[i].command;
	return "";
}

static void collapse_works_unless_a_switch_forbids_it(void)
{
	static const struct {
		const char *all, *two_mib;
		const char *reason, *command; /* NULL: it works */
	} cases[] = {
		{"never", "inherit", NULL, NULL},
		{"never", "advise", NULL, NULL},
		{"never", "within_size", NULL, NULL},
		{"never", "always", NULL, NULL},
		{"force", "inherit", NULL, NULL},
		{"never", "never", "2048kB/shmem_enabled is never",
		 "echo inherit > " SWITCH_2MIB},
		{"deny", "inherit", "shmem_enabled is deny",
		 "echo never > " SWITCH_ALL},
	};
	struct settings_guard guard;

	settings_guard(&guard,
		       (const char *const[]){SWITCH_ALL, SWITCH_2MIB, NULL});
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CU_ASSERT_TRUE(settings_write(SWITCH_ALL, "never"));
		CU_ASSERT_TRUE(settings_write(SWITCH_2MIB, cases[i].two_mib));
		CU_ASSERT_TRUE(settings_write(SWITCH_ALL, cases[i].all));
		if (!cases[i].reason) {
			expect_collapse(false, BACKING_COLLAPSE, "");
			continue;
		}
		expect_collapse(false, BACKING_PLAIN, cases[i].reason);
		CU_ASSERT_STRING_EQUAL(collapse_command(), cases[i].command);
	}
	settings_restore(&guard);
}

/* Only between the two writes can the kernel be asked for this. */
static void a_switch_that_force_makes_useless_is_named(void)
{
	struct settings_guard guard;

	settings_guard(&guard,
		       (const char *const[]){SWITCH_2MIB, SWITCH_ALL, NULL});
	CU_ASSERT_TRUE(settings_write(SWITCH_2MIB, "inherit"));
	CU_ASSERT_TRUE(settings_write(SWITCH_ALL, "force"));
	if (settings_write(SWITCH_2MIB, "advise"))
		expect_collapse(false, BACKING_PLAIN, "shmem_enabled is force");
	settings_restore(&guard);
}

static void a_process_without_huge_pages_is_told_so(void)
{
	T_REQUIRE(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) == 0);
	expect_collapse(false, BACKING_PLAIN, "PR_SET_THP_DISABLE");
	T_REQUIRE(prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0) == 0);
}

static void manage_thp_opens_the_switch_that_collapse_needs(void)
{
	struct settings_guard guard;

	settings_guard(&guard, (const char *const[]){SWITCH_2MIB, NULL});
	CU_ASSERT_TRUE(settings_write(SWITCH_2MIB, "never"));
	expect_collapse(true, BACKING_COLLAPSE, "");
	/* And it is back. */
	expect_collapse(false, BACKING_PLAIN, "is never");
	settings_restore(&guard);
}

static void a_switch_changed_while_it_runs_is_the_reason(void)
{
	struct settings_guard guard;
	struct harness h;

	settings_guard(&guard, (const char *const[]){SWITCH_2MIB, NULL});
	harness_start(&h, NULL);
	CU_ASSERT_TRUE(settings_write(SWITCH_2MIB, "never"));
	CU_ASSERT_PTR_NOT_NULL(harness_make(&h, MIB(10)));
	CU_ASSERT_EQUAL(h.info.got, BACKING_PLAIN);
	CU_ASSERT_PTR_NOT_NULL(strstr(h.info.reason, "is never"));
	harness_stop(&h);
	settings_restore(&guard);
}

/* Then the kernel makes 2 MiB for the first page of any file. */
static void what_lies_behind_the_end_is_given_back(void)
{
	static const char *const settings[][2] = {{SWITCH_2MIB, "always"},
						  {SWITCH_ALL, "force"}};
	static const uint64_t sizes[] = {KIB(4), KIB(60), MIB(2) + KIB(4)};
	struct settings_guard guard;

	settings_guard(&guard,
		       (const char *const[]){SWITCH_ALL, SWITCH_2MIB, NULL});
	for (size_t i = 0; i < 2 * ARRAY_SIZE(sizes); i++) {
		uint64_t bytes = sizes[i / 2];
		struct backing_buffer *bb;
		struct harness h;
		struct stat st;

		CU_ASSERT_TRUE(settings_write(SWITCH_2MIB, "inherit"));
		CU_ASSERT_TRUE(settings_write(SWITCH_ALL, "never"));
		CU_ASSERT_TRUE(
			settings_write(settings[i % 2][0], settings[i % 2][1]));
		harness_start(&h, NULL);
		bb = harness_make(&h, bytes);
		T_REQUIRE(bb != NULL);
		CU_ASSERT_EQUAL(fstat(backing_buffer_fd(bb), &st), 0);
		CU_ASSERT_EQUAL((uint64_t)st.st_blocks * 512, bytes);
		CU_ASSERT_TRUE(harness_is_zero(backing_buffer_fd(bb), bytes));
		harness_stop(&h);
	}
	settings_restore(&guard);
}

static void a_parked_buffer_of_small_pages_is_collapsed(void)
{
	struct harness h;
	struct backing_buffer *bb;
	int fd;

	harness_start(&h, NULL);
	/* No 2 MiB block at first: refused as the kernel would. */
	faults_arm(FAULT_MADVISE, 0, 100, EAGAIN);
	bb = harness_make(&h, MIB(10));
	faults_clear();
	T_REQUIRE(bb != NULL);
	expect_folios(backing_buffer_fd(bb), MIB(10), 0, 2560);
	fd = harness_open(&h, bb, O_RDWR);
	close(fd);
	harness_wait(&h, &h.n_released, 1);
	CU_ASSERT_EQUAL(harness_recycle(&h, bb), BACKING_PARKABLE);
	CU_ASSERT_EQUAL(backing_buffer_kind(bb), BACKING_COLLAPSE);
	expect_folios(backing_buffer_fd(bb), MIB(10), 9, 5);
	harness_stop(&h);
}

static void manage_thp_restores_the_switches(void)
{
	char during[SWITCHES_BYTES];
	struct harness h;

	start(&h, BACKING_AUTO, MASK_840 | 1u << 9);
	switches(during);
	CU_ASSERT_STRING_NOT_EQUAL(at_first, during);
	CU_ASSERT_EQUAL(access(state_file, F_OK), 0);
	backing_set_orders(h.b, 1u << 5);
	CU_ASSERT_TRUE(thp_enabled_orders() & (1u << 5));
	harness_stop(&h);
	expect_switches_as_at_first();
	CU_ASSERT_NOT_EQUAL(access(state_file, F_OK), 0);
}

static void after_a_crash_the_next_daemon_restores(void)
{
	char after[SWITCHES_BYTES];
	struct harness h;
	int status;
	pid_t pid;

	pid = fork();
	if (pid == 0) {
		struct thp *thp = NULL;
		char reason[THP_REASON_BYTES];

		if (thp_new(&thp, state_file, reason) == 0)
			(void)thp_enable(thp, MASK_840);
		raise(SIGKILL);
	}
	waitpid(pid, &status, 0);
	switches(after);
	CU_ASSERT_STRING_NOT_EQUAL(at_first, after);
	CU_ASSERT_EQUAL(access(state_file, F_OK), 0);
	start(&h, BACKING_AUTO, MASK_840);
	harness_stop(&h);
	expect_switches_as_at_first();
}

static void two_daemons_do_not_share_the_switches(void)
{
	struct thp *first = NULL, *second = NULL;
	char reason[THP_REASON_BYTES] = "";

	T_REQUIRE(thp_new(&first, state_file, reason) == 0);
	CU_ASSERT_EQUAL(thp_new(&second, state_file, reason), -EBUSY);
	CU_ASSERT_PTR_NOT_NULL(strstr(reason, "another daemon"));
	CU_ASSERT_EQUAL(thp_new(&second, "/nonexistent/a/b", reason), -ENOENT);
	CU_ASSERT_PTR_NOT_NULL(strstr(reason, "state file"));
	first = thp_free(first);
}

static void a_switch_changed_by_others_is_left_alone(void)
{
	static const char path[] = "/sys/kernel/mm/transparent_hugepage/"
				   "hugepages-64kB/shmem_enabled";
	char reason[THP_REASON_BYTES];
	struct settings_guard guard;
	struct thp *thp = NULL;

	settings_guard(&guard, (const char *const[]){path, NULL});
	T_REQUIRE(thp_new(&thp, state_file, reason) == 0);
	(void)thp_enable(thp, 1u << 4);
	CU_ASSERT_TRUE(settings_write(path, "within_size"));
	thp = thp_free(thp);
	CU_ASSERT_TRUE(thp_enabled_orders() & (1u << 4));
	settings_restore(&guard);
	expect_switches_as_at_first();
}

static void hugetlb_takes_reserved_pages_or_says_why_not(void)
{
	static const char path[] = "/proc/sys/vm/nr_hugepages";
	unsigned long before = hugetlb_n_pages();
	struct settings_guard guard;
	struct backing_params params;
	struct backing_buffer *bb;
	struct harness h;
	char wanted[32];
	int fd;

	settings_guard(&guard, (const char *const[]){path, NULL});
	snprintf(wanted, sizeof(wanted), "%lu", before + 4);
	(void)settings_write(path, wanted);
	if (hugetlb_n_pages() < before + 4) {
		settings_restore(&guard);
		printf(" (no pages to reserve: not tried) ");
		return;
	}
	harness_params(&h, &params);
	params.mode = BACKING_HUGETLB;
	harness_start(&h, &params);
	bb = harness_make(&h, MIB(4));
	T_REQUIRE(bb != NULL);
	CU_ASSERT_EQUAL(h.info.got, BACKING_HUGETLB);
	fd = harness_open(&h, bb, O_RDWR);
	CU_ASSERT_TRUE(harness_is_zero(fd, MIB(4)));
	close(fd);
	harness_wait(&h, &h.n_released, 1);
	CU_ASSERT_EQUAL(harness_recycle(&h, bb), BACKING_PARKABLE);
	fd = harness_open(&h, bb, O_RDWR);
	CU_ASSERT_TRUE(harness_is_zero(fd, MIB(4)));
	/* Not whole pages, and more than there are. */
	CU_ASSERT_PTR_NOT_NULL(harness_make(&h, MIB(3)));
	CU_ASSERT_EQUAL(h.info.got, BACKING_COLLAPSE);
	CU_ASSERT_PTR_NOT_NULL(strstr(h.info.reason, "multiple of 2 MiB"));
	CU_ASSERT_PTR_NOT_NULL(harness_make(&h, MIB(64)));
	CU_ASSERT_EQUAL(h.info.got, BACKING_COLLAPSE);
	CU_ASSERT_PTR_NOT_NULL(strstr(h.info.reason, "too few"));
	/* Taken between the check and the mapping. */
	faults_arm(FAULT_MMAP, 0, 1, ENOMEM);
	CU_ASSERT_PTR_NOT_NULL(harness_make(&h, MIB(2)));
	CU_ASSERT_EQUAL(h.info.got, BACKING_COLLAPSE);
	CU_ASSERT_PTR_NOT_NULL(strstr(h.info.reason, "taken meanwhile"));
	faults_clear();
	close(fd);
	harness_stop(&h);
	settings_restore(&guard);
	CU_ASSERT_EQUAL(hugetlb_n_pages(), before);
}

/* As auto and as asked for: the next best, and why. */
static void what_does_not_work_is_replaced_with_the_reason(void)
{
	struct backing_params params;
	struct backing_stats stats;
	struct harness h;

	harness_params(&h, &params);
	params.mode = BACKING_AUTO;
	harness_start(&h, &params);
	backing_get_stats(h.b, &stats);
	if (!(thp_enabled_orders() & (1u << 8))) {
		CU_ASSERT_EQUAL(stats.mode, BACKING_COLLAPSE);
		CU_ASSERT_PTR_NOT_NULL(strstr(stats.reason, "shmem_enabled"));
	}
	harness_stop(&h);
	params.mode = BACKING_COLLAPSE;
	faults_arm(FAULT_MADVISE, 0, 2, EINVAL);
	harness_start(&h, &params);
	faults_clear();
	backing_get_stats(h.b, &stats);
	CU_ASSERT_EQUAL(stats.mode, BACKING_PLAIN);
	CU_ASSERT_PTR_NOT_NULL(strstr(stats.reason, "MADV_COLLAPSE"));
	CU_ASSERT_PTR_NOT_NULL(harness_make(&h, MIB(4)));
	CU_ASSERT_EQUAL(h.info.got, BACKING_PLAIN);
	harness_stop(&h);
	params.mode = BACKING_PLAIN;
	harness_start(&h, &params);
	backing_get_stats(h.b, &stats);
	CU_ASSERT_EQUAL(stats.mode, BACKING_PLAIN);
	CU_ASSERT_STRING_EQUAL(stats.reason, "");
	harness_stop(&h);
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"10 MiB are ten folios of order 8",
		 ten_mib_are_ten_folios_of_order_8},
		{"10 MiB are 160 folios of order 4",
		 ten_mib_are_160_folios_of_order_4},
		{"10 MiB are 2560 pages", ten_mib_are_2560_pages},
		{"10 MiB are five folios of order 9",
		 ten_mib_are_five_folios_of_order_9},
		{"a mixed composition is made run by run",
		 a_mixed_composition_is_made_run_by_run},
		{"collapse gives folios of order 9",
		 collapse_gives_folios_of_order_9},
		{"collapse works unless a switch forbids it",
		 collapse_works_unless_a_switch_forbids_it},
		{"a switch that force makes useless is named",
		 a_switch_that_force_makes_useless_is_named},
		{"a process without huge pages is told so",
		 a_process_without_huge_pages_is_told_so},
		{"manage_thp opens the switch that collapse needs",
		 manage_thp_opens_the_switch_that_collapse_needs},
		{"a switch changed while it runs is the reason",
		 a_switch_changed_while_it_runs_is_the_reason},
		{"what lies behind the end is given back",
		 what_lies_behind_the_end_is_given_back},
		{"a parked buffer of small pages is collapsed",
		 a_parked_buffer_of_small_pages_is_collapsed},
		{"manage_thp restores the switches",
		 manage_thp_restores_the_switches},
		{"after a crash the next daemon restores",
		 after_a_crash_the_next_daemon_restores},
		{"two daemons do not share the switches",
		 two_daemons_do_not_share_the_switches},
		{"a switch changed by others is left alone",
		 a_switch_changed_by_others_is_left_alone},
		{"hugetlb takes reserved pages or says why not",
		 hugetlb_takes_reserved_pages_or_says_why_not},
		{"what does not work is replaced, with the reason",
		 what_does_not_work_is_replaced_with_the_reason},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "folio",
		 .pTearDownFunc = expect_switches_as_at_first,
		 .pTests = tests},
		CU_SUITE_INFO_NULL,
	};
	struct settings_guard guard;
	int lock, status;

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
	snprintf(state_file, sizeof(state_file), "/run/dmaheap-test-%d/thp",
		 (int)getpid());
	switches(at_first);
	guard_switches(&guard);
	status = t_main(argc, argv, suites);
	settings_restore(&guard);
	*strrchr(state_file, '/') = '\0';
	rmdir(state_file);
	return status;
}
