/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include <jansson.h>

#include "lab/report.h"
#include "support/fail_malloc.h"
#include "support/test.h"

static const struct report_context context = {.policy = "8,4,0",
					      .seed = 7,
					      .profile = "phone",
					      .kind = "modelled"};

/* Return: NULL when memory ran out in report_new(). */
static struct report *make(void)
{
	struct report *report = NULL;

	if (report_new(&report, "name", "title"))
		return NULL;
	report_table(report, "A table", &context, "what|n|source");
	report_row(report, "%s|%d|%s", "first", 1, "x \"y\"");
	report_row(report, "second one|%d", 22);
	report_note(report, "a note");
	report_table(report, "Another", &context, "k");
	report_conclude(report, "It is %d.", 3);
	report_conclude(report, "So.");
	return report;
}

static void text_is_aligned_and_says_how_it_came(void)
{
	_cleanup_(strbuf_finip) struct strbuf sb = STRBUF_INIT;
	struct report *report = make();

	T_REQUIRE(report);
	CU_ASSERT_EQUAL(report_render_text(report, &sb), 0);
	CU_ASSERT_STRING_EQUAL(
		strbuf_string(&sb),
		"name: title\n"
		"\nA table\n"
		"[policy 8,4,0, seed 7, profile phone, dmaheap " DMAHEAP_VERSION
		"; modelled]\n"
		"  what        n   source\n"
		"  first        1  x \"y\"\n"
		"  second one  22\n"
		"a note\n"
		"\nAnother\n"
		"[policy 8,4,0, seed 7, profile phone, dmaheap " DMAHEAP_VERSION
		"; modelled]\n"
		"  k\n"
		"\nIt is 3. So.\n");
	CU_ASSERT_STRING_EQUAL(report_conclusion(report), "It is 3. So.");
	report_free(report);
}

static void json_says_the_same(void)
{
	_cleanup_(strbuf_finip) struct strbuf sb = STRBUF_INIT;
	struct report *report = make();
	json_t *root, *table;

	T_REQUIRE(report);
	CU_ASSERT_EQUAL(report_render_json(report, &sb), 0);
	root = json_loads(strbuf_string(&sb), 0, NULL);
	T_REQUIRE(root);
	CU_ASSERT_STRING_EQUAL(json_string_value(
				       json_object_get(root, "conclusion")),
			       "It is 3. So.");
	CU_ASSERT_EQUAL(json_array_size(json_object_get(root, "tables")), 2);
	table = json_array_get(json_object_get(root, "tables"), 0);
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(table, "seed")), 7);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_array_get(
				       json_array_get(json_object_get(table,
								      "rows"),
						      0),
				       2)),
			       "x \"y\"");
	json_decref(root);
	report_free(report);
}

static void memory_that_runs_out_is_noticed_at_the_end(void)
{
	FAIL_MALLOC_EACH({
		struct strbuf text = STRBUF_INIT, json = STRBUF_INIT;
		struct report *report = make();

		if (report) {
			int r = report_render_text(report, &text);
			int s = report_render_json(report, &json);

			CU_ASSERT(r == 0 || r == -ENOMEM);
			CU_ASSERT(s == 0 || s == -ENOMEM);
			CU_ASSERT_EQUAL(r == 0 && s == 0, !fail_malloc_hit());
		} else {
			CU_ASSERT(fail_malloc_hit());
		}
		strbuf_fini(&text);
		strbuf_fini(&json);
		report_free(report);
	});
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"text is aligned and says how it came",
		 text_is_aligned_and_says_how_it_came},
		{"JSON says the same", json_says_the_same},
		{"memory that runs out is noticed at the end",
		 memory_that_runs_out_is_noticed_at_the_end},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "lab_report", .pTests = tests},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
