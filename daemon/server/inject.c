/* SPDX-License-Identifier: MIT */
#include "server/inject.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/list.h"
#include "base/rng.h"

#define PPM 1000000u

struct rule {
	struct list_node link; /* inject::rules, oldest first */
	const void *owner;
	struct dmaheap_inject_req req;
	uint32_t n_seen; /* requests that the filter let through */
	uint32_t n_hits; /* of them, failed or stalled */
	struct rng rng;  /* its own: a rule set again fails the same requests */
};

struct inject {
	struct list_node rules;
	unsigned int n_rules;
	uint64_t seed;
};

int inject_new(struct inject **ret, uint64_t seed)
{
	struct inject *i = calloc(1, sizeof(*i));

	if (!i)
		return err_raise(-ENOMEM);
	list_init(&i->rules);
	i->seed = seed;
	*ret = i;
	return 0;
}

struct inject *inject_free(struct inject *inject)
{
	if (!inject)
		return NULL;
	inject_clear(inject);
	free(inject);
	return NULL;
}

static void rule_free(struct inject *inject, struct rule *rule)
{
	list_remove(&rule->link);
	inject->n_rules--;
	free(rule);
}

static int check(const struct dmaheap_inject_req *r, char *error,
		 size_t error_bytes)
{
	if (r->fail_nth && r->fail_rate_ppm) {
		snprintf(error, error_bytes,
			 "fail_nth and fail_rate_ppm exclude each other");
		return INJECT_E_FIELD;
	}
	if (!r->fail_nth && !r->fail_rate_ppm && !r->stall_ms) {
		snprintf(error, error_bytes,
			 "one of fail_nth, fail_rate_ppm and stall_ms is "
			 "needed");
		return INJECT_E_FIELD;
	}
	if (r->fail_rate_ppm > PPM) {
		snprintf(error, error_bytes,
			 "fail_rate_ppm = %u: 0 to 1000000 is allowed",
			 r->fail_rate_ppm);
		return INJECT_E_FIELD;
	}
	if (r->err < 0 || r->err > 4095) {
		snprintf(error, error_bytes, "err = %d: 0 to 4095 is allowed",
			 r->err);
		return INJECT_E_FIELD;
	}
	return 0;
}

int inject_add(struct inject *inject, const void *owner,
	       const struct dmaheap_inject_req *rule, char *error,
	       size_t error_bytes)
{
	int r = check(rule, error, error_bytes);
	struct rule *n;

	if (r)
		return r;
	if (inject->n_rules == INJECT_RULES_MAX)
		return INJECT_E_FULL;
	n = calloc(1, sizeof(*n));
	if (!n)
		return err_raise(-ENOMEM);
	n->owner = owner;
	n->req = *rule;
	/* Rules that are there together are not to fail the same requests. */
	rng_seed(&n->rng, inject->seed + inject->n_rules);
	list_add_tail(&inject->rules, &n->link);
	inject->n_rules++;
	return 0;
}

void inject_clear(struct inject *inject)
{
	list_for_each_safe(n, &inject->rules)
		rule_free(inject, list_entry(n, struct rule, link));
}

void inject_forget(struct inject *inject, const void *owner)
{
	list_for_each_safe(n, &inject->rules)
	{
		struct rule *rule = list_entry(n, struct rule, link);

		if (rule->owner == owner)
			rule_free(inject, rule);
	}
}

static bool matches(const struct dmaheap_inject_req *r, uid_t uid, pid_t pid,
		    const char *heap)
{
	return (r->uid == DMAHEAP_INJECT_ANY_ID || r->uid == uid) &&
	       (r->pid == DMAHEAP_INJECT_ANY_ID || r->pid == (uint32_t)pid) &&
	       (!*r->heap_name || !strcmp(r->heap_name, heap));
}

/*
 * fail_nth is the n-th request from now, and with count so many from there on;
 * a rule that only stalls stalls each. A rule of both stalls the requests that
 * it fails.
 */
static bool hits(struct rule *rule)
{
	rule->n_seen++;
	if (rule->req.fail_nth)
		return rule->n_seen >= rule->req.fail_nth;
	if (rule->req.fail_rate_ppm)
		return rng_below(&rule->rng, PPM) < rule->req.fail_rate_ppm;
	return true;
}

static bool is_used_up(const struct rule *rule)
{
	uint32_t count = rule->req.count;

	if (!count && rule->req.fail_nth)
		count = 1;
	return count && rule->n_hits >= count;
}

struct inject_verdict inject_decide(struct inject *inject, uid_t uid, pid_t pid,
				    const char *heap)
{
	struct inject_verdict v = {0};

	if (!inject->n_rules)
		return v;
	list_for_each_safe(n, &inject->rules)
	{
		struct rule *rule = list_entry(n, struct rule, link);
		const struct dmaheap_inject_req *r = &rule->req;

		if (!matches(r, uid, pid, heap) || !hits(rule))
			continue;
		rule->n_hits++;
		v.stall_ns += r->stall_ms * NSEC_PER_MSEC;
		if (!v.err && (r->fail_nth || r->fail_rate_ppm))
			v.err = r->err ? r->err : ENOMEM;
		if (is_used_up(rule))
			rule_free(inject, rule);
	}
	return v;
}
