/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * JSON: what the verbs share in printing it.
 *
 * Ownership: json_show() consumes its argument; the others return a new
 *            reference, NULL without memory.
 * Threads:   one.
 */

#include <jansson.h>

#include "ctl/ctl.h"

/* Prints @root and a newline. Return: CTL_OK, or CTL_FAILED for NULL. */
int json_show(json_t *root);

/* Text of the daemon's, which need not be UTF-8. */
json_t *json_text(const char *text);

/* A number; null for UINT64_MAX, which stands for "no limit". */
json_t *json_u64(uint64_t value);

/* An array of counts by order. */
json_t *json_orders(const uint64_t counts[DMAHEAP_ORDER_COUNT]);

/* {"8":n,"4":n,"0":n}, and other orders that are not 0. */
json_t *json_composition(const uint32_t blocks[DMAHEAP_ORDER_COUNT]);
