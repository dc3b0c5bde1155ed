/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Closer: closes what clients have sent, where nobody waits for it.
 *
 * close() of a stranger's file may wait: for the server of a FUSE file, for the
 * linger time of a TCP socket, and for either of them that lies unread in a
 * Unix socket. So the loop closes no such descriptor; threads do, which are
 * started before the process is confined.
 *
 * A thread is never the only hope of two users: at a time at most one thread
 * closes for a uid, and memfds, which cannot wait, have a thread of their own.
 * So who makes a close() wait for ever holds up nothing but other strange
 * descriptors of the same uid.
 *
 * Units:     none.
 * Ownership: closer_new() and closer_group_new() give the caller the only
 *            reference. Descriptors passed in are consumed. A group holds them
 *            itself, so that taking one over cannot fail.
 * Threads:   the loop's; its own threads call nobody back.
 */

#include <sys/types.h>

#include "base/base.h"
#include "ipc/loop.h"

/* A connection is not read while something of it is to be closed; so this is
 * one message's worth, and another's that was under way already. */
#define CLOSER_GROUP_MAX (2u * LOOP_MESSAGE_MAX_FDS)

struct closer;
struct closer_group;

typedef void (*closer_done_fn)(void *ctx);

/* Return: 0, -ENOMEM, -EMFILE, -EAGAIN (threads cannot be started). */
int closer_new(struct closer **ret) _must_check_;

/**
 * closer_free() - close what is left, but wait for nobody
 *
 * What a close() that does not return holds up stays to be closed until it
 * does, or the process ends. All groups must have been freed.
 *
 * Return: NULL. @closer may be NULL.
 */
struct closer *closer_free(struct closer *closer);

/* Readable when closer_dispatch() has something to tell. */
int closer_event_fd(const struct closer *closer);

/* Calls done() of each group of which all is closed. */
void closer_dispatch(struct closer *closer);

/**
 * closer_group_new() - what one connection has to have closed
 * @uid:  whose
 * @done: called with @ctx by closer_dispatch() each time nothing is left
 *
 * Return: NULL when there is no memory.
 */
struct closer_group *closer_group_new(struct closer *closer, uid_t uid,
				      closer_done_fn done, void *ctx);

/* Return: NULL. It lives on unseen until all is closed. */
struct closer_group *closer_group_free(struct closer_group *group);

/* Consumes @fds, each of which is -1 afterwards, and may be before; at most
 * CLOSER_GROUP_MAX of a group are still to be closed at once. */
void closer_close(struct closer_group *group, int *fds, size_t n_fds);

/* Consumes a connection's own socket, one of each group, unread messages and
 * all. It must have been shut down. */
void closer_close_socket(struct closer_group *group, int fd);

/* Return: whether done() is still to come. */
bool closer_group_is_busy(const struct closer_group *group);

/* Return: whether each group is where what is left of it belongs. */
bool closer_check(struct closer *closer);

/**
 * closer_empty_socket() - read away the messages that came without descriptors
 * @fd: borrowed; a connected AF_UNIX socket, shut down for reading
 *
 * Return: true if none is left: then closing it does not wait, and gives the
 * peer its end rather than ECONNRESET.
 */
bool closer_empty_socket(int fd);
