/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Id map: from the ids of a trace to the buffers of its replay, an open hash.
 *
 * Ownership: the map owns its slots, not the buffers. All zero is an empty map.
 * Threads:   not locked.
 */

#include "base/base.h"

struct buffer;

struct id_slot {
	uint64_t id;           /* 0: never used */
	struct buffer *buffer; /* NULL: the id has ended */
};

struct id_map {
	struct id_slot *slots;
	size_t n_slots; /* a power of two, or 0 */
	size_t n_used;
};

/* @id is not 0 and has no buffer now. Return: 0 or -ENOMEM. */
int id_map_set(struct id_map *map, uint64_t id, struct buffer *buffer)
	_must_check_;

/* Return: the slot, for the caller to end by setting its buffer to NULL; NULL
 * when the id has no buffer. Valid until the next id_map_set(). */
struct id_slot *id_map_find(const struct id_map *map, uint64_t id);

void id_map_fini(struct id_map *map);
