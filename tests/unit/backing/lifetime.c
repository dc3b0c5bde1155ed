/* SPDX-License-Identifier: MIT */
#include "backing/lifetime.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "backing/memfd.h"
#include "base/fd.h"
#include "support/faults.h"
#include "support/test.h"

/* Time is ours here: the module is told it. */
#define MS(n) ((uint64_t)(n)*NSEC_PER_MSEC)

static struct lifetime *lt;
static struct watched w[3];
static int own[3], client[3];
static unsigned int n_released, n_late;
static struct watched *last;

static void on_released(void *ctx _unused_, struct watched *released, bool late)
{
	n_released++;
	n_late += late;
	last = released;
}

static const struct lifetime_ops ops = {.released = on_released};

static void begin(unsigned int n)
{
	n_released = 0;
	n_late = 0;
	last = NULL;
	T_REQUIRE(lifetime_new(&lt, &ops) == 0);
	for (unsigned int i = 0; i < n; i++) {
		T_REQUIRE(memfd_make("t", 4096, false, &own[i]) == 0);
		lifetime_add(lt, &w[i], own[i], lifetime_watch(lt, own[i]));
		T_REQUIRE(memfd_reopen(own[i], O_RDWR, &client[i]) == 0);
		lifetime_arm(lt, &w[i], MS(0));
	}
}

static void end(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		lifetime_remove(lt, &w[i]);
		fd_close(client[i]);
		fd_close(own[i]);
	}
	lt = lifetime_free(lt);
	faults_clear();
}

static void a_close_is_told_at_once(void)
{
	begin(2);
	CU_ASSERT_EQUAL(lifetime_mode(lt), BACKING_LIFETIME_EXACT);
	CU_ASSERT_STRING_EQUAL(lifetime_reason(lt), "");
	lifetime_dispatch(lt, MS(0));
	CU_ASSERT_EQUAL(n_released, 0);
	CU_ASSERT_EQUAL(lifetime_due_ns(lt), UINT64_MAX); /* no wake-ups */
	client[1] = fd_close(client[1]);
	lifetime_dispatch(lt, MS(1));
	CU_ASSERT_EQUAL(n_released, 1);
	CU_ASSERT_EQUAL(n_late, 0);
	CU_ASSERT_PTR_EQUAL(last, &w[1]);
	CU_ASSERT_EQUAL(lifetime_due_ns(lt), UINT64_MAX);
	end(2);
}

/* The event comes before the writer count drops: here the lease is refused a
 * few times after it. */
static void an_early_event_is_asked_again(void)
{
	static const unsigned int at_ms[] = {1, 5, 21};

	for (unsigned int n = 1; n <= 3; n++) {
		begin(1);
		client[0] = fd_close(client[0]);
		faults_arm(FAULT_LEASE, 0, n, EAGAIN);
		lifetime_dispatch(lt, MS(0));
		for (unsigned int i = 0; i < n; i++) {
			CU_ASSERT_EQUAL(n_released, 0);
			CU_ASSERT_EQUAL(lifetime_due_ns(lt), MS(at_ms[i]));
			lifetime_dispatch(lt, MS(at_ms[i]) - 1);
			CU_ASSERT_EQUAL(n_released, 0);
			lifetime_dispatch(lt, MS(at_ms[i]));
		}
		CU_ASSERT_EQUAL(n_released, 1);
		CU_ASSERT_EQUAL(n_late, 0);
		end(1);
	}
}

static void what_the_retests_miss_the_sweep_finds(void)
{
	uint64_t now;

	begin(1);
	client[0] = fd_close(client[0]);
	faults_arm(FAULT_LEASE, 0, 5, EAGAIN);
	lifetime_dispatch(lt, 0);
	for (int i = 0; i < 5; i++) {
		now = lifetime_due_ns(lt);
		lifetime_dispatch(lt, now);
	}
	CU_ASSERT_EQUAL(now, MS(1 + 4 + 16 + 100 + 400));
	CU_ASSERT_EQUAL(n_released, 1);
	CU_ASSERT_EQUAL(n_late, 1);
	end(1);
}

static void a_shared_buffer_is_asked_ever_more_rarely(void)
{
	uint64_t now = 0;
	int other = -1;
	unsigned int n = 0;

	begin(1);
	T_REQUIRE(memfd_reopen(own[0], O_RDWR, &other) == 0);
	client[0] = fd_close(client[0]);
	lifetime_dispatch(lt, now);
	for (; now < MS(3600 * 1000); n++) {
		now = lifetime_due_ns(lt);
		lifetime_dispatch(lt, now);
	}
	CU_ASSERT_EQUAL(n_released, 0);
	CU_ASSERT_TRUE(n < 75); /* within an hour */
	fd_close(other);
	lifetime_dispatch(lt, now); /* its own event */
	CU_ASSERT_EQUAL(n_released, 1);
	end(1);
}

