/* SPDX-License-Identifier: MIT */
/*
 * The calls of --strict on an fd: refusals that a memfd does not know. What is
 * no object of ours, and what a memfd answers as a dma-buf does, goes on to the
 * kernel.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "run/maps.h"
#include "run/resolve.h"
#include "run/run.h"
#include "run/target.h"

/*
 * What fd @number of the caller is. Return: false when the call has been passed
 * on, because it is neither a heap nor a buffer.
 */
static bool ours(struct run *run, const struct call *call, int number,
		 struct node_object *ret)
{
	node_identify(run->node, call_tid(call), number, ret);
	if ((ret->kind == NODE_HEAP || ret->kind == NODE_BUFFER) &&
	    call_is_alive(call))
		return true;
	call_continue(call);
	return false;
}

static bool is_ours(const struct run *run, const struct call *call, int number,
		    struct node_object *ret)
{
	node_identify(run->node, call_tid(call), number, ret);
	return ret->kind == NODE_HEAP || ret->kind == NODE_BUFFER;
}

/* Whether the fd's access mode allows reading, or writing. */
static bool may(const struct call *call, int number, bool writing)
{
	unsigned int flags;

	if (target_fd_flags(call_tid(call), number, &flags))
		return false;
	return (flags & O_ACCMODE) == O_RDWR ||
	       (flags & O_ACCMODE) ==
		       (unsigned int)(writing ? O_WRONLY : O_RDONLY);
}

void strict_lseek(struct run *run, const struct call *call)
{
	struct node_object object;
	int64_t offset = (int64_t)call_arg(call, 1);
	int whence = call_int(call, 2);

	if (!ours(run, call, call_int(call, 0), &object))
		return;
	if (object.kind == NODE_HEAP)
		call_fail(call, ESPIPE);
	else if (offset == 0 && whence == SEEK_END)
		call_return(call, object.st.st_size);
	else if (offset == 0 && whence == SEEK_SET)
		call_return(call, 0);
	else
		call_fail(call, EINVAL);
}

void strict_read(struct run *run, const struct call *call)
{
	struct node_object object;

	if (ours(run, call, call_int(call, 0), &object))
		call_fail(call,
			  may(call, call_int(call, 0), false) ? EINVAL : EBADF);
}

void strict_write(struct run *run, const struct call *call)
{
	struct node_object object;

	if (ours(run, call, call_int(call, 0), &object))
		call_fail(call,
			  may(call, call_int(call, 0), true) ? EINVAL : EBADF);
}

/* Access through /proc/<pid>/mem, at an address of a buffer's mapping. */
static bool is_mem_of_buffer(const struct call *call,
			     const struct node_object *object)
{
	int pid, used = 0;

	return object->kind == NODE_OTHER &&
	       sscanf(object->link, "/proc/%d/mem%n", &pid, &used) == 1 &&
	       used > 0 && !object->link[used] &&
	       maps_has_buffer(pid, call_arg(call, 3), call_arg(call, 2));
}

/* pread() and the like; preadv2() at -1 is a readv(), refused all the same. */
void strict_positional(struct run *run, const struct call *call)
{
	struct node_object object;

	node_identify(run->node, call_tid(call), call_int(call, 0), &object);
	if ((object.kind == NODE_HEAP || object.kind == NODE_BUFFER) &&
	    call_is_alive(call))
		call_fail(call, ESPIPE);
	else if (is_mem_of_buffer(call, &object) && call_is_alive(call))
		call_fail(call, EIO);
	else
		call_continue(call);
}

void strict_ftruncate(struct run *run, const struct call *call)
{
	struct node_object object;

	if (ours(run, call, call_int(call, 0), &object))
		call_fail(call, EINVAL);
}

void strict_truncate(struct run *run, const struct call *call)
{
	struct node_object object;
	struct resolved at;
	char path[PATH_MAX];

	at.place = PLACE_ELSEWHERE;

	if (target_read_string(call_tid(call), call_arg(call, 0), path,
			       sizeof(path)) >= 0 &&
	    resolve_is_interesting(run->node, path))
		resolve(run->node, call_tid(call), AT_FDCWD, path, false, &at);
	if (at.place == PLACE_FD)
		node_identify(run->node, at.pid, at.fd, &object);
	if (at.place == PLACE_HEAP ||
	    (at.place == PLACE_FD && object.kind == NODE_BUFFER))
		call_fail(call, EINVAL);
	else
		call_continue(call);
}

