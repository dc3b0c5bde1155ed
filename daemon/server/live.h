/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Live: one buffer as the server sees it: blocks of a heap, a memfd of the
 * backing, and the charge of its uid, kept together from the allocation to the
 * last reference and, parked, until the next use or the end.
 *
 *   live_new() -> live_attach() -> (last reference) -> recycled -> PARKED
 *                      ^                                             |
 *                      +--------------- live_reuse() ----------------+
 *
 * Units:     *_ns of CLOCK_MONOTONIC.
 * Ownership: buffer->owner and the backing buffer's owner point here; the
 *            object goes with the buffer.
 * Threads:   the loop's.
 */

#include "backing/backing.h"
#include "base/base.h"
#include "heap/system_heap.h"
#include "server/quota.h"

struct server;
struct session;
struct peer;

struct live {
	struct server *server;
	struct buffer *buffer;
	struct backing_buffer *bb; /* NULL until it is being made */
	struct quota_charge charge;
	struct peer *peer; /* NULL: parked, or adopted */
	uint64_t since_ns;
	bool handed_out; /* somebody had a descriptor of it */
	bool counted;    /* in server::recycling, while it is recycled */
	/* session::lives, only where closing the connection is the release */
	struct list_node session_link;
};

/**
 * live_new() - for a buffer that the heap has just given
 * @charge: moved into the object
 *
 * Return: 0 or -ENOMEM; then @buffer and @charge are still the caller's.
 */
int live_new(struct live **ret, struct server *server, struct buffer *buffer,
	     struct session *session, struct quota_charge *charge) _must_check_;

/* The backing has made its memory. */
void live_attach(struct live *live, struct backing_buffer *bb);

/* A parked buffer is taken by @session; @charge is moved into it. */
void live_reuse(struct live *live, struct session *session,
		struct quota_charge *charge);

/* A descriptor is about to be handed to @session. */
void live_hand_out(struct live *live, struct session *session);

/*
 * Ends a buffer that nobody has a descriptor of: the memory goes (if it is
 * there), the blocks return, the charge is released.
 */
void live_discard(struct live *live);

/* The daemon ends: who holds the buffer keeps it, the books forget it. */
void live_forget(struct live *live);

/* Without leases: the client says, or shows by closing, that it is done. */
void live_release(struct live *live);

/* Ends a buffer that has no live object: @how is POOL or NODE. */
void live_return_blocks(struct server *server, struct buffer *buffer,
			enum heap_finish how);

/* The live object of a memfd, or NULL when it is none of ours. */
struct live *live_of_fd(struct server *server, int fd);

/* The callbacks of backing and heap. */
extern const struct backing_ops live_backing_ops;
extern const struct heap_set_ops live_heap_ops;
