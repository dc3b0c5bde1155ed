/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <linux/dma-buf.h>
#include <linux/dma-heap.h>
#include <linux/fs.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "run/run.h"
#include "run/target.h"
#include "run/util.h"

/* The kernel looks at an ioctl's command as an unsigned int. */
static unsigned int command(const struct call *call)
{
	return (unsigned int)call_arg(call, 1);
}

/* Commands that the kernel's file layer answers for every file. */
static bool is_generic(unsigned int cmd)
{
	switch (cmd) {
	case FIOCLEX:
	case FIONCLEX:
	case FIONBIO:
	case FIOASYNC:
	case FIGETBSZ:
		return true;
	default:
		return false;
	}
}

void ioctls_ioctl(struct run *run, const struct call *call)
{
	struct node_object object;

	node_identify(run->node, call_tid(call), call_int(call, 0), &object);
	if (object.kind == NODE_OTHER || is_generic(command(call)) ||
	    !call_is_alive(call)) {
		call_continue(call);
		return;
	}
	switch (object.kind) {
	case NODE_HEAP:
		heap_ioctl(run, call, &object);
		break;
	case NODE_BUFFER:
		buffer_ioctl(run, call, &object);
		break;
	case NODE_SYNC_FILE:
		sync_file_ioctl(run, call);
		break;
	default:
		/* An O_PATH fd is EBADF, a directory ENOTTY, by itself. */
		call_continue(call);
	}
}

/*
 * An ALLOC argument as the kernel takes it: the command's size bits say how
 * much is read and written, its direction bits whether at all; what is not
 * given is zero, what is longer than the struct stays as it is.
 */
struct alloc_arg {
	uint64_t address;
	size_t in_bytes;
	size_t out_bytes;
	union {
		struct dma_heap_allocation_data data;
		uint8_t bytes[1u << _IOC_SIZEBITS];
	} u;
};

/* Return: 0 or an errno > 0. */
static int alloc_arg_read(const struct call *call, struct alloc_arg *arg)
{
	unsigned int cmd = command(call);

	arg->address = call_arg(call, 2);
	arg->in_bytes =
		(cmd >> _IOC_DIRSHIFT) & _IOC_WRITE ? _IOC_SIZE(cmd) : 0;
	arg->out_bytes =
		(cmd >> _IOC_DIRSHIFT) & _IOC_READ ? _IOC_SIZE(cmd) : 0;
	memset(&arg->u.data, 0, sizeof(arg->u.data));
	return -target_read(call_tid(call), arg->address, &arg->u,
			    arg->in_bytes);
}

/* Return: 0 or an errno > 0. */
static int alloc_arg_check(const struct dma_heap_allocation_data *data)
{
	uint64_t page = 4096;

	if (data->fd || data->heap_flags || data->len == 0 ||
	    data->len + page - 1 < data->len)
		return EINVAL;
	/* Access mode 3 would be invisible to the daemon's lease test. */
	if ((data->fd_flags & ~(uint32_t)(O_CLOEXEC | O_ACCMODE)) ||
	    (data->fd_flags & O_ACCMODE) == O_ACCMODE)
		return EINVAL;
	return 0;
}

/*
 * Whether the reply can be stored, found out by storing what is there: an fd
 * that the program never learns of could not be taken back.
 */
static int alloc_arg_probe(const struct call *call, const struct alloc_arg *arg)
{
	return -target_write(call_tid(call), arg->address, &arg->u,
			     arg->out_bytes);
}

/* Whether the daemon's sentence is that of an injected failure. */
static bool is_injected(const char *why)
{
	static const char text[] = DMAHEAP_INJECTED_TEXT;
	size_t n = strlen(why), n_text = sizeof(text) - 1;

	return n >= n_text && strcmp(why + n - n_text, text) == 0;
}

/* The daemon's answer in the words of the heap's driver, which knows no quota
 * and the like; what somebody injected is what he wants to be seen. */
static int alloc_errno(int r, const char *why)
{
	if (is_injected(why))
		return -r;
	switch (-r) {
	case EINVAL:
	case EMFILE:
		return -r;
	default:
		return ENOMEM;
	}
}

/* Puts the fd into the program and its number into the argument. */
static int hand_over(const struct call *call, struct alloc_arg *arg, int fd)
{
	const size_t offset = offsetof(struct dma_heap_allocation_data, fd);
	const size_t n_bytes = sizeof(arg->u.data.fd);
	int n;

	n = call_add_fd(call, fd, (int)(arg->u.data.fd_flags & O_CLOEXEC));
	if (n < 0)
		return -n;
	arg->u.data.fd = (uint32_t)n;
	if (arg->out_bytes <= offset)
		return 0;
	return -target_write(call_tid(call), arg->address + offset,
			     &arg->u.data.fd,
			     arg->out_bytes - offset < n_bytes
				     ? arg->out_bytes - offset
				     : n_bytes);
}

static void heap_alloc(struct run *run, const struct call *call,
		       const struct node_heap *heap)
{
	_cleanup_(fd_closep) int fd = -1;
	char why[DMAHEAP_ERROR_TEXT_MAX_BYTES] = "";
	struct dmaheap_alloc_report report;
	struct alloc_arg arg;
	struct stat st;
	int err;

	err = alloc_arg_read(call, &arg);
	if (!err)
		err = alloc_arg_check(&arg.u.data);
	if (!call_is_alive(call))
		return;
	if (!err)
		err = alloc_arg_probe(call, &arg);
	if (err) {
		call_fail(call, err);
		return;
	}

	pool_may_block(run->pool);
	fd = source_alloc(run->source, heap->name, arg.u.data.len,
			  arg.u.data.fd_flags, &report, why);
	if (fd < 0) {
		err = alloc_errno(fd, why);
	} else {
		if (fstat(fd, &st) == 0)
			names_forget(run->names, st.st_dev, st.st_ino);
		err = hand_over(call, &arg, fd);
	}
	report_alloc(run->report, call_tid(call), heap->name, arg.u.data.len,
		     err, why, fd < 0 ? NULL : &report, fd < 0 ? NULL : &st);
	if (err)
		call_fail(call, err);
	else
		call_return(call, 0);
}

