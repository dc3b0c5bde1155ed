/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "conf/ini.h"
#include "support/test.h"

static struct conf_error err;

static struct conf_entry entry(const char *value)
{
	return (struct conf_entry){.file = "a.conf",
				   .line = 3,
				   .key = "k",
				   .value = value};
}

static void shares_are_of_the_whole(void)
{
	struct conf_entry e = entry("75%");
	uint64_t v = 0;

	CU_ASSERT_EQUAL(conf_entry_percent_or_size(&e, 1000, &v, &err), 0);
	CU_ASSERT_EQUAL(v, 750);
	CU_ASSERT_EQUAL(conf_entry_percent_or_size(&e, UINT64_MAX, &v, &err),
			0);
	CU_ASSERT_EQUAL(v, UINT64_MAX / 100 * 75 + UINT64_MAX % 100 * 75 / 100);
	e = entry("64M");
	CU_ASSERT_EQUAL(conf_entry_percent_or_size(&e, 1000, &v, &err), 0);
	CU_ASSERT_EQUAL(v, MIB(64));
	for (const char *const *bad =
		     (const char *const[]){"101%", "%", "-1%", "7.5%", "5%%",
					   "x", NULL};
	     *bad; bad++) {
		e = entry(*bad);
		CU_ASSERT_EQUAL(conf_entry_percent_or_size(&e, 1, &v, &err),
				CONF_E_INVALID);
	}
	CU_ASSERT_STRING_EQUAL(err.text,
			       "a.conf:3: k: \"x\" is neither; allowed are a "
			       "size as 64M or a share from 0% to 100%");
}

static void refusals_say_what_is_allowed(void)
{
	static const char *const names[] = {"auto", "folio", "plain"};
	struct conf_entry e = entry("7");
	unsigned int choice = 9;
	uint64_t v = 42;
	bool b;

	CU_ASSERT_EQUAL(conf_entry_u64(&e, 8, 16, &v, &err), CONF_E_INVALID);
	CU_ASSERT_STRING_EQUAL(err.text,
			       "a.conf:3: k: \"7\" is out of range; allowed "
			       "are whole numbers from 8 to 16");
	CU_ASSERT_EQUAL(conf_entry_size(&e, KIB(4), MIB(1), &v, &err),
			CONF_E_INVALID);
	CU_ASSERT_STRING_EQUAL(err.text,
			       "a.conf:3: k: 7 is out of range; allowed are "
			       "4K to 1M");
	e = entry("seven");
	CU_ASSERT_EQUAL(conf_entry_u64(&e, 8, 16, &v, &err), CONF_E_INVALID);
	CU_ASSERT_STRING_EQUAL(err.text,
			       "a.conf:3: k: \"seven\" is no number; allowed "
			       "are whole numbers from 8 to 16");
	CU_ASSERT_EQUAL(conf_entry_size(&e, KIB(4), MIB(1), &v, &err),
			CONF_E_INVALID);
	CU_ASSERT_STRING_EQUAL(err.text,
			       "a.conf:3: k: \"seven\" is no size; write a "
			       "number with K, M, G or T, as in 64M");
	CU_ASSERT_EQUAL(conf_entry_bool(&e, &b, &err), CONF_E_INVALID);
	CU_ASSERT_STRING_EQUAL(err.text,
			       "a.conf:3: k: \"seven\" is neither on nor off; "
			       "allowed are on, yes, true, 1, off, no, false, "
			       "0");
	CU_ASSERT_EQUAL(conf_entry_enum(&e, names, 3, &choice, &err),
			CONF_E_INVALID);
	CU_ASSERT_STRING_EQUAL(err.text,
			       "a.conf:3: k: \"seven\" is unknown; allowed are "
			       "auto, folio, plain");
	CU_ASSERT_EQUAL(v, 42);
	CU_ASSERT_EQUAL(choice, 9);
}

static void good_values_are_returned(void)
{
	static const char *const names[] = {"auto", "folio", "plain"};
	struct conf_entry e = entry("folio");
	unsigned int choice = 9;
	uint64_t v = 0;
	bool b = false;

	CU_ASSERT_EQUAL(conf_entry_enum(&e, names, 3, &choice, &err), 0);
	CU_ASSERT_EQUAL(choice, 1);
	e = entry("16");
	CU_ASSERT_EQUAL(conf_entry_u64(&e, 8, 16, &v, &err), 0);
	CU_ASSERT_EQUAL(v, 16);
	e = entry("4K");
	CU_ASSERT_EQUAL(conf_entry_size(&e, KIB(4), MIB(1), &v, &err), 0);
	CU_ASSERT_EQUAL(v, 4096);
	e = entry("on");
	CU_ASSERT_EQUAL(conf_entry_bool(&e, &b, &err), 0);
	CU_ASSERT_TRUE(b);
}

static void a_long_foreign_value_is_cut_in_messages(void)
{
	char text[2000] = "";
	struct conf_entry e = entry(text);
	uint64_t v;

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	CU_ASSERT_EQUAL(conf_entry_u64(&e, 0, 1, &v, &err), CONF_E_INVALID);
	CU_ASSERT(strlen(err.text) < 200);
	e.key = text;
	CU_ASSERT_EQUAL(conf_entry_u64(&e, 0, 1, &v, &err), CONF_E_INVALID);
	CU_ASSERT(strlen(err.text) < sizeof(err.text));
}

static void sizes_are_written_as_they_are_read(void)
{
	char buf[24];

	CU_ASSERT_STRING_EQUAL(conf_format_size(buf, sizeof(buf), 0), "0");
	CU_ASSERT_STRING_EQUAL(conf_format_size(buf, sizeof(buf), 1000),
			       "1000");
	CU_ASSERT_STRING_EQUAL(conf_format_size(buf, sizeof(buf), KIB(1000)),
			       "1000K");
	CU_ASSERT_STRING_EQUAL(conf_format_size(buf, sizeof(buf), GIB(2048)),
			       "2T");
	CU_ASSERT_STRING_EQUAL(conf_format_size(buf, sizeof(buf), UINT64_MAX),
			       "18446744073709551615");
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"shares are of the whole", shares_are_of_the_whole},
		{"refusals say what is allowed", refusals_say_what_is_allowed},
		{"good values are returned", good_values_are_returned},
		{"a long foreign value is cut in messages",
		 a_long_foreign_value_is_cut_in_messages},
		{"sizes are written as they are read",
		 sizes_are_written_as_they_are_read},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "conf_value", .pTests = tests},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
