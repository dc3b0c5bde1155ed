/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <linux/sync_file.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "run/run.h"
#include "run/target.h"
#include "run/util.h"

/* The fence that every sync file here holds: one that has always signalled. */
static void fill_fence(struct sync_fence_info *fence)
{
	memset(fence, 0, sizeof(*fence));
	(void)snprintf(fence->obj_name, sizeof(fence->obj_name), "stub");
	(void)snprintf(fence->driver_name, sizeof(fence->driver_name), "stub");
	fence->status = 1;
}

/*
 * With num_fences 0 it asks how many there are; else there must be room for
 * all. Return: 0 or a negated errno.
 */
static int file_info(const struct call *call)
{
	struct sync_file_info info;
	struct sync_fence_info fence;
	pid_t tid = call_tid(call);
	int r;

	r = target_read(tid, call_arg(call, 2), &info, sizeof(info));
	if (r)
		return r;
	if (info.flags || info.pad)
		return -EINVAL;
	if (info.num_fences) {
		fill_fence(&fence);
		r = target_write(tid, info.sync_fence_info, &fence,
				 sizeof(fence));
		if (r)
			return r;
	}
	(void)snprintf(info.name, sizeof(info.name), "dmaheap-run");
	info.status = 1;
	info.num_fences = 1;
	return target_write(tid, call_arg(call, 2), &info, sizeof(info));
}

/* Two that have signalled make one that has. Return: 0 or a negated errno. */
static int merge(struct run *run, const struct call *call)
{
	_cleanup_(fd_closep) int fd = -1;
	struct sync_merge_data data;
	struct node_object other;
	pid_t tid = call_tid(call);
	int r;

	r = target_read(tid, call_arg(call, 2), &data, sizeof(data));
	if (r)
		return r;
	if (data.flags || data.pad)
		return -EINVAL;
	node_identify(run->node, tid, data.fd2, &other);
	if (other.kind != NODE_SYNC_FILE)
		return -ENOENT;
	r = target_write(tid, call_arg(call, 2), &data, sizeof(data));
	if (r)
		return r;
	fd = node_open_sync_file(run->node);
	if (fd < 0)
		return fd;
	data.fence = call_add_fd(call, fd, O_CLOEXEC);
	if (data.fence < 0)
		return data.fence;
	return target_write(tid, call_arg(call, 2), &data, sizeof(data));
}

void sync_file_ioctl(struct run *run, const struct call *call)
{
	int r;

	switch ((unsigned int)call_arg(call, 1)) {
	case SYNC_IOC_FILE_INFO:
		r = file_info(call);
		break;
	case SYNC_IOC_MERGE:
		r = merge(run, call);
		break;
	default:
		r = -ENOTTY;
	}
	if (r)
		call_fail(call, -r);
	else
		call_return(call, 0);
}
