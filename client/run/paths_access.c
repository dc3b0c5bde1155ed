/* SPDX-License-Identifier: MIT */
/* Calls that ask what may be done with a path, and for its attributes. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "run/lookup.h"

/* Everybody in the run may use the heaps; nobody may execute one. */
static void do_access(struct run *run, const struct call *call, int dirfd,
		      uint64_t path, int mode, bool no_follow)
{
	struct lookup found;

	if (!look_up(run, call, dirfd, path, no_follow, &found))
		return;
	switch (found.at.place) {
	case PLACE_DIRECTORY:
		call_return(call, 0);
		break;
	case PLACE_HEAP:
		if (mode & ~(R_OK | W_OK | X_OK))
			call_fail(call, EINVAL);
		else if ((mode & X_OK) ||
			 (mode && !node_may_use(run->node, call_tid(call))))
			call_fail(call, EACCES);
		else
			call_return(call, 0);
		break;
	case PLACE_OUTSIDE:
		if (access(found.at.outside, mode) == 0)
			call_return(call, 0);
		else
			call_fail(call, errno);
		break;
	default:
		call_continue(call);
	}
}

void paths_access(struct run *run, const struct call *call)
{
	do_access(run, call, AT_FDCWD, call_arg(call, 0), call_int(call, 1),
		  false);
}

/* Serves faccessat2() too; faccessat() itself has no flags argument. */
void paths_faccessat(struct run *run, const struct call *call)
{
	do_access(run, call, call_int(call, 0), call_arg(call, 1),
		  call_int(call, 2), false);
}

/* Nothing here has extended attributes; without this, ls -l complains. */
static void do_xattr(struct run *run, const struct call *call, bool no_follow,
		     bool listing)
{
	struct lookup found;

	if (!look_up(run, call, AT_FDCWD, call_arg(call, 0), no_follow, &found))
		return;
	switch (found.at.place) {
	case PLACE_DIRECTORY:
	case PLACE_HEAP:
	case PLACE_OUTSIDE:
		if (listing)
			call_return(call, 0);
		else
			call_fail(call, ENODATA);
		break;
	default:
		call_continue(call);
	}
}

void paths_getxattr(struct run *run, const struct call *call)
{
	do_xattr(run, call, false, false);
}

void paths_lgetxattr(struct run *run, const struct call *call)
{
	do_xattr(run, call, true, false);
}

void paths_listxattr(struct run *run, const struct call *call)
{
	do_xattr(run, call, false, true);
}

void paths_llistxattr(struct run *run, const struct call *call)
{
	do_xattr(run, call, true, true);
}
