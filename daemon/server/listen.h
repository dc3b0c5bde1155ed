/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The listening socket: where it is, whose it is, and whether another daemon
 * already answers there.
 *
 * Ownership: struct listen_socket owns the fd and, unless it came from the
 *            service manager, the socket file; listen_fini() removes that file
 *            only while it is still the one that was bound.
 * Threads:   start-up and shutdown, one thread.
 */

#include <sys/types.h>
#include <sys/un.h>

#include "base/base.h"

struct listen_socket {
	int fd;         /* listening, close-on-exec, non-blocking */
	bool inherited; /* from the service manager: its file is not ours */
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	dev_t dev;
	ino_t ino;
	int lock_fd; /* PATH.lock: two daemons starting at once take turns */
};

#define LISTEN_SOCKET_NONE                                                     \
	(struct listen_socket)                                                 \
	{                                                                      \
		.fd = -1, .lock_fd = -1                                        \
	}

/**
 * listen_open() - bind, or take over the service manager's socket
 * @path:  where to bind; NULL: $DMAHEAP_SOCKET, else as root
 *         /run/dmaheap/dmaheap.sock, else $XDG_RUNTIME_DIR/dmaheap.sock if that
 *         directory exists, else /tmp/dmaheap-<uid>/dmaheap.sock
 * @mode:  permission bits of the socket file
 * @gid:   group of the socket file, or (gid_t)-1
 * @ret:   receives the socket on success; untouched on failure
 * @error: receives a sentence on failure
 *
 * Sockets passed by LISTEN_PID/LISTEN_FDS win when @path is NULL or is theirs.
 * A socket file on which nobody answers is replaced. /run/dmaheap and
 * /tmp/dmaheap-<uid> are made when missing; the latter must be the caller's,
 * mode 0700, and no symbolic link.
 *
 * Return: 0, -EADDRINUSE (a daemon answers there), -ENAMETOOLONG, -EPERM (the
 * directory is not safe), -ENOTSOCK (another kind of file is in the way), or
 * what the system calls gave.
 */
int listen_open(const char *path, mode_t mode, gid_t gid,
		struct listen_socket *ret, char *error, size_t error_bytes)
	_must_check_;

/* Nobody can connect any more, and no other daemon start yet. */
void listen_close(struct listen_socket *socket);

/* Closes and removes; harmless on LISTEN_SOCKET_NONE. */
void listen_fini(struct listen_socket *socket);
