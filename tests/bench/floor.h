/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Floor: what a request costs at the least, done by hand. One process with a
 * blocking socket gives one buffer again and again: reopen the memfd, send the
 * fd; after the client has closed it, read the inotify event and test the
 * lease. Messages have the sizes of ALLOC and its reply.
 *
 * Units:     *_bytes.
 * Ownership: floor_start() gives the client's socket; floor_stop() takes it.
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
int floor_alloc(const struct floor_server *f);
