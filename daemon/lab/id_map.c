/* SPDX-License-Identifier: MIT */
#include "lab/id_map.h"

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"

#define ID_MAP_FIRST_SLOTS 64u

/* Return: the slot of @id, or the free one where it would be. */
static struct id_slot *slot_of(const struct id_map *map, uint64_t id)
{
	size_t at = (size_t)(id * UINT64_C(0x9e3779b97f4a7c15) >> 32);

	for (;; at++) {
		struct id_slot *slot = &map->slots[at & (map->n_slots - 1)];

		if (slot->id == id || slot->id == 0)
			return slot;
	}
}

/* Ids that have ended are left behind. */
static int id_map_grow(struct id_map *map)
{
	struct id_map bigger = {
		.n_slots = map->n_slots ? 2 * map->n_slots : ID_MAP_FIRST_SLOTS,
	};

	bigger.slots = calloc(bigger.n_slots, sizeof(*bigger.slots));
	if (!bigger.slots)
		return err_raise(-ENOMEM);
	for (size_t i = 0; i < map->n_slots; i++) {
		if (!map->slots[i].buffer)
			continue;
		*slot_of(&bigger, map->slots[i].id) = map->slots[i];
		bigger.n_used++;
	}
	free(map->slots);
	*map = bigger;
	return 0;
}

int id_map_set(struct id_map *map, uint64_t id, struct buffer *buffer)
{
	struct id_slot *slot;
	int r;

	assert(id != 0);
	if (2 * (map->n_used + 1) > map->n_slots) {
		r = id_map_grow(map);
		if (r)
			return err_trace(r);
	}
	slot = slot_of(map, id);
	if (slot->id == 0)
		map->n_used++;
	*slot = (struct id_slot){.id = id, .buffer = buffer};
	return 0;
}

struct id_slot *id_map_find(const struct id_map *map, uint64_t id)
{
	struct id_slot *slot = map->n_slots && id ? slot_of(map, id) : NULL;

	return slot && slot->id == id && slot->buffer ? slot : NULL;
}

void id_map_fini(struct id_map *map)
{
	free(map->slots);
	*map = (struct id_map){0};
}
