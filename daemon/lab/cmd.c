/* SPDX-License-Identifier: MIT */
#include "lab/cmd.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void _printf_(1, 0) print_error(const char *format, va_list args)
{
	fprintf(stderr, "dmaheap-lab: ");
	vfprintf(stderr, format, args);
	fprintf(stderr, "\n");
}

int lab_fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print_error(format, args);
	va_end(args);
	return LAB_EXIT_FAILED;
}

int lab_usage(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print_error(format, args);
	va_end(args);
	fprintf(stderr, "dmaheap-lab --help lists what there is\n");
	return LAB_EXIT_USAGE;
}

static int write_all(FILE *to, const struct strbuf *text)
{
	size_t n = text->s ? fwrite(text->s, 1, text->len, to) : 0;

	return n == text->len && fflush(to) == 0 ? 0 : -errno;
}

int lab_write(const char *path, const struct strbuf *text)
{
	FILE *file;
	int r, e;

	if (strbuf_failed(text))
		return lab_fail("%s", strerror(ENOMEM));
	if (!path) {
		r = write_all(stdout, text);
		return r ? lab_fail("standard output: %s", strerror(-r))
			 : LAB_EXIT_OK;
	}
	file = fopen(path, "we");
	if (!file)
		return lab_fail("%s: %s", path, strerror(errno));
	r = write_all(file, text);
	e = fclose(file) ? errno : 0;
	if (r || e)
		return lab_fail("%s: %s", path, strerror(r ? -r : e));
	return LAB_EXIT_OK;
}
