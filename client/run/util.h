/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The few words that every file of dmaheap-run shares.
 *
 * Ownership: _cleanup_(fd_closep) closes an fd when its variable goes out of
 *            scope; TAKE_FD() passes it on. -1 means none.
 * Threads:   no state, but the message of run_message() goes out as one write.
 */

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#define _cleanup_(fn)  __attribute__((cleanup(fn)))
#define _printf_(f, a) __attribute__((format(printf, f, a)))
#define ARRAY_SIZE(a)  (sizeof(a) / sizeof((a)[0]))
#define NSEC_PER_MSEC  1000000ull
#define NSEC_PER_SEC   1000000000ull

/* The value of @fd, which is -1 afterwards. */
#define TAKE_FD(fd)                                                            \
	({                                                                     \
		int take_fd_ = (fd);                                           \
		(fd) = -1;                                                     \
		take_fd_;                                                      \
	})

/* Keeps errno. */
static inline void fd_closep(int *fd)
{
	int saved_errno = errno;

	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
	errno = saved_errno;
}

/* Closes every fd but @n of @kept. */
void fds_close_others(const int *kept, size_t n);

/* Opens /dev/null at those of 0, 1, 2 that are closed. */
void fds_fill_standard(void);

/* One line on standard error, "dmaheap-run: ..."; keeps errno. */
void run_message(const char *fmt, ...) _printf_(1, 2);
