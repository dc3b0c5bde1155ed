/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Pseudo-random numbers (xoshiro256**, seeded by splitmix64): the same sequence
 * for the same seed on every machine and compiler. Not for secrets.
 *
 * Ownership: plain values.
 * Threads:   one generator is used by one thread.
 */

#include "base/base.h"

struct rng {
	uint64_t s[4];
};

void rng_seed(struct rng *rng, uint64_t seed);

/* Return: 64 uniform bits. */
uint64_t rng_next(struct rng *rng);

/* Return: uniform in 0..@n - 1, without bias. @n > 0 (asserted). */
uint64_t rng_below(struct rng *rng, uint64_t n);
