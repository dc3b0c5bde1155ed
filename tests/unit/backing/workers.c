/* SPDX-License-Identifier: MIT */
#include "backing/workers.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "support/faults.h"
#include "support/test.h"

struct counted {
	struct job job;
	unsigned int n_steps; /* left */
	int policy;           /* of the thread that ran it */
};

static struct workers *workers;

static enum job_result count_step(struct job *job, struct worker *worker)
{
	struct counted *c = container_of(job, struct counted, job);

	CU_ASSERT_PTR_NOT_NULL(worker->window.base);
	c->policy = sched_getscheduler(0);
	return --c->n_steps ? JOB_MORE : JOB_DONE;
}

static struct counted counted(unsigned int n_steps, bool small)
{
	return (struct counted){
		.job = {.step = count_step, .uid = 1000, .small = small},
		.n_steps = n_steps,
	};
}

/* Waits for @n jobs. Return: the last. */
static struct job *wait_for(unsigned int n)
{
	struct pollfd p = {.fd = workers_event_fd(workers), .events = POLLIN};
	struct job *job, *last = NULL;

	while (n > 0 && poll(&p, 1, 10000) == 1) {
		workers_clear_event(workers);
		for (job = workers_take_done(workers); job; job = job->next) {
			last = job;
			n--;
		}
	}
	CU_ASSERT_EQUAL(n, 0);
	return last;
}

/* Return: how many threads of @name are at SCHED_IDLE. */
static unsigned int count_idle(const char *name)
{
	DIR *dir = opendir("/proc/self/task");
	unsigned int n = 0;
	struct dirent *entry;

	T_REQUIRE(dir != NULL);
	while ((entry = readdir(dir))) {
		char path[300], comm[32] = "";
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm",
			 entry->d_name);
		file = fopen(path, "re");
		if (!file)
			continue; /* "." and ".." */
		if (fscanf(file, "%31s", comm) == 1 && !strcmp(comm, name))
			n += sched_getscheduler(atoi(entry->d_name)) ==
			     SCHED_IDLE;
		fclose(file);
	}
	closedir(dir);
	return n;
}

static void jobs_run_to_their_end_at_idle_priority(void)
{
	struct counted big = counted(5, false), small = counted(1, true);

	T_REQUIRE(workers_new(&workers, 2) == 0);
	CU_ASSERT_PTR_NULL(workers_take_done(workers));
	workers_submit(workers, &big.job);
	workers_submit(workers, &small.job);
	(void)wait_for(2);
	CU_ASSERT_EQUAL(big.n_steps, 0);
	CU_ASSERT_EQUAL(small.n_steps, 0);
	/* Not of the job: on a busy host it is rescued. */
	for (int tries = 0; tries < 1000 && count_idle("dmaheap-bulk") < 2;
	     tries++)
		usleep(10000);
	CU_ASSERT_EQUAL(count_idle("dmaheap-bulk"), 2);
	CU_ASSERT_EQUAL(count_idle("dmaheap-rescue"), 0);
	CU_ASSERT_EQUAL(workers_n_pending(workers), 0);
	workers = workers_stop(workers, NULL);
}

static bool is_readable(int timeout_ms)
{
	struct pollfd p = {.fd = workers_event_fd(workers), .events = POLLIN};

	return poll(&p, 1, timeout_ms) == 1;
}

static void quiet_jobs_are_told_late_or_to_who_asks(void)
{
	struct counted c[4];
	unsigned int n = 0;

	T_REQUIRE(workers_new(&workers, 1) == 0);
	for (unsigned int i = 0; i < 4; i++) {
		c[i] = counted(1, true);
		c[i].job.quiet = true;
	}
	/* Nobody asks: told all the same, a little later. */
	workers_submit(workers, &c[0].job);
	(void)wait_for(1);
	/* Somebody asks without having been told. */
	for (unsigned int i = 1; i < 4; i++)
		workers_submit(workers, &c[i].job);
	while (n < 3)
		for (struct job *j = workers_take_done(workers); j; j = j->next)
			n++;
	CU_ASSERT_EQUAL(workers_n_pending(workers), 0);
	/* What was told meanwhile is cleared by looking again. */
	for (n = 0; n < 10 && is_readable(20); n++) {
		workers_clear_event(workers);
		CU_ASSERT_PTR_NULL(workers_take_done(workers));
	}
	CU_ASSERT(n < 10);
	workers = workers_stop(workers, NULL);
}

