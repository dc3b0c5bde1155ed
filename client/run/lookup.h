/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Lookup: where the path of a trapped call leads.
 *
 * A handler reads the path; when its text or where it leads is not ours, the
 * kernel does the call. What cannot be read (a bad pointer, a process that is
 * not dumpable) is the kernel's to answer as well.
 *
 * Units:     none.
 * Ownership: a struct lookup owns nothing.
 * Threads:   the supervisor's.
 */

#include "run/resolve.h"
#include "run/run.h"

struct lookup {
	struct resolved at;
	struct node_object object; /* of PLACE_FD */
};

/* Return: false when the call has been answered: with the error that there is
 * nothing at the path, or by the kernel, to which it was passed on. */
bool look_up(const struct run *run, const struct call *call, int dirfd,
	     uint64_t path_address, bool no_follow, struct lookup *ret);
