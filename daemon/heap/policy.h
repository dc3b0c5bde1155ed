/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Policy: which block orders a heap tries, with which gfp flags, and how much
 * its page pools keep. The counterpart of orders[] and order_flags[] in the
 * kernel's drivers/dma-buf/heaps/system_heap.c, as data.
 *
 * Units:     order is log2 of pages; *_bytes; POLICY_NO_LIMIT bytes: no limit.
 * Ownership: a plain value; copy it freely.
 * Threads:   no state.
 *
 * Keys of policy_set(), the same in the config file and in `policy set`:
 *   policy        name of a shipped policy: takes over all of its values
 *   orders        1..16 orders 0..10 that never rise, the last one 0; the
 *                 same order may stand twice ("8 0 0")
 *   gfp.N         flags of order N, as gfp_parse() takes them
 *   pool.N.limit  the pool of order N keeps at most this size; 0: nothing;
 *                 "none": no limit
 *   pool.N.mark   the background refill fills the pool of order N up to here
 *                 (N > 0, never above the limit)
 *   pool.limit    pool.N.limit of every order
 *   pool.refill   on | off
 */

#include "base/base.h"

struct strbuf;

#define POLICY_ORDER_COUNT 11u /* orders 0..10, as in the zone */
#define POLICY_STEPS_MAX   16u
#define POLICY_NO_LIMIT    UINT64_MAX
#define POLICY_NAME_BYTES  32u

enum {
	POLICY_E_OK_,
	POLICY_E_KEY,   /* no such key */
	POLICY_E_VALUE, /* the key exists, the value is not allowed */
};

struct policy {
	char name[POLICY_NAME_BYTES]; /* "840-mid*": with changes by hand */
	uint32_t n_steps;
	uint8_t order[POLICY_STEPS_MAX]; /* never rising, ends in 0 */
	uint32_t gfp[POLICY_ORDER_COUNT];
	uint64_t pool_limit_bytes[POLICY_ORDER_COUNT];
	uint64_t pool_mark_bytes[POLICY_ORDER_COUNT];
	bool pool_refill;
};

/* What is wrong and what is allowed, in one sentence without file and line. */
struct policy_error {
	char text[512];
};

/**
 * policy_shipped() - a policy by name
 * @ret:  receives the policy when there is one; untouched otherwise
 * @name: "840-high", "840-mid", "800", "940-high", "0-only"; or a list of
 *        orders with commas as the kernel thread writes them: "8,4,0" is
 *        840-mid, what kernels before 6.4 do, and "8,0,0" is 800
 *
 * Return: true if @name is shipped.
 */
bool policy_shipped(struct policy *ret, const char *name);

/* Return: the name of shipped policy @i from 0, or NULL after the last. */
const char *policy_shipped_name(unsigned int i);

/* Return: the default, "840-high". */
struct policy policy_default(void);

/**
 * policy_set() - change one key
 * @policy: changed on success only
 * @err:    receives the reason otherwise; may be NULL
 *
 * Return: 0, POLICY_E_KEY or POLICY_E_VALUE. Never negative.
 */
int policy_set(struct policy *policy, const char *key, const char *value,
	       struct policy_error *err) _must_check_;

/**
 * policy_key_rank() - when a key of a section has its turn
 *
 * What other keys build on comes first, wherever it stands in the section:
 * policy, orders, pool.limit, then all others.
 *
 * Return: 0 to POLICY_KEY_RANKS - 1.
 */
unsigned int policy_key_rank(const char *key);

#define POLICY_KEY_RANKS 4u

/* Return: true if a policy of one's own may be called @name. */
bool policy_name_is_valid(const char *name);

/* Return: true if @order is among the policy's steps. */
bool policy_has_order(const struct policy *policy, unsigned int order);

/* Appends one line KEY=VALUE per key, as policy_set() takes them. */
void policy_render(const struct policy *policy, struct strbuf *out);
