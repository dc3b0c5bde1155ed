/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "ipc/loop_impl.h"

/* Return: how many fds came with @msg. */
static size_t collect_fds(struct msghdr *msg, int fds[LOOP_MESSAGE_MAX_FDS])
{
	size_t n = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c;
	     c = CMSG_NXTHDR(msg, c)) {
		size_t n_here;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n_here = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		/* As union loop_control has room for. */
		assert(n + n_here <= LOOP_MESSAGE_MAX_FDS);
		memcpy(fds + n, CMSG_DATA(c), n_here * sizeof(int));
		n += n_here;
	}
	return n;
}

static void close_fds(int *fds, size_t n_fds)
{
	for (size_t i = 0; i < n_fds; i++)
		fds[i] = fd_close(fds[i]);
}

void loop_message_deliver(struct loop_socket *socket, struct msghdr *msg,
			  const void *bytes, ssize_t n_bytes)
{
	int fds[LOOP_MESSAGE_MAX_FDS];
	struct loop_message message = {.fds = fds};

	if (n_bytes < 0) {
		message.r = (int)n_bytes;
	} else {
		message.bytes = bytes;
		message.n_bytes = (size_t)n_bytes;
		message.bytes_truncated = msg->msg_flags & MSG_TRUNC;
		message.fds_truncated = msg->msg_flags & MSG_CTRUNC;
		message.n_fds = collect_fds(msg, fds);
	}
	socket->ops->on_message(socket->ctx, &message);
	close_fds(fds, message.n_fds);
}

void loop_message_drop(struct msghdr *msg)
{
	int fds[LOOP_MESSAGE_MAX_FDS];

	close_fds(fds, collect_fds(msg, fds));
}

bool loop_accept_must_wait(int r)
{
	switch (-r) {
	case EAGAIN:
	case EINTR:
	case ECONNABORTED:
	case EPROTO:
	case EPERM: /* a firewall's word on one connection */
	case ECANCELED:
		return false;
	default:
		return true;
	}
}
