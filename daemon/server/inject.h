/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Inject: failures and stalls on demand, by rules that clients set.
 *
 * Units:     stall_ns; rates are parts per million.
 * Ownership: a rule belongs to who set it (a session, or nobody when it is to
 *            be kept) and ends with him.
 * Threads:   the loop's.
 */

#include <sys/types.h>

#include <dmaheap/protocol.h>

#include "base/base.h"

struct inject;

#define INJECT_RULES_MAX 64u

/* Outcome of inject_add(). */
enum {
	INJECT_E_OK_,
	INJECT_E_FULL,  /* INJECT_RULES_MAX rules are there */
	INJECT_E_FIELD, /* the rule makes no sense; see @error */
};

struct inject_verdict {
	int err; /* > 0: the request fails with it */
	uint64_t stall_ns;
};

/* @seed: of the chance of fail_rate_ppm, for each rule anew. Return: 0 or
 * -ENOMEM. */
int inject_new(struct inject **ret, uint64_t seed) _must_check_;

/* Return: NULL, always. @inject may be NULL. */
struct inject *inject_free(struct inject *inject);
DEFINE_CLEANUP(struct inject *, inject_free);

/**
 * inject_add() - add a rule
 * @owner: NULL: kept until inject_clear()
 * @error: receives what is wrong with INJECT_E_FIELD
 *
 * Return: 0, INJECT_E_FULL, INJECT_E_FIELD, -ENOMEM.
 */
int inject_add(struct inject *inject, const void *owner,
	       const struct dmaheap_inject_req *rule, char *error,
	       size_t error_bytes) _must_check_;

/* Removes every rule. */
void inject_clear(struct inject *inject);

/* Removes the rules of @owner. */
void inject_forget(struct inject *inject, const void *owner);

/**
 * inject_decide() - what happens to one allocation
 *
 * Counts a hit for each rule that matches; stalls add up, the first failure
 * counts. Without rules this costs one comparison.
 */
struct inject_verdict inject_decide(struct inject *inject, uid_t uid, pid_t pid,
				    const char *heap);
