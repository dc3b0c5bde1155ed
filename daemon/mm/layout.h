/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Layout: which frame is what in a new node. From a size, everything is free;
 * from a snapshot, free blocks and occupants are laid out so that free lists
 * and pageblock counts are the machine's.
 *
 * Units:     frames.
 * Ownership: the node's arrays are allocated here and belong to the node.
 * Threads:   as the node.
 */

#include "mm/zone.h"

/* Arrays, list heads and zones of one zone "Normal", all free.
 * Return: 0, NODE_E_INVALID with @err, -ENOMEM. */
int layout_from_size(struct node *node, struct node_error *err) _must_check_;

/* The same from node->params.snapshot, with frames that are nothing yet. */
int layout_from_snapshot(struct node *node, struct node_error *err)
	_must_check_;

/* Then, with the marks known: free blocks, per-CPU lists, occupants. Where the
 * machine's frames lie is not in a snapshot: docs/zone-model.md says what is
 * assumed. */
int layout_fill_from_snapshot(struct node *node, struct node_error *err)
	_must_check_;

/* Appends the reason to @err. Return: NODE_E_INVALID. */
int layout_error(struct node_error *err, const char *format, ...)
	_printf_(2, 3);

/* How node_params.occupants reads: an amount per kind. */
struct layout_occupants {
	uint64_t pages[NODE_OCCUPANTS];
	int rest; /* the kind that had no amount, or -1 */
};

/* Return: 0, or NODE_E_INVALID with @err. */
int layout_parse_occupants(const char *text, uint64_t node_pages,
			   uint32_t page_size_bytes,
			   struct layout_occupants *ret, struct node_error *err)
	_must_check_;
