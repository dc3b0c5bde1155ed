/* SPDX-License-Identifier: MIT */
#include "base/err.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static bool trace_on;

void err_set_trace(bool on)
{
	trace_on = on;
}

static void print(const char *what, int r, const char *func, const char *file,
		  int line)
{
	if (trace_on)
		fprintf(stderr, "%s: %s() %s:%d: %s\n", what, func, file, line,
			r < 0 ? strerror(-r) : "outcome");
}

int err_raise_slow(int r, const char *func, const char *file, int line)
{
	print("raised", r, func, file, line);
	return r;
}

int err_trace_slow(int r, const char *func, const char *file, int line)
{
	print("passed", r, func, file, line);
	return r;
}

int err_fold_slow(int r, const char *func, const char *file, int line)
{
	print("folded", r, func, file, line);
	return r > 0 ? -ENOTRECOVERABLE : r;
}
