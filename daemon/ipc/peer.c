/* SPDX-License-Identifier: MIT */
#include "ipc/peer.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/err.h"
#include "base/fd.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

static int get_groups(int fd, const gid_t **ret, size_t *ret_n)
{
	socklen_t n_bytes = 0;
	gid_t *groups;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &n_bytes) == 0)
		return 0; /* none */
	if (errno != ERANGE)
		return err_raise(-errno);
	groups = malloc(n_bytes);
	if (!groups)
		return err_raise(-ENOMEM);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &n_bytes) < 0) {
		int r = -errno;

		free(groups);
		return err_raise(r);
	}
	*ret = groups;
	*ret_n = n_bytes / sizeof(*groups);
	return 0;
}

static int get_pidfd(int fd, pid_t pid)
{
	int pidfd = -1;
	socklen_t n_bytes = sizeof(pidfd);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &n_bytes) == 0)
		return pidfd;
	if (errno != ENOPROTOOPT || pid <= 0)
		return -1;
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

int peer_init(struct conn_peer *ret, int fd)
{
	struct conn_peer peer = {.pidfd = -1};
	struct ucred cred;
	socklen_t n_bytes = sizeof(cred);
	int r;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n_bytes) < 0)
		return err_raise(-errno);
	peer.uid = cred.uid;
	peer.gid = cred.gid;
	peer.pid = cred.pid;
	r = get_groups(fd, &peer.groups, &peer.n_groups);
	if (r)
		return err_trace(r);
	peer.pidfd = get_pidfd(fd, cred.pid);
	*ret = peer;
	return 0;
}

void peer_fini(struct conn_peer *peer)
{
	free((void *)(uintptr_t)peer->groups);
	peer->groups = NULL;
	peer->pidfd = fd_close(peer->pidfd);
}
