/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A random life of a small node: requests of all orders and flags, occupants
 * that come, go and change, presets, time; every invariant verified after each
 * step.
 *
 * Ownership: nothing is kept.
 * Threads:   one at a time.
 */

#include "base/base.h"

struct random_result {
	uint64_t hash;        /* of all results: the same on every compiler */
	uint64_t failed_step; /* UINT64_MAX: none */
	const char *what;     /* the invariant that broke */
	uint64_t n_allocs;
	uint64_t n_stalls;
	uint64_t n_kills;
	uint64_t n_migrated;
	uint64_t n_reclaimed;
};

struct random_result random_node_run(uint64_t seed, uint64_t n_steps);
