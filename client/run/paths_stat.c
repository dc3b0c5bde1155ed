/* SPDX-License-Identifier: MIT */
/* Calls that tell what is at a path. */
#include <errno.h>
#include <fcntl.h>
#include <linux/stat.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "run/lookup.h"
#include "run/target.h"
#include "run/util.h"

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
	default:
		call_continue(call);
		return false;
	}
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
	if (found.at.place == PLACE_DIRECTORY || found.at.place == PLACE_HEAP) {
		call_fail(call, EINVAL);
		return;
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
