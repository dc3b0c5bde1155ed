/* SPDX-License-Identifier: MIT */
/* Calls that open a path. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "run/fdinfo.h"
#include "run/lookup.h"
#include "run/target.h"
#include "run/util.h"

/* The order of refusals is the kernel's. Return: 0 or an errno > 0. */
static int check_heap_flags(int flags)
{
	if ((flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
		return EEXIST;
	if (flags & O_DIRECTORY)
		return ENOTDIR;
	return flags & O_DIRECT ? EINVAL : 0;
}

static void open_heap(const struct run *run, const struct call *call,
		      const struct node_heap *heap, int flags)
{
	_cleanup_(fd_closep) int fd = -1;
	int kept = O_ACCMODE | O_APPEND | O_NONBLOCK | O_DSYNC | O_SYNC;
	int err;

	/*
	 * An O_PATH fd cannot be put into another process; one that is open
	 * for reading serves where it is only passed on.
	 */
	if (flags & O_PATH)
		flags &= O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	err = check_heap_flags(flags);
	if (!err && !node_may_use(run->node, call_tid(call)))
		err = EACCES;
	if (err) {
		call_fail(call, err);
		return;
	}
	fd = node_open_heap(heap, flags & kept);
	if (fd < 0)
		call_fail(call, -fd);
	else
		call_return_fd(call, fd, flags & O_CLOEXEC);
}

static void open_directory(const struct run *run, const struct call *call,
			   int flags)
{
	_cleanup_(fd_closep) int fd = -1;

	if (flags & O_PATH) {
		flags &= O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC; /* as above */
	} else if ((flags & O_CREAT) || (flags & O_ACCMODE) != O_RDONLY) {
		call_fail(call, EISDIR);
		return;
	}
	flags &= ~(O_EXCL | O_NOCTTY | O_TRUNC);
	fd = node_open_directory(run->node, flags);
	if (fd < 0)
		call_fail(call, -fd);
	else
		call_return_fd(call, fd, flags & O_CLOEXEC);
}

/* Opening /proc/<pid>/fd/<n>: a dma-buf cannot be opened a second time. */
static void open_fd(const struct run *run, const struct call *call,
		    const struct lookup *found, int flags)
{
	if ((found->object.kind == NODE_BUFFER ||
	     found->object.kind == NODE_BUFFER_PATH) &&
	    !(flags & O_PATH))
		call_fail(call, ENXIO);
	else if (found->object.kind == NODE_HEAP_PATH && !(flags & O_PATH))
		open_heap(run, call, found->object.heap, flags);
	else
		call_continue(call);
}

static void open_fdinfo(const struct run *run, const struct call *call,
			const struct lookup *found, int flags)
{
	_cleanup_(fd_closep) int fd = -1;

	if (found->object.kind != NODE_BUFFER || (flags & O_PATH) ||
	    (flags & O_ACCMODE) != O_RDONLY || (flags & O_DIRECTORY)) {
		call_continue(call);
		return;
	}
	fd = fdinfo_open(run->names, found->at.pid, found->at.fd,
			 &found->object);
	if (fd < 0)
		call_continue(call);
	else
		call_return_fd(call, fd, flags & O_CLOEXEC);
}

/* For reading only: what is written there is the run's, or another's. */
static void open_outside(const struct call *call, const char *path, int flags)
{
	_cleanup_(fd_closep) int fd = -1;

	if ((flags & O_ACCMODE) != O_RDONLY || (flags & O_CREAT)) {
		call_fail(call, EACCES);
		return;
	}
	fd = open(path, (flags & (O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK)) |
				O_CLOEXEC);
	if (fd < 0)
		call_fail(call, errno);
	else
		call_return_fd(call, fd, flags & O_CLOEXEC);
}

/* --strict: the caller's own maps. Return: whether the call was answered. */
static bool open_maps(const struct run *run, const struct call *call,
		      uint64_t path_address, int flags)
{
	_cleanup_(fd_closep) int fd = -1;
	char path[64], own[64];
	pid_t pid;

	if (!run->strict || (flags & O_ACCMODE) != O_RDONLY ||
	    target_read_string(call_tid(call), path_address, path,
			       sizeof(path)) < 0 ||
	    strncmp(path, "/proc/", 6))
		return false;
	pid = target_tgid(call_tid(call));
	(void)snprintf(own, sizeof(own), "/proc/%d/maps", (int)pid);
	if (strcmp(path, "/proc/self/maps") && strcmp(path, own))
		return false;
	fd = fdinfo_open_maps(run->names, pid);
	if (fd < 0 || !call_is_alive(call))
		return false;
	call_return_fd(call, fd, flags & O_CLOEXEC);
	return true;
}

static void do_open(struct run *run, const struct call *call, int dirfd,
		    uint64_t path_address, int flags)
{
	struct lookup found;

	if (open_maps(run, call, path_address, flags))
		return;
	if (!look_up(run, call, dirfd, path_address, flags & O_NOFOLLOW,
		     &found))
		return;
	switch (found.at.place) {
	case PLACE_DIRECTORY:
		open_directory(run, call, flags);
		break;
	case PLACE_HEAP:
		open_heap(run, call, found.at.heap, flags);
		break;
	case PLACE_FD:
		open_fd(run, call, &found, flags);
		break;
	case PLACE_FDINFO:
		open_fdinfo(run, call, &found, flags);
		break;
	case PLACE_OUTSIDE:
		open_outside(call, found.at.outside, flags);
		break;
	default: /* look_up() has answered */
		break;
	}
}

void paths_open(struct run *run, const struct call *call)
{
	do_open(run, call, AT_FDCWD, call_arg(call, 0), call_int(call, 1));
}

void paths_creat(struct run *run, const struct call *call)
{
	do_open(run, call, AT_FDCWD, call_arg(call, 0),
		O_CREAT | O_WRONLY | O_TRUNC);
}

void paths_openat(struct run *run, const struct call *call)
{
	do_open(run, call, call_int(call, 0), call_arg(call, 1),
		call_int(call, 2));
}

/*
 * A lookup that may not leave its directory cannot lead to ours, unless it
 * begins there; the kernel answers those from the private directory.
 */
void paths_openat2(struct run *run, const struct call *call)
{
	struct open_how how = {0};

	if (call_arg(call, 3) < sizeof(how) ||
	    target_read(call_tid(call), call_arg(call, 2), &how, sizeof(how)) ||
	    (how.resolve & RESOLVE_IN_ROOT) || how.flags > UINT32_MAX)
		call_continue(call);
	else
		do_open(run, call, call_int(call, 0), call_arg(call, 1),
			(int)how.flags);
}
