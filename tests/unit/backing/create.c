/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "harness.h"
#include "support/fail_malloc.h"
#include "support/faults.h"

static struct harness h;

static void setup(void)
{
	harness_start(&h, NULL);
}

static void teardown(void)
{
	harness_stop(&h);
}

/* After a failure nothing may be left, and the next attempt must work. */
static void expect_clean(unsigned int n_fds)
{
	struct backing_buffer *bb;
	struct backing_stats stats;

	faults_clear();
	backing_get_stats(h.b, &stats);
	CU_ASSERT_EQUAL(stats.resident_bytes, 0);
	CU_ASSERT_EQUAL(stats.n_buffers, 0);
	CU_ASSERT_EQUAL(harness_n_fds(), n_fds);
	bb = harness_make(&h, MIB(5));
	CU_ASSERT_PTR_NOT_NULL(bb);
	if (bb)
		backing_drop(h.b, bb);
	harness_settle(&h);
}

static void each_failing_call_undoes_everything(void)
{
	static const struct {
		enum fault fault;
		unsigned int skip;
		int err;
		int r;
		const char *text;
	} cases[] = {
		{FAULT_MEMFD_CREATE, 0, EMFILE, BACKING_E_FDS, "RLIMIT_NOFILE"},
		{FAULT_MEMFD_CREATE, 0, ENFILE, BACKING_E_FDS, "descriptor"},
		{FAULT_MEMFD_CREATE, 0, ENOMEM, BACKING_E_BUDGET, "5242880"},
		{FAULT_FTRUNCATE, 0, EFBIG, BACKING_E_FILE_SIZE,
		 "RLIMIT_FSIZE"},
		{FAULT_FTRUNCATE, 0, EIO, -EIO, "failed"},
		{FAULT_PWRITEV, 0, ENOSPC, BACKING_E_BUDGET, "overcommit"},
		{FAULT_PWRITEV, 2, EFAULT, BACKING_E_BUDGET, "overcommit"},
		{FAULT_PWRITEV, 2, EIO, -EIO, "failed"},
		{FAULT_MMAP, 0, ENOMEM, 0, ""}, /* then without 2 MiB folios */
		{FAULT_MADVISE, 1, EAGAIN, 0, ""}, /* after MADV_HUGEPAGE */
	};
	unsigned int n_fds = harness_n_fds();

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct backing_buffer *bb;

		faults_arm(cases[i].fault, cases[i].skip, 1, cases[i].err);
		bb = harness_make(&h, MIB(5));
		CU_ASSERT_EQUAL(h.r, cases[i].r);
		CU_ASSERT_EQUAL(faults_hits(cases[i].fault), 1);
		CU_ASSERT_PTR_NOT_NULL(strstr(h.error, cases[i].text));
		if (bb) {
			CU_ASSERT_EQUAL(h.info.got, BACKING_PLAIN);
			CU_ASSERT_PTR_NOT_NULL(strstr(h.info.reason, "2 MiB"));
			backing_drop(h.b, bb);
			harness_settle(&h);
		}
		expect_clean(n_fds);
	}
}

static void a_buffer_without_attribute_or_watch_works_still(void)
{
	struct backing_stats stats;
	struct backing_buffer *bb;
	int fd;

	faults_arm(FAULT_FSETXATTR, 0, 1, EOPNOTSUPP);
	faults_arm(FAULT_INOTIFY_ADD_WATCH, 0, 1, ENOSPC);
	bb = harness_make(&h, KIB(64));
	T_REQUIRE(bb != NULL);
	CU_ASSERT_EQUAL(faults_hits(FAULT_FSETXATTR), 1);
	backing_get_stats(h.b, &stats);
	if (stats.lifetime == BACKING_LIFETIME_EXACT)
		CU_ASSERT_EQUAL(faults_hits(FAULT_INOTIFY_ADD_WATCH), 1);
	fd = harness_open(&h, bb, O_RDWR);
	h.n_released = 0;
	close(fd);
	harness_wait(&h, &h.n_released, 1);
	CU_ASSERT_EQUAL(harness_recycle(&h, bb), BACKING_PARKABLE);
	backing_drop(h.b, bb);
	faults_clear();
}

