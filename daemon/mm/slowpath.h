/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The slow path of an allocation as a state machine, one function per state.
 * Counterpart: __alloc_pages_slowpath().
 *
 * Units:     frames, orders.
 * Ownership: a block returned is the caller's.
 * Threads:   as the node.
 */

#include "mm/zone.h"

/**
 * slowpath_alloc() - all that ac->gfp allows
 * @req:        charged with the stalls
 *
 * Return: the first frame, or NO_PFN.
 */
uint32_t slowpath_alloc(struct task *task, struct node *node,
			const struct alloc_context *ac,
			struct node_request *req);