void heap_ioctl(struct run *run, const struct call *call,
		const struct node_object *object)
{
	/* Only the number counts, whatever the magic. */
	if (_IOC_NR(command(call)) == 0)
		heap_alloc(run, call, object->heap);
	else
		call_fail(call, EINVAL);
}

static void buffer_sync(const struct call *call)
{
	struct dma_buf_sync sync;
	int r;

	r = target_read(call_tid(call), call_arg(call, 2), &sync, sizeof(sync));
	if (r)
		call_fail(call, -r);
	else if ((sync.flags & ~(uint64_t)DMA_BUF_SYNC_VALID_FLAGS_MASK) ||
		 !(sync.flags & DMA_BUF_SYNC_RW))
		call_fail(call, EINVAL);
	else
		call_return(call, 0);
}

/*
 * All three forms of the command pass a pointer to the string, also the one
 * that claims a 32-bit argument.
 */
static void buffer_set_name(struct run *run, const struct call *call,
			    const struct node_object *object)
{
	_cleanup_(fd_closep) int fd = -1;
	char name[DMAHEAP_NAME_MAX_BYTES];
	int r;

	r = target_read_string(call_tid(call), call_arg(call, 2), name,
			       sizeof(name));
	if (r < 0) {
		call_fail(call, r == -ENAMETOOLONG ? EINVAL : -r);
		return;
	}
	/*
	 * Callers take a failure for a failed allocation, and within the run
	 * the name is known: so a daemon that cannot be told is no failure.
	 */
	pool_may_block(run->pool);
	names_set(run->names, object->st.st_dev, object->st.st_ino, name);
	fd = target_fd_copy(call_tid(call), call_int(call, 0));
	if (fd >= 0 && call_is_alive(call))
		(void)source_set_name(run->source, fd, name);
	report_name(run->report, &object->st, name);
	call_return(call, 0);
}

static bool sync_flags_are_valid(uint32_t flags)
{
	return flags && !(flags & ~(uint32_t)DMA_BUF_SYNC_RW);
}

/* Puts a new sync file into the program. Return: its number or -errno. */
static int add_sync_file(struct run *run, const struct call *call)
{
	_cleanup_(fd_closep) int fd = node_open_sync_file(run->node);

	return fd < 0 ? fd : call_add_fd(call, fd, O_CLOEXEC);
}

static void buffer_export(struct run *run, const struct call *call)
{
	struct dma_buf_export_sync_file arg;
	uint64_t address = call_arg(call, 2);
	pid_t tid = call_tid(call);
	int r;

	r = target_read(tid, address, &arg, sizeof(arg));
	if (r == 0 && !sync_flags_are_valid(arg.flags))
		r = -EINVAL;
	if (r == 0)
		r = target_write(tid, address, &arg, sizeof(arg));
	if (r == 0 && call_is_alive(call)) {
		arg.fd = add_sync_file(run, call);
		r = arg.fd < 0 ? arg.fd
			       : target_write(tid, address, &arg, sizeof(arg));
	}
	if (r)
		call_fail(call, -r);
	else
		call_return(call, 0);
}

/* A sync file of the kernel's own whose fences have all signalled. */
static bool is_signalled(pid_t tid, int number)
{
	_cleanup_(fd_closep) int fd = target_fd_copy(tid, number);
	struct pollfd pollfd = {.fd = fd, .events = POLLIN};

	return fd >= 0 && poll(&pollfd, 1, 0) == 1;
}

/*
 * There is nothing here that a fence could hold up. One that is still pending
 * is refused rather than forgotten.
 */
static void buffer_import(struct run *run, const struct call *call)
{
	struct dma_buf_import_sync_file arg;
	struct node_object fence;
	int r;

	r = target_read(call_tid(call), call_arg(call, 2), &arg, sizeof(arg));
	if (r == 0 && !sync_flags_are_valid(arg.flags))
		r = -EINVAL;
	if (r == 0) {
		node_identify(run->node, call_tid(call), arg.fd, &fence);
		if (fence.kind == NODE_FOREIGN_SYNC_FILE)
			r = is_signalled(call_tid(call), arg.fd) ? 0 : -EBUSY;
		else if (fence.kind != NODE_SYNC_FILE)
			r = -EINVAL;
	}
	if (r)
		call_fail(call, -r);
	else
		call_return(call, 0);
}

/* DMA_BUF_SET_NAME with a pointer's size; equal to _B where those are 64-bit.
 */
void buffer_ioctl(struct run *run, const struct call *call,
		  const struct node_object *object)
{
	switch (command(call)) {
	case DMA_BUF_IOCTL_SYNC:
		buffer_sync(call);
		break;
	case DMA_BUF_SET_NAME_A:
	case DMA_BUF_SET_NAME_B:
		buffer_set_name(run, call, object);
		break;
	case DMA_BUF_IOCTL_EXPORT_SYNC_FILE:
		buffer_export(run, call);
		break;
	case DMA_BUF_IOCTL_IMPORT_SYNC_FILE:
		buffer_import(run, call);
		break;
	default:
		call_fail(call, ENOTTY);
	}
}
