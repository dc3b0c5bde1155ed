/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The frames of a node that is built from a snapshot: pageblock types, free
 * blocks, reserved frames, occupants, in that order.
 *
 * Units:     frames.
 * Ownership: works on the node's arrays.
 * Threads:   as the node.
 */

#include "mm/layout.h"

/**
 * layout_frames() - place everything
 * @occupants:  pages of each kind, in all exactly what is used
 *
 * Return: 0, NODE_E_INVALID (free blocks that no memory can hold), -ENOMEM.
 */
int layout_frames(struct node *node, const struct layout_occupants *occupants,
		  struct node_error *err) _must_check_;
