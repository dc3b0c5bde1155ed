/* SPDX-License-Identifier: MIT */
#include "run/call.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>

bool call_is_alive(const struct call *call)
{
	uint64_t id = call->req->id;

	return ioctl(call->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

/* ENOENT: the caller was killed meanwhile; there is nobody to answer. */
static void answer(const struct call *call, int64_t val, int error,
		   uint32_t flags)
{
	struct seccomp_notif_resp resp = {
		.id = call->req->id,
		.val = val,
		.error = error,
		.flags = flags,
	};

	(void)ioctl(call->listener, SECCOMP_IOCTL_NOTIF_SEND, &resp);
}

void call_continue(const struct call *call)
{
	answer(call, 0, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE);
}

void call_return(const struct call *call, int64_t value)
{
	answer(call, value, 0, 0);
}

void call_fail(const struct call *call, int err)
{
	answer(call, 0, -err, 0);
}

static int add_fd(const struct call *call, int fd, int fd_flags, uint32_t flags)
{
	struct seccomp_notif_addfd addfd = {
		.id = call->req->id,
		.flags = flags,
		.srcfd = (uint32_t)fd,
		.newfd_flags = (uint32_t)fd_flags,
	};
	int n;

	n = ioctl(call->listener, SECCOMP_IOCTL_NOTIF_ADDFD, &addfd);
	return n < 0 ? -errno : n;
}

int call_add_fd(const struct call *call, int fd, int fd_flags)
{
	return add_fd(call, fd, fd_flags, 0);
}

void call_return_fd(const struct call *call, int fd, int fd_flags)
{
	int n = add_fd(call, fd, fd_flags, SECCOMP_ADDFD_FLAG_SEND);

	if (n < 0 && n != -ENOENT)
		call_fail(call, -n);
}