static void at_the_descriptor_limit_a_sentence_names_it(void)
{
	struct rlimit before, tight;
	struct backing_buffer *bb, *made[64];
	unsigned int n = 0;

	T_REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
	tight = before;
	tight.rlim_cur = harness_n_fds() + 10;
	T_REQUIRE(setrlimit(RLIMIT_NOFILE, &tight) == 0);
	while (n < 64 && (bb = harness_make(&h, KIB(4))) != NULL)
		made[n++] = bb;
	CU_ASSERT_TRUE(n > 0 && n < 64);
	CU_ASSERT_EQUAL(h.r, BACKING_E_FDS);
	CU_ASSERT_PTR_NOT_NULL(strstr(h.error, "RLIMIT_NOFILE"));
	/* Opening needs one too; the buffer stays good. */
	if (n > 0) {
		int fds[64], fd = -1, r = 0;
		unsigned int k = 0;

		while (k < 64 && !(r = backing_open(h.b, made[0], O_RDWR, &fd)))
			fds[k++] = fd;
		CU_ASSERT_EQUAL(r, BACKING_E_FDS);
		h.n_released = 0;
		while (k > 0)
			close(fds[--k]);
	}
	T_REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
	harness_wait(&h, &h.n_released, 1);
	while (n > 0)
		backing_drop(h.b, made[--n]);
	harness_settle(&h);
}

static void a_file_size_limit_refuses_and_does_not_kill(void)
{
	struct rlimit before, tight;

	T_REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
	tight = before;
	tight.rlim_cur = MIB(1);
	T_REQUIRE(setrlimit(RLIMIT_FSIZE, &tight) == 0);
	CU_ASSERT_PTR_NULL(harness_make(&h, MIB(2)));
	CU_ASSERT_EQUAL(h.r, BACKING_E_FILE_SIZE);
	CU_ASSERT_PTR_NOT_NULL(strstr(h.error, "1048576"));
	T_REQUIRE(setrlimit(RLIMIT_FSIZE, &before) == 0);
}

static void a_small_budget_refuses_until_parked_memory_is_dropped(void)
{
	struct backing_buffer *first, *second;

	backing_set_limits(h.b, MIB(16), true);
	first = harness_make(&h, MIB(12));
	T_REQUIRE(first != NULL);
	h.n_pressure = 0;
	CU_ASSERT_PTR_NULL(harness_make(&h, MIB(8)));
	CU_ASSERT_EQUAL(h.r, BACKING_E_BUDGET);
	CU_ASSERT_EQUAL(h.n_pressure, 1);
	CU_ASSERT_EQUAL(h.want_bytes, MIB(8));
	h.spare = first; /* the owner can spare it now */
	second = harness_make(&h, MIB(8));
	CU_ASSERT_PTR_NOT_NULL(second);
	CU_ASSERT_EQUAL(h.n_pressure, 2);
	/* One that is on its way out anyway is waited for. */
	backing_drop(h.b, second);
	second = harness_make(&h, MIB(16));
	CU_ASSERT_PTR_NOT_NULL(second);
	if (second)
		backing_drop(h.b, second);
	backing_set_limits(h.b, 0, true);
	harness_settle(&h);
}

static void a_waiting_buffer_can_be_cancelled(void)
{
	struct backing_buffer *first, *second;
	struct backing_stats stats;
	unsigned int n;

	backing_set_limits(h.b, MIB(64), true);
	first = harness_make(&h, MIB(60));
	T_REQUIRE(first != NULL);
	h.spare = first;
	n = h.n_created;
	T_REQUIRE(harness_create(&h, MIB(32), 0, &second) == 0);
	h.n_pressure = 0;
	harness_wait(&h, &h.n_pressure, 1);
	backing_cancel(h.b, second);
	harness_settle(&h);
	backing_get_stats(h.b, &stats);
	CU_ASSERT_EQUAL(stats.resident_bytes, 0);
	CU_ASSERT_EQUAL(h.n_created, n);
	backing_set_limits(h.b, 0, true);
}

/* As many as it takes. Return: how many. */
static unsigned int create_all(uid_t uid, struct backing_buffer **ret)
{
	struct backing_run run = {.n_blocks = 1};
	struct backing_spec spec = {.len_bytes = KIB(4),
				    .uid = uid,
				    .client = 1,
				    .page_size_bytes = 4096,
				    .heap = "system",
				    .runs = &run,
				    .n_runs = 1};
	unsigned int n = 0;
	int r;

	while ((r = harness_create_spec(&h, &spec, &ret[n])) == 0)
		n++;
	CU_ASSERT_EQUAL(r, BACKING_E_BUSY);
	return n;
}

