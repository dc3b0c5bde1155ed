/* SPDX-License-Identifier: MIT */
#include "server/quota.h"

#include <string.h>

#include "support/test.h"

static struct quota *quota;
static struct quota_denial denial;

static void setup(void)
{
	const struct quota_rules rules = {
		.limits = {.bytes = 100,
			   .buffers = 3,
			   .connections = 2,
			   .requests_per_s = 10},
		.n_overrides = 1,
		.overrides = {{.uid = 7,
			       .set = 1u << QUOTA_BYTES,
			       .limits = {.bytes = 10}}},
	};

	T_REQUIRE(quota_new(&quota) == 0);
	quota_set_rules(quota, &rules);
}

static void teardown(void)
{
	quota = quota_free(quota); /* asserts: everything was released */
}

static int charge(uint32_t uid, uint64_t bytes, uint64_t buffers,
		  struct quota_charge *ret)
{
	return quota_charge(quota, uid,
			    &(struct quota_charge){.bytes = bytes,
						   .buffers = buffers},
			    ret, &denial);
}

static void a_limit_is_reached_and_not_passed(void)
{
	struct quota_charge a = {0}, b = {0}, c = {0};

	CU_ASSERT_EQUAL(charge(1, 60, 1, &a), 0);
	CU_ASSERT_EQUAL(charge(1, 41, 1, &b), QUOTA_E_EXCEEDED);
	CU_ASSERT_PTR_NULL(b.account);
	CU_ASSERT_EQUAL(charge(1, 40, 1, &b), 0);
	CU_ASSERT_EQUAL(charge(1, 1, 1, &c), QUOTA_E_EXCEEDED);
	CU_ASSERT_EQUAL(a.account->denied, 2);
	/* Another uid has its own. */
	CU_ASSERT_EQUAL(charge(2, 100, 1, &c), 0);
	quota_charge_release(&a);
	quota_charge_release(&b);
	quota_charge_release(&c);
	quota_charge_release(&c); /* harmless */
}

static void a_denial_says_who_which_limit_used_asked_and_key(void)
{
	struct quota_charge a = {0}, b = {0};
	char text[256];

	CU_ASSERT_EQUAL(charge(1, 60, 1, &a), 0);
	CU_ASSERT_EQUAL(charge(1, 50, 1, &b), QUOTA_E_EXCEEDED);
	quota_denial_text(&denial, text, sizeof(text));
	CU_ASSERT_STRING_EQUAL(text, "uid 1 may have bytes = 100: 60 in use, "
				     "50 asked for ([quota] bytes)");
	CU_ASSERT_EQUAL(charge(7, 11, 1, &b), QUOTA_E_EXCEEDED);
	quota_denial_text(&denial, text, sizeof(text));
	CU_ASSERT_STRING_EQUAL(text, "uid 7 may have bytes = 10: 0 in use, "
				     "11 asked for ([quota uid 7] bytes)");
	CU_ASSERT_EQUAL(charge(1, 1, 3, &b), QUOTA_E_EXCEEDED);
	CU_ASSERT_STRING_EQUAL(denial.limit, "buffers");
	quota_charge_release(&a);
}

static void an_override_leaves_the_other_limits(void)
{
	struct quota_limits l = quota_limits_of(quota, 7);

	CU_ASSERT_EQUAL(l.bytes, 10);
	CU_ASSERT_EQUAL(l.buffers, 3);
	CU_ASSERT_EQUAL(l.requests_per_s, 10);
}

static void huge_requests_do_not_wrap(void)
{
	struct quota_charge a = {0}, b = {0};

	CU_ASSERT_EQUAL(charge(1, 60, 1, &a), 0);
	CU_ASSERT_EQUAL(charge(1, UINT64_MAX - 10, 1, &b), QUOTA_E_EXCEEDED);
	quota_charge_release(&a);
}

static void a_charge_can_be_split_and_joined(void)
{
	struct quota_charge a = {0}, part;
	struct quota_account *account;

	CU_ASSERT_EQUAL(charge(1, 60, 3, &a), 0);
	account = a.account;
	quota_charge_split(&a,
			   &(struct quota_charge){.bytes = 20, .buffers = 1},
			   &part);
	quota_charge_release(&a);
	CU_ASSERT_EQUAL(account->bytes, 20);
	CU_ASSERT_EQUAL(account->buffers, 1);
	CU_ASSERT_EQUAL(charge(1, 30, 1, &a), 0);
	quota_charge_join(&a, &part);
	CU_ASSERT_PTR_NULL(part.account);
	CU_ASSERT_EQUAL(a.bytes, 50);
	quota_charge_release(&a);
	CU_ASSERT_PTR_NULL(quota_next(quota, NULL));
}

