/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Socket: where the daemon's socket is, and a connection to it.
 *
 * Ownership: a path returned is the caller's to free(); an fd is his to close.
 * Threads:   reads the environment, otherwise without state.
 */

#include "lib/macros.h"

/* The places a client looks at, its own first, the system's last. */
#define SOCKET_SYSTEM_PATH "/run/dmaheap/dmaheap.sock"

/* Who chose a path decides whose daemon may be there. */
enum socket_place {
	SOCKET_PRIVATE, /* searched for where other users might get to as well
			 */
	SOCKET_CHOSEN,  /* by the caller, or the system's */
};

/**
 * socket_open() - connect to the daemon at @path
 * @ret_fd: receives a blocking SOCK_SEQPACKET socket, close-on-exec
 *
 * Neither the file nor the process that listens may belong to anyone but root
 * and the caller: a foreign daemon could resize or read the buffers it gives.
 * In a user namespace that lacks the host's root, as in a rootless container,
 * he looks like any other user that it lacks; so at a place of SOCKET_CHOSEN
 * whoever looks like him passes for him.
 *
 * Connecting, and whatever is sent or awaited on the socket until
 * socket_wait_forever(), ends after SOCKET_TIMEOUT_S seconds.
 *
 * Return: 0, -ENOENT, -ECONNREFUSED (no daemon), -EPERM (foreign owner),
 * -EACCES, -ENAMETOOLONG, -ETIMEDOUT (its queue of connections stays full), or
 * the errno of socket().
 */
int socket_open(const char *path, enum socket_place place, int *ret_fd)
	_must_check_;

#define SOCKET_TIMEOUT_S 5

/* Lifts the timeout of socket_open(): an allocation may take its time. */
void socket_wait_forever(int fd);

/**
 * socket_search() - connect to the first place that accepts
 * @ret_path:  receives that place
 * @ret_place: and of what kind it is
 * @ret_fd:    as socket_open()
 *
 * $DMAHEAP_SOCKET alone when it is set; else $XDG_RUNTIME_DIR/dmaheap.sock,
 * /tmp/dmaheap-<uid>/dmaheap.sock, SOCKET_SYSTEM_PATH.
 *
 * Return: 0, -ENOMEM, or the error of the first place where something other
 * than "no such file" went wrong, else -ENOENT.
 */
int socket_search(char **ret_path, enum socket_place *ret_place, int *ret_fd)
	_must_check_;
