/* SPDX-License-Identifier: MIT */
#include "backing/queue.h"
#include "support/test.h"

#define N_JOBS 12u

static struct queue q;
static struct job jobs[N_JOBS];

/* Job i: of user @uid and client @client. */
static struct job *job(unsigned int i, uid_t uid, uint64_t client)
{
	jobs[i].uid = uid;
	jobs[i].client = client;
	list_init(&jobs[i].link);
	return &jobs[i];
}

static void expect(const unsigned int *order, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		CU_ASSERT_PTR_EQUAL(queue_pop(&q), &jobs[order[i]]);
	CU_ASSERT_PTR_NULL(queue_pop(&q));
	queue_fini(&q);
}

static void an_empty_queue_has_nothing(void)
{
	queue_init(&q);
	CU_ASSERT_PTR_NULL(queue_pop(&q));
	CU_ASSERT_EQUAL(q.n_jobs, 0);
	queue_fini(&q);
}

static void one_clients_jobs_keep_their_order(void)
{
	static const unsigned int order[] = {0, 1, 2};

	queue_init(&q);
	for (unsigned int i = 0; i < 3; i++)
		queue_push(&q, job(i, 1000, 1));
	CU_ASSERT_EQUAL(q.n_jobs, 3);
	expect(order, 3);
}

static void users_take_turns_however_much_each_asks(void)
{
	static const unsigned int order[] = {0, 4, 1, 5, 2, 3};

	queue_init(&q);
	for (unsigned int i = 0; i < 4; i++)
		queue_push(&q, job(i, 1000, 1));
	queue_push(&q, job(4, 1001, 1));
	queue_push(&q, job(5, 1001, 1));
	expect(order, 6);
}

static void a_user_gains_nothing_by_more_clients(void)
{
	static const unsigned int order[] = {0, 4, 1, 5, 2, 3};

	queue_init(&q);
	for (unsigned int i = 0; i < 4; i++)
		queue_push(&q, job(i, 1000, i));
	queue_push(&q, job(4, 1001, 9));
	queue_push(&q, job(5, 1001, 9));
	expect(order, 6);
}

static void clients_of_a_user_take_turns(void)
{
	static const unsigned int order[] = {0, 3, 1, 4, 2};

	queue_init(&q);
	for (unsigned int i = 0; i < 3; i++)
		queue_push(&q, job(i, 1000, 1));
	queue_push(&q, job(3, 1000, 2));
	queue_push(&q, job(4, 1000, 2));
	expect(order, 5);
}

static void a_job_of_many_steps_lets_others_pass(void)
{
	struct job *big;

	queue_init(&q);
	queue_push(&q, job(0, 1000, 1)); /* of two steps */
	queue_push(&q, job(1, 1000, 1));
	queue_push(&q, job(2, 1001, 1));
	big = queue_pop(&q);
	CU_ASSERT_PTR_EQUAL(big, &jobs[0]);
	queue_push_back(&q, big);
	CU_ASSERT_PTR_EQUAL(queue_pop(&q), &jobs[2]);
	CU_ASSERT_PTR_EQUAL(queue_pop(&q), &jobs[0]);
	CU_ASSERT_PTR_EQUAL(queue_pop(&q), &jobs[1]);
	queue_fini(&q);
}

/* More users, and more clients, than are told apart. */
static void beyond_its_bounds_nothing_is_lost(void)
{
	static struct job many[2 * QUEUE_FLOWS];
	unsigned int n_users[] = {1, 3, QUEUE_LANES + 20, 2 * QUEUE_FLOWS};

	for (unsigned int k = 0; k < 4; k++) {
		unsigned int n = 0;

		queue_init(&q);
		for (unsigned int i = 0; i < 2 * QUEUE_FLOWS; i++) {
			many[i] = (struct job){.uid = i % n_users[k],
					       .client = i};
			queue_push(&q, &many[i]);
		}
		CU_ASSERT_EQUAL(q.n_jobs, 2 * QUEUE_FLOWS);
		while (queue_pop(&q))
			n++;
		CU_ASSERT_EQUAL(n, 2 * QUEUE_FLOWS);
		queue_fini(&q);
	}
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"an empty queue has nothing", an_empty_queue_has_nothing},
		{"one client's jobs keep their order",
		 one_clients_jobs_keep_their_order},
		{"users take turns, however much each asks",
		 users_take_turns_however_much_each_asks},
		{"a user gains nothing by more clients",
		 a_user_gains_nothing_by_more_clients},
		{"clients of a user take turns", clients_of_a_user_take_turns},
		{"a job of many steps lets others pass",
		 a_job_of_many_steps_lets_others_pass},
		{"beyond its bounds nothing is lost",
		 beyond_its_bounds_nothing_is_lost},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "queue", .pTests = tests},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