static void the_queue_is_bounded_and_nobody_fills_it(void)
{
	static struct backing_buffer *bb[BACKING_CREATING_MAX];
	struct backing_buffer *extra = NULL;
	unsigned int n = h.n_created, first, second;

	/* Nothing of it is taken off the queue before the loop looks. */
	first = create_all(1000, bb);
	CU_ASSERT_EQUAL(first, BACKING_CREATING_MAX / 2);
	second = create_all(1001, bb + first);
	CU_ASSERT_EQUAL(second, BACKING_CREATING_MAX / 4);
	CU_ASSERT_EQUAL(create_all(1000, bb + first + second), 0);
	CU_ASSERT_EQUAL(harness_create(&h, KIB(4), 0, &extra), BACKING_E_BUSY);
	CU_ASSERT_PTR_NULL(extra);
	CU_ASSERT_TRUE(backing_check(h.b));
	for (unsigned int i = 0; i < first + second; i++)
		backing_cancel(h.b, bb[i]);
	while (harness_create(&h, KIB(4), 0, &extra) == BACKING_E_BUSY)
		harness_linger(&h, 1);
	harness_wait(&h, &h.n_created, n + 1);
	CU_ASSERT_EQUAL(h.r, 0);
	backing_drop(h.b, extra);
	harness_settle(&h);
}

static void lack_of_memory_for_the_request_is_an_error(void)
{
	struct backing_buffer *bb = NULL;

	for (unsigned long i = 1; i <= 3; i++) {
		fail_malloc_at(i);
		CU_ASSERT_EQUAL(harness_create(&h, KIB(4), 0, &bb), -ENOMEM);
		fail_malloc_at(0);
		CU_ASSERT_PTR_NULL(bb);
	}
}

static void without_memory_for_the_sentence_it_says_so(void)
{
	faults_arm(FAULT_MEMFD_CREATE, 0, 1, ENOMEM);
	/* After the three of the request: the sentence's. */
	fail_malloc_at(4);
	CU_ASSERT_PTR_NULL(harness_make(&h, KIB(4)));
	CU_ASSERT_EQUAL(fail_malloc_hit(), 1);
	fail_malloc_at(0);
	faults_clear();
	CU_ASSERT_EQUAL(h.r, BACKING_E_BUDGET);
	CU_ASSERT_PTR_NOT_NULL(strstr(h.error, "overcommit"));
}

static void what_cannot_start_says_why_and_leaves_nothing(void)
{
	static const enum fault faults[] = {
		FAULT_MEMFD_CREATE,   FAULT_EPOLL_CREATE1, FAULT_TIMERFD_CREATE,
		FAULT_PTHREAD_CREATE, FAULT_EVENTFD,       FAULT_EPOLL_CTL,
	};
	struct harness other = {0};
	struct backing_params params;
	char error[BACKING_ERROR_BYTES];
	unsigned int n_fds = harness_n_fds();

	harness_params(&other, &params);
	for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
		error[0] = '\0';
		faults_arm(faults[i], 0, 1, EMFILE);
		CU_ASSERT_TRUE(backing_new(&other.b, &params, error) < 0);
		CU_ASSERT_EQUAL(faults_hits(faults[i]), 1);
		CU_ASSERT_PTR_NOT_NULL(strstr(error, "cannot start"));
		faults_clear();
		CU_ASSERT_EQUAL(harness_n_fds(), n_fds);
	}
	params.n_workers = 1000;
	CU_ASSERT_EQUAL(backing_new(&other.b, &params, error), -EINVAL);
	CU_ASSERT_EQUAL(harness_n_fds(), n_fds);
	CU_ASSERT_PTR_NULL(backing_free(NULL));
}

static void without_leases_nothing_is_used_twice(void)
{
	struct harness other;
	struct backing_params params;
	struct backing_stats stats;
	struct backing_buffer *bb;
	int fd;

	harness_params(&other, &params);
	faults_arm(FAULT_LEASE, 0, 100000, EACCES);
	harness_start(&other, &params);
	backing_get_stats(other.b, &stats);
	CU_ASSERT_EQUAL(stats.lifetime, BACKING_LIFETIME_EXPLICIT);
	CU_ASSERT_PTR_NOT_NULL(strstr(stats.lifetime_reason, "leases"));
	bb = harness_make(&other, KIB(64));
	fd = harness_open(&other, bb, O_RDWR);
	/* The owner says that it ended, as no lease can. */
	CU_ASSERT_EQUAL(harness_recycle(&other, bb), BACKING_DROPPED_NEVER);
	bb = harness_make(&other, KIB(64));
	close(fd);
	fd = harness_open(&other, bb, O_RDWR);
	backing_drop(other.b, bb);
	close(fd);
	harness_stop(&other);
	faults_clear();
}

static void without_inotify_the_sweep_finds_the_end(void)
{
	struct harness other;
	struct backing_stats stats;
	struct backing_buffer *bb;
	int fd;

	faults_arm(FAULT_INOTIFY_INIT1, 0, 1, EMFILE);
	harness_start(&other, NULL);
	bb = harness_make(&other, KIB(64));
	fd = harness_open(&other, bb, O_RDWR);
	close(fd);
	harness_wait(&other, &other.n_released, 1);
	backing_get_stats(other.b, &stats);
	CU_ASSERT_EQUAL(stats.lifetime, BACKING_LIFETIME_SWEEP);
	CU_ASSERT_EQUAL(stats.late_releases, 1);
	CU_ASSERT_EQUAL(harness_recycle(&other, bb), BACKING_PARKABLE);
	harness_stop(&other);
	faults_clear();
}