static void lost_events_lead_to_a_sweep(void)
{
	char path[32];

	begin(3);
	/* More events than fs.inotify.max_queued_events; equal neighbours are
	 * merged, so two kinds take turns. */
	for (unsigned int i = 0; i < 20000; i++) {
		int fd;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", own[1]);
		fd = open(path, i % 2 ? O_RDONLY : O_RDWR);
		T_REQUIRE(fd >= 0);
		close(fd);
	}
	client[0] = fd_close(client[0]);
	client[2] = fd_close(client[2]);
	lifetime_dispatch(lt, MS(0));
	CU_ASSERT_EQUAL(n_released, 2);
	CU_ASSERT_EQUAL(n_late, 2);
	end(3);
}

static void without_watches_buffers_are_looked_at_every_20_ms(void)
{
	n_released = 0;
	begin(0);
	faults_arm(FAULT_INOTIFY_ADD_WATCH, 0, 1, ENOSPC);
	T_REQUIRE(memfd_make("t", 4096, false, &own[0]) == 0);
	lifetime_add(lt, &w[0], own[0], lifetime_watch(lt, own[0]));
	CU_ASSERT_EQUAL(w[0].wd, -1);
	CU_ASSERT_EQUAL(lifetime_due_ns(lt), UINT64_MAX); /* nobody has it */
	T_REQUIRE(memfd_reopen(own[0], O_RDWR, &client[0]) == 0);
	lifetime_arm(lt, &w[0], MS(0));
	CU_ASSERT_EQUAL(lifetime_due_ns(lt), MS(20));
	lifetime_dispatch(lt, MS(20));
	CU_ASSERT_EQUAL(n_released, 0);
	client[0] = fd_close(client[0]);
	CU_ASSERT_EQUAL(lifetime_due_ns(lt), MS(40));
	lifetime_dispatch(lt, MS(39));
	CU_ASSERT_EQUAL(n_released, 0);
	lifetime_dispatch(lt, MS(40));
	CU_ASSERT_EQUAL(n_released, 1);
	CU_ASSERT_EQUAL(n_late, 1);
	CU_ASSERT_EQUAL(lifetime_due_ns(lt), UINT64_MAX);
	end(1);
}

static void without_inotify_it_is_the_sweep(void)
{
	faults_arm(FAULT_INOTIFY_INIT1, 0, 1, EMFILE);
	begin(1);
	CU_ASSERT_EQUAL(lifetime_mode(lt), BACKING_LIFETIME_SWEEP);
	CU_ASSERT_PTR_NOT_NULL(strstr(lifetime_reason(lt), "inotify"));
	CU_ASSERT_EQUAL(lifetime_event_fd(lt), -1);
	client[0] = fd_close(client[0]);
	lifetime_dispatch(lt, MS(20));
	CU_ASSERT_EQUAL(n_released, 1);
	end(1);
}

static void without_leases_nothing_is_asked(void)
{
	faults_arm(FAULT_LEASE, 0, 1000, EACCES);
	begin(1);
	CU_ASSERT_EQUAL(lifetime_mode(lt), BACKING_LIFETIME_EXPLICIT);
	CU_ASSERT_PTR_NOT_NULL(strstr(lifetime_reason(lt), "leases"));
	client[0] = fd_close(client[0]);
	lifetime_dispatch(lt, MS(20));
	CU_ASSERT_EQUAL(n_released, 0);
	CU_ASSERT_EQUAL(lifetime_due_ns(lt), UINT64_MAX);
	end(1);
}

static void a_refused_memfd_is_an_error(void)
{
	faults_arm(FAULT_MEMFD_CREATE, 0, 1, EMFILE);
	CU_ASSERT_EQUAL(lifetime_new(&lt, &ops), -EMFILE);
	faults_clear();
}

static bool inotify_works(void)
{
	int fd = inotify_init1(IN_CLOEXEC);

	fd_close(fd);
	return fd >= 0;
}

int main(int argc, char **argv)
{
	CU_TestInfo tests_without_inotify[] = {
		{"without inotify it is the sweep",
		 without_inotify_it_is_the_sweep},
		{"without leases nothing is asked",
		 without_leases_nothing_is_asked},
		{"a refused memfd is an error", a_refused_memfd_is_an_error},
		CU_TEST_INFO_NULL,
	};
	CU_TestInfo tests[] = {
		{"a close is told at once", a_close_is_told_at_once},
		{"an early event is asked again",
		 an_early_event_is_asked_again},
		{"what the retests miss the sweep finds",
		 what_the_retests_miss_the_sweep_finds},
		{"a shared buffer is asked ever more rarely",
		 a_shared_buffer_is_asked_ever_more_rarely},
		{"lost events lead to a sweep", lost_events_lead_to_a_sweep},
		{"without watches, buffers are looked at every 20 ms",
		 without_watches_buffers_are_looked_at_every_20_ms},
		{"without inotify it is the sweep",
		 without_inotify_it_is_the_sweep},
		{"without leases nothing is asked",
		 without_leases_nothing_is_asked},
		{"a refused memfd is an error", a_refused_memfd_is_an_error},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "lifetime", .pTests = tests},
		CU_SUITE_INFO_NULL,
	};

	/* Containers often have used up the inotify instances: what needs none
	 * is told apart by its own tests below. */
	if (!inotify_works()) {
		printf("note: no inotify here, its tests are left out\n");
		suites[0].pTests = tests_without_inotify;
	}
	return t_main(argc, argv, suites);
}
