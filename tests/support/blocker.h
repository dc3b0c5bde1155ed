/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A file of which close() does not return before the test says so: a TCP socket
 * that lingers with bytes that its peer does not read, or a file whose FUSE
 * server keeps FLUSH unanswered.
 *
 * Units:     none.
 * Ownership: blocker_tcp() and blocker_fuse() own what they make until
 *            blocker_free(); fd is to be sent along, and closed by
 *            blocker_close_fd() alone.
 * Threads:   one of their own serves the FUSE file.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct blocker {
	int fd;       /* closing it blocks */
	int peer;     /* of TCP; or /dev/fuse */
	char dir[64]; /* where the FUSE file system is; "": none */
	pthread_t server;
	atomic_bool released;
	atomic_uint n_flushes; /* FUSE: of other processes, so far */
	pid_t own;
};

/* Return: false when it cannot be had here. */
bool blocker_tcp(struct blocker *ret);
bool blocker_fuse(struct blocker *ret);

/* Our own copy, once it was sent: this close does not wait. */
void blocker_close_fd(struct blocker *b);

/* From now on no close() waits any more. */
void blocker_release(struct blocker *b);

/* Releases it as well. */
void blocker_free(struct blocker *b);