static void a_forced_charge_goes_beyond_the_limit(void)
{
	struct quota_charge a = {0}, b = {0};

	CU_ASSERT_EQUAL(quota_charge_forced(quota, 1,
					    &(struct quota_charge){.bytes =
									   500},
					    &a),
			0);
	CU_ASSERT_EQUAL(a.account->bytes, 500);
	CU_ASSERT_EQUAL(charge(1, 1, 0, &b), QUOTA_E_EXCEEDED);
	quota_charge_release(&a);
}

static void sharing_is_noticed(void)
{
	struct quota_charge a = {0}, b = {0};

	CU_ASSERT_FALSE(quota_is_shared(quota));
	CU_ASSERT_EQUAL(charge(1, 1, 1, &a), 0);
	CU_ASSERT_FALSE(quota_is_shared(quota));
	CU_ASSERT_EQUAL(charge(2, 1, 1, &b), 0);
	CU_ASSERT_TRUE(quota_is_shared(quota));
	quota_charge_release(&a);
	quota_charge_release(&b);
}

static void requests_are_limited_per_second(void)
{
	struct quota_charge a = {0};
	uint64_t now = 5 * NSEC_PER_SEC;

	CU_ASSERT_EQUAL(charge(1, 0, 0, &a), 0);
	for (int i = 0; i < 10; i++)
		CU_ASSERT_EQUAL(quota_request(a.account, now, &denial), 0);
	CU_ASSERT_EQUAL(quota_request(a.account, now, &denial),
			QUOTA_E_EXCEEDED);
	CU_ASSERT_STRING_EQUAL(denial.limit, "requests_per_s");
	/* One more after a tenth of a second, not two. */
	now += NSEC_PER_SEC / 10;
	CU_ASSERT_EQUAL(quota_request(a.account, now, &denial), 0);
	CU_ASSERT_EQUAL(quota_request(a.account, now, &denial),
			QUOTA_E_EXCEEDED);
	quota_charge_release(&a);
}

struct item {
	struct fair_item item;
	int n;
};

static int pop(struct fair_queue *q)
{
	struct fair_item *i = fair_pop(q);

	return i ? list_entry(i, struct item, item)->n : -1;
}

static void sources_take_turns(void)
{
	struct fair_queue q;
	struct fair_source a, b;
	struct item items[6];

	fair_queue_init(&q);
	fair_source_init(&a);
	fair_source_init(&b);
	for (int i = 0; i < 6; i++) {
		fair_item_init(&items[i].item);
		items[i].n = i;
		fair_push(&q, i < 4 ? &a : &b, &items[i].item);
	}
	fair_remove(&items[1].item);
	CU_ASSERT_EQUAL(pop(&q), 0);
	CU_ASSERT_EQUAL(pop(&q), 4);
	CU_ASSERT_EQUAL(pop(&q), 2);
	CU_ASSERT_EQUAL(pop(&q), 5);
	CU_ASSERT_TRUE(fair_source_is_empty(&b));
	CU_ASSERT_EQUAL(pop(&q), 3);
	CU_ASSERT_EQUAL(pop(&q), -1);
	CU_ASSERT_TRUE(fair_queue_is_empty(&q));
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"a limit is reached and not passed",
		 a_limit_is_reached_and_not_passed},
		{"a denial says who, which limit, used, asked and key",
		 a_denial_says_who_which_limit_used_asked_and_key},
		{"an override leaves the other limits",
		 an_override_leaves_the_other_limits},
		{"huge requests do not wrap", huge_requests_do_not_wrap},
		{"a charge can be split and joined",
		 a_charge_can_be_split_and_joined},
		{"a forced charge goes beyond the limit",
		 a_forced_charge_goes_beyond_the_limit},
		{"sharing is noticed", sharing_is_noticed},
		{"requests are limited per second",
		 requests_are_limited_per_second},
		{"sources take turns", sources_take_turns},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "quota",
		 .pSetUpFunc = setup,
		 .pTearDownFunc = teardown,
		 .pTests = tests},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
