/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Shrinker: gives blocks of the page pools back when the node's reclaim or the
 * host's memory pressure asks for them. Counterpart: struct shrinker with
 * count_objects and scan_objects.
 *
 * Units:     pages of the node.
 * Ownership: none.
 * Threads:   not locked; the node's thread.
 */

#include "base/base.h"

struct heap_set;

/* Return: pages that shrinker_scan() could give back now. */
uint64_t shrinker_count(const struct heap_set *set);

/**
 * shrinker_scan() - give back about @n_pages
 *
 * Heap by heap, the largest order first, the oldest block first; parked buffers
 * only after all single blocks. Rounded up to whole blocks or buffers.
 * Return: pages given back.
 */
uint64_t shrinker_scan(struct heap_set *set, uint64_t n_pages);
