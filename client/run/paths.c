/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <linux/stat.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "run/fdinfo.h"
#include "run/resolve.h"
#include "run/run.h"
#include "run/target.h"
#include "run/util.h"

/*
 * The model: a handler reads the path; when its text or where it leads is not
 * ours, the kernel does the call. What cannot be read (a bad pointer, a process
 * that is not dumpable) is the kernel's to answer as well.
 */
struct lookup {
	struct resolved at;
	struct node_object object; /* of PLACE_FD */
};

/* Return: false when the call has been passed on to the kernel. */
static bool look_up(const struct run *run, const struct call *call, int dirfd,
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
	return true;
}

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
	case PLACE_MISSING:
		call_fail(call, ENOENT);
		break;
	case PLACE_NOT_A_DIRECTORY:
		call_fail(call, ENOTDIR);
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
	case PLACE_ELSEWHERE:
		call_continue(call);
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

/* Return: whether @ret was set; otherwise the call has been answered. */
static bool stat_of(struct run *run, const struct call *call, int dirfd,
		    uint64_t path_address, bool no_follow, struct stat *ret)
{
	struct lookup found;

	if (!look_up(run, call, dirfd, path_address, no_follow, &found))
		return false;
	switch (found.at.place) {
	case PLACE_DIRECTORY:
		node_stat_directory(run->node, ret);
		return true;
	case PLACE_HEAP:
		node_stat_heap(run->node, found.at.heap, ret);
		return true;
	case PLACE_MISSING:
		call_fail(call, ENOENT);
		return false;
	case PLACE_NOT_A_DIRECTORY:
		call_fail(call, ENOTDIR);
		return false;
	case PLACE_FD:
		if (!no_follow && run->strict &&
		    strict_stat_object(run->node, &found.object, ret))
			return true;
		call_continue(call);
		return false;
	case PLACE_OUTSIDE:
		if ((no_follow ? lstat : stat)(found.at.outside, ret) == 0)
			return true;
		call_fail(call, errno);
		return false;
	case PLACE_FDINFO:
	case PLACE_ELSEWHERE:
		break;
	}
	call_continue(call);
	return false;
}

static void reply(const struct call *call, uint64_t address, const void *from,
		  size_t n_bytes, int64_t value)
{
	int r = target_write(call_tid(call), address, from, n_bytes);

	if (r)
		call_fail(call, -r);
	else
		call_return(call, value);
}

static void do_stat(struct run *run, const struct call *call, int dirfd,
		    uint64_t path, uint64_t to, bool no_follow)
{
	struct stat st;

	/* struct stat is the kernel's on both architectures. */
	if (stat_of(run, call, dirfd, path, no_follow, &st))
		reply(call, to, &st, sizeof(st), 0);
}

void paths_stat(struct run *run, const struct call *call)
{
	do_stat(run, call, AT_FDCWD, call_arg(call, 0), call_arg(call, 1),
		false);
}

void paths_lstat(struct run *run, const struct call *call)
{
	do_stat(run, call, AT_FDCWD, call_arg(call, 0), call_arg(call, 1),
		true);
}

void paths_newfstatat(struct run *run, const struct call *call)
{
	int flags = call_int(call, 3);

	if (run->strict && (flags & AT_EMPTY_PATH))
		strict_fstat(run, call);
	else
		do_stat(run, call, call_int(call, 0), call_arg(call, 1),
			call_arg(call, 2), flags & AT_SYMLINK_NOFOLLOW);
}

static struct statx_timestamp statx_time(const struct timespec *t)
{
	return (struct statx_timestamp){.tv_sec = t->tv_sec,
					.tv_nsec = (uint32_t)t->tv_nsec};
}

static void statx_from_stat(struct statx *to, const struct stat *st)
{
	memset(to, 0, sizeof(*to));
	to->stx_mask = STATX_BASIC_STATS;
	to->stx_blksize = (uint32_t)st->st_blksize;
	to->stx_nlink = (uint32_t)st->st_nlink;
	to->stx_uid = st->st_uid;
	to->stx_gid = st->st_gid;
	to->stx_mode = (uint16_t)st->st_mode;
	to->stx_ino = st->st_ino;
	to->stx_size = (uint64_t)st->st_size;
	to->stx_blocks = (uint64_t)st->st_blocks;
	to->stx_atime = statx_time(&st->st_atim);
	to->stx_mtime = statx_time(&st->st_mtim);
	to->stx_ctime = statx_time(&st->st_ctim);
	to->stx_rdev_major = major(st->st_rdev);
	to->stx_rdev_minor = minor(st->st_rdev);
	to->stx_dev_major = major(st->st_dev);
	to->stx_dev_minor = minor(st->st_dev);
}

