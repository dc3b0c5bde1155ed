/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The one function of a fuzz target. With clang's libFuzzer (preset fuzz) it
 * drives it; otherwise replay.c does, with the files of a corpus and mutants of
 * them.
 *
 * Ownership: the input is borrowed.
 * Threads:   one.
 */

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

/* A condition that must hold whatever the input: ends the program. */
#define FUZZ_REQUIRE(cond)                                                     \
	do {                                                                   \
		if (!(cond))                                                   \
			fuzz_fail(#cond, __FILE__, __LINE__);                  \
	} while (0)

_Noreturn void fuzz_fail(const char *cond, const char *file, int line);
