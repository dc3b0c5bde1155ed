/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The seccomp filter of the program: which system calls the supervisor sees.
 *
 * Everything that it does not name is allowed without a look at its arguments,
 * so that the kernel's cache of such calls makes it free. System calls of
 * another architecture (i386, x32) are notified too: the supervisor refuses
 * them aloud.
 *
 * Ownership: the caller's array.
 * Threads:   pure.
 */

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>

#define FILTER_MAX_INSNS 512u

struct filter_options {
	bool strict;     /* the calls of --strict as well */
	bool watch_exit; /* exit and exit_group, for the report of leaks */
};

/**
 * filter_build() - write the filter's program
 * @insns: receives at most FILTER_MAX_INSNS instructions
 *
 * Return: the number of instructions; never 0.
 */
size_t filter_build(struct sock_filter insns[FILTER_MAX_INSNS],
		    const struct filter_options *options);

/**
 * filter_install() - NO_NEW_PRIVS and the filter, for the calling thread
 *
 * The filter asks for SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, so that a signal
 * with a handler does not restart a call that the supervisor works on.
 *
 * Return: the listener's fd (close-on-exec), or a negated errno: -EBUSY (a
 * listener is there already), -EINVAL (the kernel lacks what is needed),
 * -EPERM, -ENOSYS.
 */
int filter_install(const struct filter_options *options);
