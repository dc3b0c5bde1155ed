/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Makes one memory allocation of the program under test fail. Programs that
 * link test_fail_malloc have malloc, calloc, realloc, aligned_alloc and strdup
 * wrapped by the linker.
 *
 * Units:     allocations.
 * Ownership: nothing is kept.
 * Threads:   counts the allocations of all threads.
 */

/* The @n-th allocation from now fails, once; 1 is the next; 0: none fails. */
void fail_malloc_at(unsigned long n);

/* Each @n-th allocation fails from now on; 0: none. */
void fail_malloc_every(unsigned long n);

/* Return: allocations since fail_malloc_at(). */
unsigned long fail_malloc_count(void);

/*
 * Runs a block with the first, the second ... allocation failing until it needs
 * none that fails. In it, fail_malloc_hit() tells whether one has.
 */
#define FAIL_MALLOC_EACH(...)                                                  \
	do {                                                                   \
		unsigned long fail_n_ = 0;                                     \
		do {                                                           \
			fail_malloc_at(++fail_n_);                             \
			__VA_ARGS__;                                           \
		} while (fail_malloc_hit());                                   \
		fail_malloc_at(0);                                             \
	} while (0)

/* Return: 1 if the allocation that was to fail came, else 0. */
int fail_malloc_hit(void);