static void statx_add_mount(struct statx *to, pid_t tid, int fd)
{
	struct statx real;
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)tid, fd);
	if (statx(AT_FDCWD, path, 0, STATX_MNT_ID, &real) == 0 &&
	    (real.stx_mask & STATX_MNT_ID)) {
		to->stx_mask |= STATX_MNT_ID;
		to->stx_mnt_id = real.stx_mnt_id;
	}
}

void paths_statx(struct run *run, const struct call *call)
{
	int flags = call_int(call, 2);
	struct node_object object;
	struct statx stx;
	struct stat st;

	if (flags & AT_EMPTY_PATH) {
		node_identify(run->node, call_tid(call), call_int(call, 0),
			      &object);
		if (!run->strict ||
		    !strict_stat_object(run->node, &object, &st) ||
		    !call_is_alive(call)) {
			call_continue(call);
			return;
		}
	} else if (!stat_of(run, call, call_int(call, 0), call_arg(call, 1),
			    flags & AT_SYMLINK_NOFOLLOW, &st)) {
		return;
	}
	statx_from_stat(&stx, &st);
	if (flags & AT_EMPTY_PATH)
		statx_add_mount(&stx, call_tid(call), call_int(call, 0));
	reply(call, call_arg(call, 4), &stx, sizeof(stx), 0);
}

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
	case PLACE_MISSING:
		call_fail(call, ENOENT);
		break;
	case PLACE_NOT_A_DIRECTORY:
		call_fail(call, ENOTDIR);
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

/* What a link of /proc/<pid>/fd says of an object of ours. */
static bool fd_link_text(const struct run *run, const struct lookup *found,
			 char to[128])
{
	char name[DMAHEAP_NAME_MAX_BYTES];

	switch (found->object.kind) {
	case NODE_BUFFER:
	case NODE_BUFFER_PATH:
		(void)names_get(run->names, found->object.st.st_dev,
				found->object.st.st_ino, name);
		(void)snprintf(to, 128, "/dmabuf:%s", name);
		return true;
	case NODE_HEAP:
	case NODE_HEAP_PATH:
		(void)snprintf(to, 128, NODE_PATH "/%s",
			       found->object.heap->name);
		return true;
	case NODE_DIRECTORY:
		(void)snprintf(to, 128, NODE_PATH);
		return true;
	case NODE_SYNC_FILE:
		(void)snprintf(to, 128, "anon_inode:sync_file");
		return true;
	default:
		return false;
	}
}

static void do_readlink(struct run *run, const struct call *call, int dirfd,
			uint64_t path, uint64_t to, int capacity_bytes)
{
	struct lookup found;
	char text[128];
	size_t length;

	if (!look_up(run, call, dirfd, path, true, &found))
		return;
	switch (found.at.place) {
	case PLACE_DIRECTORY:
	case PLACE_HEAP:
		call_fail(call, EINVAL);
		return;
	case PLACE_MISSING:
		call_fail(call, ENOENT);
		return;
	case PLACE_NOT_A_DIRECTORY:
		call_fail(call, ENOTDIR);
		return;
	default:
		break;
	}
	if (found.at.place != PLACE_FD || capacity_bytes <= 0 ||
	    !fd_link_text(run, &found, text)) {
		call_continue(call);
		return;
	}
	length = strlen(text);
	if (length > (size_t)capacity_bytes)
		length = (size_t)capacity_bytes;
	reply(call, to, text, length, (int64_t)length);
}

void paths_readlink(struct run *run, const struct call *call)
{
	do_readlink(run, call, AT_FDCWD, call_arg(call, 0), call_arg(call, 1),
		    call_int(call, 2));
}

void paths_readlinkat(struct run *run, const struct call *call)
{
	do_readlink(run, call, call_int(call, 0), call_arg(call, 1),
		    call_arg(call, 2), call_int(call, 3));
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
	case PLACE_MISSING:
		call_fail(call, ENOENT);
		break;
	case PLACE_NOT_A_DIRECTORY:
		call_fail(call, ENOTDIR);
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
