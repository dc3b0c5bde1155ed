/* SPDX-License-Identifier: MIT */
#include "run/lookup.h"

#include <errno.h>
#include <limits.h>

#include "run/target.h"

bool look_up(const struct run *run, const struct call *call, int dirfd,
	     uint64_t path_address, bool no_follow, struct lookup *ret)
{
	char path[PATH_MAX];

	if (target_read_string(call_tid(call), path_address, path,
			       sizeof(path)) < 0) {
		call_continue(call);
		return false;
	}
	if (mirror_is_interesting(path) && call_is_alive(call) &&
	    mirror_look(run->mirror, path, ret->at.outside)) {
		ret->at.place = PLACE_OUTSIDE;
		return true;
	}
	if (!resolve_is_interesting(run->node, path) &&
	    (no_follow ||
	     !resolve_is_link(run->node, call_tid(call), dirfd, path))) {
		call_continue(call);
		return false;
	}
	resolve(run->node, call_tid(call), dirfd, path, no_follow, &ret->at);
	ret->object.kind = NODE_OTHER;
	if (ret->at.place == PLACE_FD || ret->at.place == PLACE_FDINFO)
		node_identify(run->node, ret->at.pid, ret->at.fd, &ret->object);
	if (ret->at.place == PLACE_ELSEWHERE || !call_is_alive(call)) {
		call_continue(call);
		return false;
	}
	switch (ret->at.place) {
	case PLACE_MISSING:
		call_fail(call, ENOENT);
		return false;
	case PLACE_NOT_A_DIRECTORY:
		call_fail(call, ENOTDIR);
		return false;
	default:
		return true;
	}
}
