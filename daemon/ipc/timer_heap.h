/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Timer heap: struct loop_timer in the order of their time, as a pairing heap
 * whose links live in the timers, so that arming one cannot fail.
 *
 * Units:     at_ns as in loop.h.
 * Ownership: none; a timer in the heap must stay where it is.
 * Threads:   not locked.
 */

#include "base/base.h"
#include "ipc/loop.h"

struct timer_heap {
	struct loop_timer *root;
};

/* @timer is in no heap. O(1). */
void timer_heap_insert(struct timer_heap *heap, struct loop_timer *timer);

/* @timer is in @heap. Amortised O(log n). */
void timer_heap_remove(struct timer_heap *heap, struct loop_timer *timer);

/* Return: the earliest timer, or NULL. */
struct loop_timer *timer_heap_first(const struct timer_heap *heap);

/* Return: whether no timer is earlier than the one above it. O(n). */
bool timer_heap_check(const struct timer_heap *heap);
