/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Experiment order4-reclaim: the shipped scenario of that name, its seven
 * tables beside the six of the source, set by set.
 *
 * Units:     *_us as the source has them; modelled here.
 * Ownership: plain values.
 * Threads:   none of its own.
 */

#include "lab/experiment.h"
#include "lab/table.h"

#define ORDER4_SETS_MAX 16u

/* One set of 16 buffers. */
struct order4_set {
	char condition[LAB_NAME_BYTES];
	char policy[LAB_NAME_BYTES];
	uint32_t set;
	uint64_t n, n_failed;
	uint64_t first_us, median_us, min_us, max_us;
	uint64_t stall_us; /* in all */
	uint64_t order8, order4, order0;
};

struct order4_result {
	uint64_t seed;
	char profile[LAB_NAME_BYTES];
	unsigned int n_sets;
	struct order4_set set[ORDER4_SETS_MAX];
};

extern const struct experiment experiment_order4;

/* Return: 0, or a negated errno with @why. */
int order4_run(struct order4_result *result, struct strbuf *why) _must_check_;

/* Tables and closing sentence from the figures, and from nothing else. */
void order4_report(const struct order4_result *result, struct report *report);

/* The source's set of that condition and policy. Return: NULL when it has none
 * (low-memory-high). */
const struct order4_set *order4_source(const char *condition,
				       const char *policy, uint32_t set);
