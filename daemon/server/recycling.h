/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Recycling: the small buffers on their way back into the pools, counted by
 * heap, user and size, and the requests that wait for one of them. Where many
 * are on their way, another new one would be made by the same thread, behind
 * them, and take longer.
 *
 * Units:     n_* count buffers.
 * Ownership: who waits embeds a struct recycling_wait and leaves before it goes
 *            away.
 * Threads:   the loop's.
 */

#include "base/base.h"
#include "base/list.h"

struct heap;

/* That many must be on their way besides those that others wait for: the time
 * that they take hides behind the requests of whoever uses them in turn. */
#define RECYCLING_ENOUGH 32u
#define RECYCLING_SLOTS  256u

struct recycling_key {
	const struct heap *heap;
	uint64_t len_bytes;
	uint32_t uid;
};

struct recycling_slot {
	struct recycling_key key; /* valid while n > 0 */
	uint32_t n;               /* on their way */
	uint32_t n_waiting;       /* never more than n */
	struct list_node waiting; /* recycling_wait::link, oldest first */
};

/* A key has one slot that it may use; while another uses that, its buffers are
 * not counted and nobody waits for them. */
struct recycling {
	uint32_t n_waiting;
	struct recycling_slot slot[RECYCLING_SLOTS];
};

struct recycling_wait {
	struct recycling_slot *slot; /* NULL: does not wait */
	struct list_node link;       /* recycling_slot::waiting */
};

void recycling_init(struct recycling *r);

/* A buffer sets out. Return: whether it is counted, for recycling_end(). */
bool recycling_begin(struct recycling *r, const struct recycling_key *key);

/* A counted buffer has arrived, parked or not. Return: who has waited longest
 * and now need not any more, or NULL. */
struct recycling_wait *recycling_end(struct recycling *r,
				     const struct recycling_key *key);

/* Return: true if @wait waits now; recycling_end() will give it back. */
bool recycling_join(struct recycling *r, const struct recycling_key *key,
		    struct recycling_wait *wait);

/* Waits no more; harmless when it does not. */
void recycling_leave(struct recycling *r, struct recycling_wait *wait);

bool recycling_check(const struct recycling *r);
