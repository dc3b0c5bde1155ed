/* SPDX-License-Identifier: MIT */
#include "server/recycling.h"

#include "support/test.h"

#define SOME_HEAP  ((const struct heap *)(uintptr_t)0x1000)
#define OTHER_HEAP ((const struct heap *)(uintptr_t)0x2000)

static struct recycling r;
static const struct recycling_key mine = {SOME_HEAP, KIB(64), 1000};

static void begin(const struct recycling_key *key, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		CU_ASSERT_TRUE(recycling_begin(&r, key));
}

static void who_waits_is_served_in_turn(void)
{
	struct recycling_wait wait[3] = {0};

	recycling_init(&r);
	CU_ASSERT_FALSE(recycling_join(&r, &mine, &wait[0]));
	begin(&mine, RECYCLING_ENOUGH - 1);
	CU_ASSERT_FALSE(recycling_join(&r, &mine, &wait[0]));
	begin(&mine, 3);
	CU_ASSERT_TRUE(recycling_join(&r, &mine, &wait[0]));
	CU_ASSERT_TRUE(recycling_join(&r, &mine, &wait[1]));
	CU_ASSERT_TRUE(recycling_join(&r, &mine, &wait[2]));
	CU_ASSERT_EQUAL(r.n_waiting, 3);
	CU_ASSERT_TRUE(recycling_check(&r));
	recycling_leave(&r, &wait[1]);
	recycling_leave(&r, &wait[1]); /* harmless */
	CU_ASSERT_PTR_EQUAL(recycling_end(&r, &mine), &wait[0]);
	CU_ASSERT_PTR_EQUAL(recycling_end(&r, &mine), &wait[2]);
	CU_ASSERT_PTR_NULL(recycling_end(&r, &mine));
	CU_ASSERT_EQUAL(r.n_waiting, 0);
	CU_ASSERT_TRUE(recycling_check(&r));
}

static void nobody_waits_for_anothers(void)
{
	const struct recycling_key others[] = {
		{SOME_HEAP, KIB(64), 1001},
		{SOME_HEAP, KIB(68), 1000},
		{OTHER_HEAP, KIB(64), 1000},
	};
	struct recycling_wait wait = {0};

	recycling_init(&r);
	begin(&mine, 2 * RECYCLING_ENOUGH);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		CU_ASSERT_FALSE(recycling_join(&r, &others[i], &wait));
}

/* More keys than slots: some are not counted, and none is mixed up. */
static void a_slot_that_is_taken_is_left_alone(void)
{
	static bool counted[2 * RECYCLING_SLOTS];
	unsigned int n_counted = 0;
	struct recycling_key key = mine;

	recycling_init(&r);
	for (unsigned int i = 0; i < ARRAY_SIZE(counted); i++) {
		key.uid = i;
		counted[i] = recycling_begin(&r, &key);
		n_counted += counted[i];
	}
	CU_ASSERT(n_counted > 1 && n_counted <= RECYCLING_SLOTS);
	for (unsigned int i = 0; i < ARRAY_SIZE(counted); i++) {
		key.uid = i;
		if (counted[i])
			CU_ASSERT_PTR_NULL(recycling_end(&r, &key));
	}
	CU_ASSERT_TRUE(recycling_check(&r));
	for (unsigned int i = 0; i < RECYCLING_SLOTS; i++)
		CU_ASSERT_EQUAL(r.slot[i].n, 0);
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"who waits is served in turn", who_waits_is_served_in_turn},
		{"nobody waits for another's", nobody_waits_for_anothers},
		{"a slot that is taken is left alone",
		 a_slot_that_is_taken_is_left_alone},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "recycling", .pTests = tests},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