void strict_fallocate(struct run *run, const struct call *call)
{
	struct node_object object;

	if (!ours(run, call, call_int(call, 0), &object))
		return;
	if ((int64_t)call_arg(call, 2) < 0 || (int64_t)call_arg(call, 3) <= 0)
		call_fail(call, EINVAL);
	else
		call_fail(call,
			  may(call, call_int(call, 0), true) ? ENODEV : EBADF);
}

/* fsync(), fdatasync(), readahead(): EINVAL on both objects. */
void strict_invalid(struct run *run, const struct call *call)
{
	struct node_object object;

	if (ours(run, call, call_int(call, 0), &object))
		call_fail(call, EINVAL);
}

/* sync_file_range() */
void strict_espipe(struct run *run, const struct call *call)
{
	struct node_object object;

	if (ours(run, call, call_int(call, 0), &object))
		call_fail(call, ESPIPE);
}

static void refuse_either(struct run *run, const struct call *call, int first,
			  int second)
{
	struct node_object object;

	if ((is_ours(run, call, first, &object) ||
	     is_ours(run, call, second, &object)) &&
	    call_is_alive(call))
		call_fail(call, EINVAL);
	else
		call_continue(call);
}

void strict_sendfile(struct run *run, const struct call *call)
{
	refuse_either(run, call, call_int(call, 0), call_int(call, 1));
}

/* copy_file_range() and splice(): an offset stands between the two fds. */
void strict_transfer(struct run *run, const struct call *call)
{
	refuse_either(run, call, call_int(call, 0), call_int(call, 2));
}

void strict_fsetxattr(struct run *run, const struct call *call)
{
	struct node_object object;

	if (ours(run, call, call_int(call, 0), &object))
		call_fail(call, EPERM);
}

bool strict_stat_object(const struct node *node,
			const struct node_object *object, struct stat *ret)
{
	switch (object->kind) {
	case NODE_HEAP:
	case NODE_HEAP_PATH:
		node_stat_heap(node, object->heap, ret);
		return true;
	case NODE_BUFFER:
	case NODE_BUFFER_PATH:
		/* An anonymous inode has no type, and one link. */
		*ret = object->st;
		ret->st_mode &= ~(mode_t)S_IFMT;
		ret->st_nlink = 1;
		ret->st_blksize = 4096;
		ret->st_blocks = ret->st_size / 512;
		return true;
	default:
		return false;
	}
}

/* fstat(), and newfstatat() with AT_EMPTY_PATH and an empty path. */
void strict_fstat(struct run *run, const struct call *call)
{
	unsigned int to = call->req->data.nr == SYS_fstat ? 1 : 2;
	struct node_object object;
	struct stat st;
	char path[2];
	int r;

	if (to == 2 && target_read_string(call_tid(call), call_arg(call, 1),
					  path, 1) != 0) {
		call_continue(call);
		return;
	}
	node_identify(run->node, call_tid(call), call_int(call, 0), &object);
	if (!strict_stat_object(run->node, &object, &st) ||
	    !call_is_alive(call)) {
		call_continue(call);
		return;
	}
	r = target_write(call_tid(call), call_arg(call, to), &st, sizeof(st));
	if (r)
		call_fail(call, -r);
	else
		call_return(call, 0);
}

/* A reopened memfd shows O_LARGEFILE, a dma-buf its access mode only. */
static void get_flags(const struct call *call)
{
	unsigned int flags;
	int r = target_fd_flags(call_tid(call), call_int(call, 0), &flags);

	if (r)
		call_continue(call);
	else
		call_return(call, flags & ~(unsigned int)(MAPS_O_LARGEFILE |
							  O_CLOEXEC));
}

void strict_fcntl(struct run *run, const struct call *call)
{
	struct node_object object;
	int cmd = call_int(call, 1);

	if (!ours(run, call, call_int(call, 0), &object))
		return;
	switch (cmd) {
	case F_GETFL:
		if (object.kind == NODE_BUFFER)
			get_flags(call);
		else
			call_continue(call);
		break;
	case F_SETFL:
		if (call_arg(call, 2) & O_DIRECT)
			call_fail(call, EINVAL);
		else
			call_continue(call);
		break;
	default: /* leases and seals */
		call_fail(call, EINVAL);
	}
}
