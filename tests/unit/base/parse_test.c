/* SPDX-License-Identifier: MIT */
#include "base/parse.h"

#include <errno.h>

#include "support/test.h"

static void numbers_are_digits_alone(void)
{
	uint64_t v = 7;

	CU_ASSERT_EQUAL(parse_u64("18446744073709551615", &v), 0);
	CU_ASSERT_EQUAL(v, UINT64_MAX);
	CU_ASSERT_EQUAL(parse_u64("18446744073709551616", &v), -ERANGE);
	CU_ASSERT_EQUAL(parse_u64("", &v), -EINVAL);
	CU_ASSERT_EQUAL(parse_u64("-1", &v), -EINVAL);
	CU_ASSERT_EQUAL(parse_u64("+1", &v), -EINVAL);
	CU_ASSERT_EQUAL(parse_u64(" 1", &v), -EINVAL);
	CU_ASSERT_EQUAL(parse_u64("1 ", &v), -EINVAL);
	CU_ASSERT_EQUAL(parse_u64("0x10", &v), -EINVAL);
	CU_ASSERT_EQUAL(v, UINT64_MAX);
}

static void sizes_take_one_binary_unit(void)
{
	uint64_t v = 7;

	CU_ASSERT_EQUAL(parse_size("4096", &v), 0);
	CU_ASSERT_EQUAL(v, 4096);
	CU_ASSERT_EQUAL(parse_size("3K", &v), 0);
	CU_ASSERT_EQUAL(v, 3072);
	CU_ASSERT_EQUAL(parse_size("2T", &v), 0);
	CU_ASSERT_EQUAL(v, UINT64_C(2) << 40);
	CU_ASSERT_EQUAL(parse_size("16777216T", &v), -ERANGE);
	CU_ASSERT_EQUAL(parse_size("1k", &v), -EINVAL);
	CU_ASSERT_EQUAL(parse_size("1KB", &v), -EINVAL);
	CU_ASSERT_EQUAL(parse_size("1.5G", &v), -EINVAL);
	CU_ASSERT_EQUAL(parse_size("K", &v), -EINVAL);
	CU_ASSERT_EQUAL(v, UINT64_C(2) << 40);
}

static void switches_have_words(void)
{
	bool on = false;

	CU_ASSERT_EQUAL(parse_bool("yes", &on), 0);
	CU_ASSERT_TRUE(on);
	CU_ASSERT_EQUAL(parse_bool("off", &on), 0);
	CU_ASSERT_FALSE(on);
	CU_ASSERT_EQUAL(parse_bool("On", &on), -EINVAL);
	CU_ASSERT_EQUAL(parse_bool("", &on), -EINVAL);
}

static void lists_are_words_between_blanks_and_commas(void)
{
	const char *list = " 8, 4\t0,";
	char word[2] = "x";

	CU_ASSERT_EQUAL(parse_word(&list, word, sizeof(word)), 1);
	CU_ASSERT_STRING_EQUAL(word, "8");
	CU_ASSERT_EQUAL(parse_word(&list, word, sizeof(word)), 1);
	CU_ASSERT_EQUAL(parse_word(&list, word, sizeof(word)), 1);
	CU_ASSERT_STRING_EQUAL(word, "0");
	CU_ASSERT_EQUAL(parse_word(&list, word, sizeof(word)), 0);
	list = "10";
	CU_ASSERT_EQUAL(parse_word(&list, word, sizeof(word)), -ERANGE);
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"numbers are digits alone", numbers_are_digits_alone},
		{"sizes take one binary unit", sizes_take_one_binary_unit},
		{"switches have words", switches_have_words},
		{"lists are words between blanks and commas",
		 lists_are_words_between_blanks_and_commas},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "parse", .pTests = tests},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
