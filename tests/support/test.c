/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <CUnit/Basic.h>
#include <CUnit/TestDB.h>

static int usage(const char *program)
{
	fprintf(stderr, "usage: %s [-l] [-s SUITE] [-t TEST]\n", program);
	return 2;
}

static int list(const CU_SuiteInfo *suites)
{
	for (; suites->pName; suites++)
		for (const CU_TestInfo *t = suites->pTests; t->pName; t++)
			printf("%s: %s\n", suites->pName, t->pName);
	return EXIT_SUCCESS;
}

/* Leaves active only what the options name; false when they name nothing. */
static bool select_tests(const char *suite_name, const char *test_name)
{
	CU_pTestRegistry registry = CU_get_registry();
	bool any = false;

	for (CU_pSuite s = registry->pSuite; s; s = s->pNext) {
		bool in_suite = !suite_name || !strcmp(s->pName, suite_name);

		CU_set_suite_active(s, in_suite);
		for (CU_pTest t = s->pTest; t; t = t->pNext) {
			bool on = in_suite &&
				  (!test_name || !strcmp(t->pName, test_name));

			CU_set_test_active(t, on);
			any |= on;
		}
	}
	return any;
}

int t_main(int argc, char **argv, CU_SuiteInfo *suites)
{
	const char *suite_name = NULL, *test_name = NULL;
	unsigned int n_run, n_failed;
	int opt;

	while ((opt = getopt(argc, argv, "ls:t:")) != -1) {
		if (opt == 'l')
			return list(suites);
		else if (opt == 's')
			suite_name = optarg;
		else if (opt == 't')
			test_name = optarg;
		else
			return usage(argv[0]);
	}

	if (CU_initialize_registry() != CUE_SUCCESS ||
	    CU_register_suites(suites) != CUE_SUCCESS) {
		fprintf(stderr, "CUnit: %s\n", CU_get_error_msg());
		return EXIT_FAILURE;
	}
	CU_set_fail_on_inactive(CU_FALSE);
	if (!select_tests(suite_name, test_name)) {
		fprintf(stderr, "%s: no such test\n", argv[0]);
		return EXIT_FAILURE;
	}

	CU_basic_set_mode(CU_BRM_VERBOSE);
	if (CU_basic_run_tests() != CUE_SUCCESS)
		fprintf(stderr, "CUnit: %s\n", CU_get_error_msg());
	n_run = CU_get_number_of_tests_run();
	/* A suite whose setup failed ran nothing: that is a failure as well. */
	n_failed = CU_get_number_of_tests_failed() +
		   CU_get_number_of_suites_failed();
	CU_cleanup_registry();
	return n_run > 0 && n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

void t_skip(const char *reason)
{
	printf("skipped: %s\n", reason);
	fflush(stdout);
	exit(T_SKIP);
}
