/* SPDX-License-Identifier: MIT */
#include "run/util.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>

void run_message(const char *fmt, ...)
{
	static const char prefix[] = "dmaheap-run: ";
	char line[1024];
	size_t used = sizeof(prefix) - 1;
	int saved_errno = errno;
	int n;
	va_list ap;

	memcpy(line, prefix, used);
	va_start(ap, fmt);
	n = vsnprintf(line + used, sizeof(line) - used - 1, fmt, ap);
	va_end(ap);
	if (n > 0)
		used += (size_t)n < sizeof(line) - used - 1
				? (size_t)n
				: sizeof(line) - used - 2;
	line[used++] = '\n';
	if (write(STDERR_FILENO, line, used) < 0)
		errno = 0; /* nobody is left to tell */
	errno = saved_errno;
}

/* The smallest of @kept that is at least @from; INT_MAX when there is none. */
static int next_kept(const int *kept, size_t n, int from)
{
	int next = INT_MAX;

	for (size_t i = 0; i < n; i++)
		if (kept[i] >= from && kept[i] < next)
			next = kept[i];
	return next;
}

void fds_close_others(const int *kept, size_t n)
{
	int from = 0, next;

	while (from >= 0 && from < INT_MAX) {
		next = next_kept(kept, n, from);
		if (next > from)
			(void)close_range((unsigned int)from,
					  (unsigned int)next - 1, 0);
		if (next == INT_MAX)
			return;
		from = next + 1;
	}
}

void fds_fill_standard(void)
{
	int fd;

	/* open() takes the lowest free number. */
	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd > STDERR_FILENO)
		(void)close(fd);
}
