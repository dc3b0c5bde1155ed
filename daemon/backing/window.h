/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Window: address space that a worker keeps reserved, to map pieces of memfds
 * at addresses of its choice. The populating address decides the order of the
 * folios, so it must be chosen, and choosing must never hit another mapping.
 *
 * Units:     *_bytes.
 * Ownership: window_init() reserves, window_fini() returns it. A mapping of
 *            window_map() lasts until window_unmap(); one at a time.
 * Threads:   one window, one thread.
 */

#include "base/base.h"

#define WINDOW_ALIGN_BYTES MIB(4)
#define WINDOW_MAX_BYTES   MIB(4) /* the longest piece */

struct window {
	char *reserved;
	size_t reserved_bytes;
	char *base; /* aligned to WINDOW_ALIGN_BYTES */
};

/* Return: 0, -ENOMEM. */
int window_init(struct window *w) _must_check_;
void window_fini(struct window *w);

/**
 * window_map() - map a piece of a memfd, shared and writable
 * @fd:          borrowed
 * @align_bytes: the address is congruent to the offset modulo this power of
 *               two, and modulo no larger one, up to 2 MiB
 *
 * Return: 0 or a negated errno of mmap().
 */
int window_map(struct window *w, int fd, uint64_t offset_bytes,
	       uint64_t len_bytes, uint64_t align_bytes, void **ret)
	_must_check_;

/* Takes the mapping away and keeps its addresses reserved. */
void window_unmap(struct window *w, void *addr, uint64_t len_bytes);