/* A buffer of single pages, which parking would collapse; NULL: nobody can. */
static struct backing_buffer *make_small_pages(void)
{
	struct backing_stats stats;
	struct backing_buffer *bb;

	backing_get_stats(h.b, &stats);
	if (stats.mode != BACKING_COLLAPSE) {
		printf(" (no folios here: not tried) ");
		return NULL;
	}
	faults_arm(FAULT_MADVISE, 0, 100, ENOMEM);
	bb = harness_make(&h, MIB(8));
	T_REQUIRE(bb != NULL);
	faults_clear();
	return bb;
}

static void a_page_that_a_pipe_holds_is_found_by_the_collapse(void)
{
	struct backing_buffer *bb = make_small_pages();
	struct backing_stats stats;
	int fd, pipe_fds[2];
	off_t at = MIB(5) + KIB(8);

	if (!bb)
		return;
	fd = harness_open(&h, bb, O_RDWR);
	T_REQUIRE(pipe(pipe_fds) == 0);
	T_REQUIRE(splice(fd, &at, pipe_fds[1], NULL, KIB(4), 0) == KIB(4));
	h.n_released = 0;
	close(fd);
	harness_wait(&h, &h.n_released, 1);
	/* Whoever reads the pipe would read what the next one writes. */
	CU_ASSERT_EQUAL(harness_recycle(&h, bb), BACKING_DROPPED_PINNED);
	backing_get_stats(h.b, &stats);
	CU_ASSERT_EQUAL(stats.dropped_pinned, 1);
	CU_ASSERT_EQUAL(stats.parked_bytes, 0);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	harness_settle(&h);
}

static void without_a_block_to_collapse_into_it_parks_as_it_is(void)
{
	struct backing_buffer *bb = make_small_pages();
	enum backing_kind kind;
	int fd;

	if (!bb)
		return;
	kind = backing_buffer_kind(bb);
	fd = harness_open(&h, bb, O_RDWR);
	CU_ASSERT_EQUAL(pwrite(fd, "x", 1, MIB(5)), 1);
	h.n_released = 0;
	close(fd);
	harness_wait(&h, &h.n_released, 1);
	faults_arm(FAULT_MADVISE, 0, 100, ENOMEM);
	T_REQUIRE(harness_recycle(&h, bb) == BACKING_PARKABLE);
	CU_ASSERT_TRUE(faults_hits(FAULT_MADVISE) > 0);
	faults_clear();
	CU_ASSERT_EQUAL(backing_buffer_kind(bb), kind);
	fd = harness_open(&h, bb, O_RDWR);
	CU_ASSERT_TRUE(harness_is_zero(fd, MIB(8)));
	h.n_released = 0;
	close(fd);
	harness_wait(&h, &h.n_released, 1);
	backing_drop(h.b, bb);
	harness_settle(&h);
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"each failing call undoes everything",
		 each_failing_call_undoes_everything},
		{"a buffer without attribute or watch works still",
		 a_buffer_without_attribute_or_watch_works_still},
		{"at the descriptor limit a sentence names it",
		 at_the_descriptor_limit_a_sentence_names_it},
		{"a file size limit refuses and does not kill",
		 a_file_size_limit_refuses_and_does_not_kill},
		{"a small budget refuses until parked memory is dropped",
		 a_small_budget_refuses_until_parked_memory_is_dropped},
		{"a waiting buffer can be cancelled",
		 a_waiting_buffer_can_be_cancelled},
		{"the queue is bounded, and nobody fills it",
		 the_queue_is_bounded_and_nobody_fills_it},
		{"lack of memory for the request is an error",
		 lack_of_memory_for_the_request_is_an_error},
		{"without memory for the sentence it says so",
		 without_memory_for_the_sentence_it_says_so},
		{"what cannot start says why and leaves nothing",
		 what_cannot_start_says_why_and_leaves_nothing},
		{"without leases nothing is used twice",
		 without_leases_nothing_is_used_twice},
		{"without inotify the sweep finds the end",
		 without_inotify_the_sweep_finds_the_end},
		{"a page that a pipe holds is found by the collapse",
		 a_page_that_a_pipe_holds_is_found_by_the_collapse},
		{"without a block to collapse into it parks as it is",
		 without_a_block_to_collapse_into_it_parks_as_it_is},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "create",
		 .pSetUpFunc = setup,
		 .pTearDownFunc = teardown,
		 .pTests = tests},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