static void a_hurry_ends_the_quiet(void)
{
	struct counted first = counted(1, true), second = counted(1, true);

	first.job.quiet = true;
	second.job.quiet = true;
	T_REQUIRE(workers_new(&workers, 1) == 0);
	workers_submit(workers, &first.job);
	(void)wait_for(1);
	workers_submit(workers, &second.job);
	workers_hurry(workers, 1);
	CU_ASSERT_TRUE(is_readable(10000));
	(void)wait_for(1);
	workers = workers_stop(workers, NULL);
}

/* Held up until told to go on, so that others gather behind it. */
static enum job_result gate_step(struct job *job,
				 struct worker *worker _unused_)
{
	atomic_uint *gate = (void *)(uintptr_t)job->client;

	atomic_store(gate, 1);
	while (atomic_load(gate) == 1)
		usleep(100);
	return JOB_DONE;
}

/* Both threads of workers_new(, 1), which take up nothing until opened. */
struct gates {
	struct job bulk_job;
	struct job express_job;
	atomic_uint bulk;
	atomic_uint express;
};

static void close_gate(struct job *job, atomic_uint *gate, bool small)
{
	atomic_init(gate, 0);
	*job = (struct job){.step = gate_step,
			    .client = (uintptr_t)gate,
			    .small = small};
	workers_submit(workers, job);
	while (atomic_load(gate) == 0)
		usleep(100);
}

static void close_gates(struct gates *g)
{
	close_gate(&g->bulk_job, &g->bulk, false);
	close_gate(&g->express_job, &g->express, true);
}

static void quiet_jobs_and_others_take_turns(void)
{
	struct counted quiet[3], other[2];
	struct gates gates;
	/* The gate was not a quiet one: it is their turn. */
	const struct job *expected[] = {&gates.express_job, &quiet[0].job,
					&other[0].job,      &quiet[1].job,
					&other[1].job,      &quiet[2].job};
	const struct job *done;
	unsigned int n = 0;

	T_REQUIRE(workers_new(&workers, 1) == 0);
	close_gates(&gates);
	for (unsigned int i = 0; i < ARRAY_SIZE(quiet); i++) {
		quiet[i] = counted(1, true);
		quiet[i].job.quiet = true;
		workers_submit(workers, &quiet[i].job);
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(other); i++) {
		other[i] = counted(1, true);
		workers_submit(workers, &other[i].job);
	}
	atomic_store(&gates.express, 2);
	while (workers_n_pending(workers) > 1)
		usleep(100);
	for (done = workers_take_done(workers); done; done = done->next)
		CU_ASSERT_PTR_EQUAL(done, expected[n++]);
	CU_ASSERT_EQUAL(n, ARRAY_SIZE(expected));
	atomic_store(&gates.bulk, 2);
	workers = workers_stop(workers, NULL);
}

static void a_hurry_is_told_once_for_all_that_it_asked_for(void)
{
	struct counted c[8];
	struct gates gates;
	unsigned int n = 0;

	T_REQUIRE(workers_new(&workers, 1) == 0);
	close_gates(&gates);
	for (unsigned int i = 0; i < ARRAY_SIZE(c); i++) {
		c[i] = counted(1, true);
		c[i].job.quiet = true;
		workers_submit(workers, &c[i].job);
	}
	/* More than there are: told when there are no more. */
	workers_hurry(workers, ARRAY_SIZE(c) + 1);
	atomic_store(&gates.express, 2);
	CU_ASSERT_PTR_EQUAL(wait_for(ARRAY_SIZE(c) + 1), &c[7].job);
	/* Not any more: but for the one that asks it is late again. */
	c[0] = counted(1, true);
	c[0].job.quiet = true;
	workers_hurry(workers, 1);
	workers_hurry(workers, 0);
	workers_submit(workers, &c[0].job);
	while (n == 0)
		for (struct job *j = workers_take_done(workers); j; j = j->next)
			n++;
	atomic_store(&gates.bulk, 2);
	workers = workers_stop(workers, NULL);
}

static void stopping_finishes_what_was_submitted(void)
{
	struct counted c[64];
	struct job *done = NULL;
	unsigned int n = 0;

	T_REQUIRE(workers_new(&workers, 2) == 0);
	for (unsigned int i = 0; i < ARRAY_SIZE(c); i++) {
		c[i] = counted(1 + i % 5, i % 2);
		workers_submit(workers, &c[i].job);
	}
	workers = workers_stop(workers, &done);
	for (; done; done = done->next)
		n++;
	CU_ASSERT_EQUAL(n, ARRAY_SIZE(c));
}

static void a_thousand_small_jobs_lose_no_wakeup(void)
{
	T_REQUIRE(workers_new(&workers, 1) == 0);
	for (unsigned int i = 0; i < 1000; i++) {
		struct counted c = counted(1, true);

		workers_submit(workers, &c.job);
		CU_ASSERT_PTR_EQUAL(wait_for(1), &c.job);
	}
	workers = workers_stop(workers, NULL);
}

