/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * File descriptors that close themselves.
 *
 * Ownership: fd_close() consumes; -1 means none.
 * Threads:   no state.
 */

#include <errno.h>
#include <unistd.h>

#include "base/base.h"

/* Keeps errno. Return: -1, always. @fd may be -1. */
static inline int fd_close(int fd)
{
	int saved_errno = errno;

	if (fd >= 0)
		(void)close(fd);
	errno = saved_errno;
	return -1;
}
DEFINE_CLEANUP(int, fd_close);
