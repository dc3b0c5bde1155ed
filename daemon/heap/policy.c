/* SPDX-License-Identifier: MIT */
#include "heap/policy.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "base/strbuf.h"
#include "mm/gfp.h"

#define POOL_LIMIT_BYTES MIB(64)
#define POOL_MARK_BYTES  MIB(16)

struct shipped {
	const char *name;
	const char *orders; /* as the kernel thread writes them; NULL: none */
	uint8_t n_steps;
	uint8_t order[3];
	uint32_t gfp_4; /* the one that differs between kernels */
};

static const struct shipped shipped[] = {
	{"840-high", NULL, 3, {8, 4, 0}, GFP_HIGH_ORDER},
	{"840-mid", "8,4,0", 3, {8, 4, 0}, GFP_MID_ORDER},
	{"800", "8,0,0", 3, {8, 0, 0}, GFP_HIGH_ORDER},
	{"940-high", NULL, 3, {9, 4, 0}, GFP_HIGH_ORDER},
	{"0-only", NULL, 1, {0}, GFP_HIGH_ORDER},
};

static struct policy policy_from_shipped(const struct shipped *from)
{
	struct policy policy = {.n_steps = from->n_steps};

	(void)snprintf(policy.name, sizeof(policy.name), "%s", from->name);
	memcpy(policy.order, from->order, sizeof(from->order));
	for (unsigned int order = 0; order < POLICY_ORDER_COUNT; order++) {
		policy.gfp[order] = order ? GFP_HIGH_ORDER : GFP_LOW_ORDER;
		policy.pool_limit_bytes[order] = POOL_LIMIT_BYTES;
		policy.pool_mark_bytes[order] = order ? POOL_MARK_BYTES : 0;
	}
	policy.gfp[4] = from->gfp_4;
	return policy;
}

bool policy_shipped(struct policy *ret, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(shipped); i++) {
		const struct shipped *s = &shipped[i];

		if (!strcmp(s->name, name) ||
		    (s->orders && !strcmp(s->orders, name))) {
			*ret = policy_from_shipped(s);
			return true;
		}
	}
	return false;
}

const char *policy_shipped_name(unsigned int i)
{
	return i < ARRAY_SIZE(shipped) ? shipped[i].name : NULL;
}

struct policy policy_default(void)
{
	return policy_from_shipped(&shipped[0]);
}

unsigned int policy_key_rank(const char *key)
{
	static const char *const first[] = {"policy", "orders", "pool.limit"};

	static_assert(ARRAY_SIZE(first) + 1 == POLICY_KEY_RANKS, "the rest");
	for (unsigned int i = 0; i < ARRAY_SIZE(first); i++) {
		if (!strcmp(key, first[i]))
			return i;
	}
	return ARRAY_SIZE(first);
}

bool policy_name_is_valid(const char *name)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "abcdefghijklmnopqrstuvwxyz"
				      "0123456789._,-";
	size_t len = strlen(name);

	return len > 0 && len < POLICY_NAME_BYTES &&
	       strspn(name, allowed) == len;
}

bool policy_has_order(const struct policy *policy, unsigned int order)
{
	for (uint32_t i = 0; i < policy->n_steps; i++) {
		if (policy->order[i] == order)
			return true;
	}
	return false;
}

static int _printf_(3, 4) policy_refuse(struct policy_error *err, int outcome,
					const char *format, ...)
{
	va_list args;

	if (err) {
		va_start(args, format);
		(void)vsnprintf(err->text, sizeof(err->text), format, args);
		va_end(args);
	}
	return outcome;
}

static int refuse_orders(struct policy_error *err, const char *value,
			 const char *what)
{
	return policy_refuse(err, POLICY_E_VALUE,
			     "\"%.64s\": %s; allowed are 1 to %u orders 0..%u "
			     "that never rise, the last one 0, as in 8 4 0",
			     value, what, POLICY_STEPS_MAX,
			     POLICY_ORDER_COUNT - 1);
}

static int set_orders(struct policy *policy, const char *value,
		      struct policy_error *err)
{
	const char *list = value;
	struct policy new = *policy;
	char word[8];
	uint64_t order;
	int len;

	new.n_steps = 0;
	while ((len = parse_word(&list, word, sizeof(word))) != 0) {
		if (len < 0 || parse_u64(word, &order) ||
		    order >= POLICY_ORDER_COUNT)
			return refuse_orders(err, value, "not an order");
		if (new.n_steps == POLICY_STEPS_MAX)
			return refuse_orders(err, value, "too many orders");
		if (new.n_steps && order > new.order[new.n_steps - 1])
			return refuse_orders(err, value, "the orders rise");
		new.order[new.n_steps++] = (uint8_t)order;
	}
	if (new.n_steps == 0)
		return refuse_orders(err, value, "no order");
	if (new.order[new.n_steps - 1] != 0)
		return refuse_orders(err, value, "the last order is not 0");
	*policy = new;
	return 0;
}

/*
 * "N" or "N.rest": splits off the order.
 * Return: false if there is no order 0..10.
 */
static bool take_order(const char *key, unsigned int *ret_order,
		       const char **ret_rest)
{
	char word[4];
	size_t len = strcspn(key, ".");
	uint64_t order;

	if (len == 0 || len >= sizeof(word))
		return false;
	memcpy(word, key, len);
	word[len] = '\0';
	if (parse_u64(word, &order) || order >= POLICY_ORDER_COUNT)
		return false;
	*ret_order = (unsigned int)order;
	*ret_rest = key[len] ? key + len + 1 : key + len;
	return true;
}

