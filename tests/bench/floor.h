/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Floor: what a request costs at the least, done by hand. One process with a
 * blocking socket gives one buffer again and again: reopen the memfd, send the
 * fd; after the client has closed it, read the inotify event and test the
 * lease. Messages have the sizes of ALLOC and its reply. A crowd's server does
 * the same for many clients, each with a buffer of its own, behind an epoll.
 *
 * Units:     *_bytes.
 * Ownership: floor_start() and floor_crowd_start() give the clients' sockets;
 *            the _stop() functions take them.
 * Threads:   one.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct floor_server {
	pid_t pid;
	int sock; /* the client's */
};

/* A child process pinned to @cpu. Ends the program when that fails. */
void floor_start(struct floor_server *f, size_t len_bytes, unsigned int cpu);
void floor_stop(struct floor_server *f);

/* One request. Return: the buffer's fd, the caller's to close. */
int floor_alloc(int sock);

/* Maps at a multiple of 2 MiB; @flags of mmap() besides the necessary ones. */
void *floor_map(int fd, size_t len_bytes, int flags);

#define FLOOR_CROWD_MAX 64u

struct floor_crowd {
	pid_t pid;
	unsigned int n_clients;
	int sock[FLOOR_CROWD_MAX]; /* the clients' */
};

/* A child process that serves @n_clients, on whatever CPU there is. */
void floor_crowd_start(struct floor_crowd *c, unsigned int n_clients,
		       size_t len_bytes);
void floor_crowd_stop(struct floor_crowd *c);
