/* SPDX-License-Identifier: MIT */
#include "base/rng.h"

static uint64_t rotate_left(uint64_t x, unsigned int n)
{
	return (x << n) | (x >> (64 - n));
}

static uint64_t splitmix64(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

void rng_seed(struct rng *rng, uint64_t seed)
{
	for (size_t i = 0; i < ARRAY_SIZE(rng->s); i++)
		rng->s[i] = splitmix64(&seed);
}

uint64_t rng_next(struct rng *rng)
{
	uint64_t *s = rng->s;
	uint64_t result = rotate_left(s[1] * 5, 7) * 9;
	uint64_t t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotate_left(s[3], 45);
	return result;
}

uint64_t rng_below(struct rng *rng, uint64_t n)
{
	uint64_t threshold, x;

	assert(n > 0);

	/* 2^64 mod n values are refused, so that the rest divides evenly. */
	threshold = (0 - n) % n;
	do {
		x = rng_next(rng);
	} while (x < threshold);
	return x % n;
}