static int set_gfp(struct policy *policy, unsigned int order, const char *value,
		   struct policy_error *err)
{
	uint32_t gfp;

	if (gfp_parse(value, &gfp))
		return policy_refuse(err, POLICY_E_VALUE,
				     "\"%.64s\": not gfp flags; allowed are "
				     "these, "
				     "joined by |: %s",
				     value, gfp_names);
	if (gfp & (GFP_MOVABLE | GFP_RECLAIMABLE))
		return policy_refuse(err, POLICY_E_VALUE,
				     "\"%.64s\": blocks of a heap are "
				     "unmovable; MOVABLE and RECLAIMABLE are "
				     "not allowed",
				     value);
	policy->gfp[order] = gfp;
	return 0;
}

static int parse_limit(const char *value, uint64_t *ret,
		       struct policy_error *err)
{
	if (!strcmp(value, "none")) {
		*ret = POLICY_NO_LIMIT;
		return 0;
	}
	if (parse_size(value, ret))
		return policy_refuse(err, POLICY_E_VALUE,
				     "\"%.64s\": not a size; allowed are a "
				     "number with K, M, G or T, or none",
				     value);
	return 0;
}

static int set_pool(struct policy *policy, const char *key, const char *value,
		    struct policy_error *err)
{
	unsigned int order;
	uint64_t bytes;
	const char *rest;
	int r;

	if (!strcmp(key, "refill")) {
		if (parse_bool(value, &policy->pool_refill))
			return policy_refuse(err, POLICY_E_VALUE,
					     "\"%.64s\": allowed are on and "
					     "off",
					     value);
		return 0;
	}
	if (!strcmp(key, "limit")) {
		r = parse_limit(value, &bytes, err);
		for (order = 0; !r && order < POLICY_ORDER_COUNT; order++)
			policy->pool_limit_bytes[order] = bytes;
		return r;
	}
	if (!take_order(key, &order, &rest))
		return POLICY_E_KEY;
	if (!strcmp(rest, "limit"))
		return parse_limit(value, &policy->pool_limit_bytes[order],
				   err);
	if (!strcmp(rest, "mark") && order > 0)
		return parse_limit(value, &policy->pool_mark_bytes[order], err);
	return POLICY_E_KEY;
}

static int set_shipped(struct policy *policy, const char *value,
		       struct policy_error *err)
{
	if (!policy_shipped(policy, value))
		return policy_refuse(err, POLICY_E_VALUE,
				     "\"%.64s\": no such policy; shipped are "
				     "840-high, 840-mid, 800, 940-high, 0-only",
				     value);
	return 0;
}

static int set_key(struct policy *policy, const char *key, const char *value,
		   struct policy_error *err)
{
	unsigned int order;
	const char *rest;

	if (!strcmp(key, "orders"))
		return set_orders(policy, value, err);
	if (!strncmp(key, "gfp.", 4) && take_order(key + 4, &order, &rest) &&
	    !*rest)
		return set_gfp(policy, order, value, err);
	if (!strncmp(key, "pool.", 5))
		return set_pool(policy, key + 5, value, err);
	return POLICY_E_KEY;
}

/* A name with a star is the named policy with other orders or flags. */
static void mark_changed(struct policy *policy)
{
	size_t len = strnlen(policy->name, sizeof(policy->name) - 2);

	if (len == 0 || policy->name[len - 1] != '*') {
		policy->name[len] = '*';
		policy->name[len + 1] = '\0';
	}
}

int policy_set(struct policy *policy, const char *key, const char *value,
	       struct policy_error *err)
{
	int r;

	if (!strcmp(key, "policy"))
		return set_shipped(policy, value, err);
	r = set_key(policy, key, value, err);
	if (r == POLICY_E_KEY)
		return policy_refuse(err, r,
				     "no such key; allowed are policy, orders, "
				     "gfp.N, pool.N.limit, pool.N.mark (N > "
				     "0), "
				     "pool.limit, pool.refill, N being 0..%u",
				     POLICY_ORDER_COUNT - 1);
	if (!r && strncmp(key, "pool.", 5) != 0)
		mark_changed(policy);
	return r;
}

static void render_limit(struct strbuf *out, unsigned int order,
			 const char *key, uint64_t bytes)
{
	static const char units[] = "KMGT";
	unsigned int i = 0;

	if (bytes == POLICY_NO_LIMIT) {
		strbuf_append(out, "pool.%u.%s=none\n", order, key);
		return;
	}
	while (bytes && bytes % 1024 == 0 && i < 4) {
		bytes /= 1024;
		i++;
	}
	strbuf_append(out, "pool.%u.%s=%llu", order, key,
		      (unsigned long long)bytes);
	if (i)
		strbuf_append_char(out, units[i - 1]);
	strbuf_append_char(out, '\n');
}

void policy_render(const struct policy *policy, struct strbuf *out)
{
	strbuf_append(out, "orders=");
	for (uint32_t i = 0; i < policy->n_steps; i++)
		strbuf_append(out, i ? " %u" : "%u", policy->order[i]);
	strbuf_append_char(out, '\n');
	for (unsigned int order = POLICY_ORDER_COUNT; order-- > 0;) {
		if (!policy_has_order(policy, order))
			continue;
		strbuf_append(out, "gfp.%u=", order);
		gfp_format(out, policy->gfp[order]);
		strbuf_append_char(out, '\n');
		render_limit(out, order, "limit",
			     policy->pool_limit_bytes[order]);
		if (order)
			render_limit(out, order, "mark",
				     policy->pool_mark_bytes[order]);
	}
	strbuf_append(out, "pool.refill=%s\n",
		      policy->pool_refill ? "on" : "off");
}
