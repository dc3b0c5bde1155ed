/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Peer: who is at the other end of a Unix socket, asked once.
 *
 * Ownership: peer_init() fills a struct conn_peer with a pidfd and an array
 *            that peer_fini() gives back.
 * Threads:   no state.
 */

#include "base/base.h"
#include "ipc/conn.h"

/**
 * peer_init() - ask the kernel for the credentials of @fd's peer
 * @fd: borrowed; a connected AF_UNIX socket
 *
 * The credentials are those of the moment of connect(). Without SO_PEERPIDFD
 * (Linux 6.5) the pidfd is that of the pid, and -1 when that is gone.
 *
 * Return: 0, -ENOMEM, or as of getsockopt().
 */
int peer_init(struct conn_peer *ret, int fd) _must_check_;

void peer_fini(struct conn_peer *peer);
