/* SPDX-License-Identifier: MIT */
#include "support/fail_malloc.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
void *__real_aligned_alloc(size_t align, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);
char *__wrap_strdup(const char *s);

static _Atomic unsigned long fail_at, every, count;

void fail_malloc_at(unsigned long n)
{
	count = 0;
	fail_at = n;
}

void fail_malloc_every(unsigned long n)
{
	count = 0;
	every = n;
}

unsigned long fail_malloc_count(void)
{
	return count;
}

int fail_malloc_hit(void)
{
	return fail_at != 0 && count >= fail_at;
}

static int fails_now(void)
{
	unsigned long n = ++count;

	if (n != fail_at && (every == 0 || n % every != 0))
		return 0;
	errno = ENOMEM;
	return 1;
}

void *__wrap_malloc(size_t size)
{
	return fails_now() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails_now() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t size)
{
	return fails_now() ? NULL : __real_realloc(old, size);
}

void *__wrap_aligned_alloc(size_t align, size_t size)
{
	return fails_now() ? NULL : __real_aligned_alloc(align, size);
}

char *__wrap_strdup(const char *s)
{
	size_t size = strlen(s) + 1;
	char *copy = __wrap_malloc(size);

	return copy ? memcpy(copy, s, size) : NULL;
}
