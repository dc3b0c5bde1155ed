/* SPDX-License-Identifier: MIT */
#include "server/recycling.h"

void recycling_init(struct recycling *r)
{
	*r = (struct recycling){0};
	for (unsigned int i = 0; i < RECYCLING_SLOTS; i++)
		list_init(&r->slot[i].waiting);
}

static struct recycling_slot *slot_of(struct recycling *r,
				      const struct recycling_key *key)
{
	uint64_t h = (uintptr_t)key->heap ^ key->len_bytes ^
		     ((uint64_t)key->uid << 32);

	/* Multiplicative hashing: the high bits are the mixed ones. */
	h *= UINT64_C(0x9e3779b97f4a7c15);
	return &r->slot[(h >> 32) % RECYCLING_SLOTS];
}

static bool is_for(const struct recycling_slot *slot,
		   const struct recycling_key *key)
{
	return slot->n > 0 && slot->key.heap == key->heap &&
	       slot->key.len_bytes == key->len_bytes &&
	       slot->key.uid == key->uid;
}

bool recycling_begin(struct recycling *r, const struct recycling_key *key)
{
	struct recycling_slot *slot = slot_of(r, key);

	if (slot->n == 0)
		slot->key = *key;
	else if (!is_for(slot, key))
		return false;
	slot->n++;
	return true;
}

struct recycling_wait *recycling_end(struct recycling *r,
				     const struct recycling_key *key)
{
	struct recycling_slot *slot = slot_of(r, key);
	struct list_node *first = list_first(&slot->waiting);
	struct recycling_wait *wait;

	assert(is_for(slot, key));
	slot->n--;
	if (!first)
		return NULL;
	wait = list_entry(first, struct recycling_wait, link);
	recycling_leave(r, wait);
	return wait;
}

bool recycling_join(struct recycling *r, const struct recycling_key *key,
		    struct recycling_wait *wait)
{
	struct recycling_slot *slot = slot_of(r, key);

	if (!is_for(slot, key) || slot->n - slot->n_waiting < RECYCLING_ENOUGH)
		return false;
	wait->slot = slot;
	list_add_tail(&slot->waiting, &wait->link);
	slot->n_waiting++;
	r->n_waiting++;
	return true;
}

void recycling_leave(struct recycling *r, struct recycling_wait *wait)
{
	if (!wait->slot)
		return;
	wait->slot->n_waiting--;
	r->n_waiting--;
	list_remove(&wait->link);
	wait->slot = NULL;
}

bool recycling_check(const struct recycling *r)
{
	uint32_t n_waiting = 0;

	for (unsigned int i = 0; i < RECYCLING_SLOTS; i++) {
		const struct recycling_slot *slot = &r->slot[i];
		uint32_t n = 0;

		list_for_each(node, &slot->waiting) n++;
		if (n != slot->n_waiting || n > slot->n)
			return false;
		n_waiting += n;
	}
	return n_waiting == r->n_waiting;
}
