/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * From configuration to model: the node that [node] describes, and the heaps of
 * [heap NAME] on it.
 *
 * Units:     as mm/node.h and heap/system_heap.h.
 * Ownership: results are the caller's.
 * Threads:   start-up, and PRESSURE LOAD on the loop's thread.
 */

#include "base/base.h"
#include "conf/files.h"
#include "heap/system_heap.h"
#include "mm/node.h"
#include "server/config.h"

/* Outcome: the configuration asks for what cannot be. */
enum {
	MODEL_E_OK_,
	MODEL_E_INVALID, /* conf_error says what and where */
};

/**
 * model_node_new() - build the node
 * @texts: a snapshot's texts instead of what [node] snapshot names; or NULL
 * @where: how messages name @texts; ignored without
 *
 * Return: 0, MODEL_E_INVALID, -ENOMEM.
 */
int model_node_new(struct node **ret, const struct config *config,
		   const struct conf_texts *texts, const char *where,
		   struct conf_error *err) _must_check_;

/**
 * model_heaps_new() - make the enabled heaps of @config on @node
 * @ops: may be NULL
 *
 * Return: 0, MODEL_E_INVALID, -ENOMEM.
 */
int model_heaps_new(struct heap_set **ret, struct node *node,
		    const struct config *config, const struct heap_set_ops *ops,
		    void *ctx, struct conf_error *err) _must_check_;

/* Bit i: some heap's policy uses order i. */
uint32_t model_orders(struct heap_set *heaps);

/* Managed bytes of all zones. */
uint64_t model_node_bytes(const struct node *node);
