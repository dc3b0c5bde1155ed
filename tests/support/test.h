/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What every CUnit program of the project shares.
 *
 * Ownership: nothing is kept.
 * Threads:   the main thread only.
 */

#include <stdlib.h>

#include <CUnit/CUnit.h>

/* A requirement of a test: when it fails the test ends there (setup only). */
#define T_REQUIRE(cond)                                                        \
	do {                                                                   \
		int t_ok_ = !!(cond);                                          \
		CU_assertImplementation(t_ok_, __LINE__, #cond, __FILE__, "",  \
					CU_TRUE);                              \
		if (!t_ok_)                                                    \
			abort(); /* for compilers: CUnit has longjmp()ed */    \
	} while (0)

#define T_SKIP 77 /* exit status of a program that could not run here */

/**
 * t_main() - run the suites of a test program
 *
 * Options: -s SUITE and -t TEST run only that one; -l lists.
 *
 * Return: EXIT_SUCCESS, or EXIT_FAILURE when a test failed or none ran.
 */
int t_main(int argc, char **argv, CU_SuiteInfo *suites);

/* Ends the program as skipped, with @reason on standard output. */
_Noreturn void t_skip(const char *reason);