static enum job_result slow_step(struct job *job _unused_,
				 struct worker *worker _unused_)
{
	usleep(100 * 1000);
	return JOB_DONE;
}

static void a_small_job_does_not_wait_for_a_large_one(void)
{
	struct job slow = {.step = slow_step};
	struct counted small = counted(1, true);

	T_REQUIRE(workers_new(&workers, 1) == 0);
	workers_submit(workers, &slow);
	workers_submit(workers, &small.job);
	CU_ASSERT_PTR_EQUAL(wait_for(1), &small.job);
	(void)wait_for(1);
	workers = workers_stop(workers, NULL);
}

struct stuck {
	struct job job;
	atomic_int policy; /* of the thread that it holds up; -1: none yet */
	atomic_bool *until;
};

static enum job_result stuck_step(struct job *job,
				  struct worker *worker _unused_)
{
	struct stuck *s = container_of(job, struct stuck, job);

	atomic_store(&s->policy, sched_getscheduler(0));
	while (!atomic_load(s->until))
		usleep(1000);
	return JOB_DONE;
}

static void starved_work_is_rescued_at_ordinary_priority(void)
{
	atomic_bool enough = false;
	/* Every ordinary thread is held up, as on a host that is busy. */
	struct stuck hold[2] = {
		{.job = {.step = stuck_step}, .policy = -1, .until = &enough},
		{.job = {.step = stuck_step, .small = true},
		 .policy = -1,
		 .until = &enough},
	};
	struct counted big = counted(2, false);
	int nice_before = getpriority(PRIO_PROCESS, 0);

	T_REQUIRE(workers_new(&workers, 1) == 0);
	for (int i = 0; i < 2; i++) {
		workers_submit(workers, &hold[i].job);
		while (atomic_load(&hold[i].policy) < 0)
			usleep(1000);
	}
	workers_submit(workers, &big.job);
	CU_ASSERT_PTR_EQUAL(wait_for(1), &big.job);
	/* If the host is busy indeed, what should hold up was rescued. */
	CU_ASSERT(big.policy == SCHED_OTHER || hold[0].policy == SCHED_OTHER);
	atomic_store(&enough, true);
	(void)wait_for(2);
	workers = workers_stop(workers, NULL);
	CU_ASSERT_EQUAL(getpriority(PRIO_PROCESS, 0), nice_before);
}

static void what_cannot_start_leaves_nothing(void)
{
	CU_ASSERT_EQUAL(workers_new(&workers, 0), -EINVAL);
	CU_ASSERT_EQUAL(workers_new(&workers, WORKERS_MAX + 1), -EINVAL);
	faults_arm(FAULT_EVENTFD, 0, 1, EMFILE);
	CU_ASSERT_EQUAL(workers_new(&workers, 1), -EMFILE);
	/* The first thread, and one after others have started. */
	for (unsigned int skip = 0; skip < 3; skip++) {
		faults_arm(FAULT_PTHREAD_CREATE, skip, 1, EAGAIN);
		CU_ASSERT_EQUAL(workers_new(&workers, 1), -EAGAIN);
		CU_ASSERT_EQUAL(faults_hits(FAULT_PTHREAD_CREATE), 1);
	}
	faults_arm(FAULT_MMAP, 0, 1, ENOMEM);
	CU_ASSERT_EQUAL(workers_new(&workers, 1), -ENOMEM);
	faults_clear();
	CU_ASSERT_PTR_NULL(workers_stop(NULL, NULL));
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"jobs run to their end at idle priority",
		 jobs_run_to_their_end_at_idle_priority},
		{"stopping finishes what was submitted",
		 stopping_finishes_what_was_submitted},
		{"quiet jobs are told late or to who asks",
		 quiet_jobs_are_told_late_or_to_who_asks},
		{"a hurry ends the quiet", a_hurry_ends_the_quiet},
		{"quiet jobs and others take turns",
		 quiet_jobs_and_others_take_turns},
		{"a hurry is told once for all that it asked for",
		 a_hurry_is_told_once_for_all_that_it_asked_for},
		{"a thousand small jobs lose no wake-up",
		 a_thousand_small_jobs_lose_no_wakeup},
		{"a small job does not wait for a large one",
		 a_small_job_does_not_wait_for_a_large_one},
		{"starved work is rescued at ordinary priority",
		 starved_work_is_rescued_at_ordinary_priority},
		{"what cannot start leaves nothing",
		 what_cannot_start_leaves_nothing},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "workers", .pTests = tests},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
