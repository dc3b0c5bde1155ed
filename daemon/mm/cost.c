/* SPDX-License-Identifier: MIT */
#include "mm/cost.h"

#include <errno.h>
#include <string.h>

#define PS_PER_NS UINT64_C(1000)

/*
 * Every field of struct cost_profile is a uint64_t, in the order of COST_LIST:
 * the tables below go by that index.
 */
static const char *const names[] = {
#define COST_NAME(name, ps, what) #name,
	COST_LIST(COST_NAME)
#undef COST_NAME
};

static const char *const meanings[] = {
#define COST_WHAT(name, ps, what) what,
	COST_LIST(COST_WHAT)
#undef COST_WHAT
};

static const size_t offsets[] = {
#define COST_OFFSET(name, ps, what) offsetof(struct cost_profile, name##_ps),
	COST_LIST(COST_OFFSET)
#undef COST_OFFSET
};

static uint64_t *field(struct cost_profile *costs, unsigned int i)
{
	return (uint64_t *)(void *)((char *)costs + offsets[i]);
}

struct cost_profile cost_profile_default(void)
{
	return (struct cost_profile){
#define COST_VALUE(name, ps, what) .name##_ps = UINT64_C(ps),
		COST_LIST(COST_VALUE)
#undef COST_VALUE
	};
}

/* "12.345" to 12345. Return: 0, -EINVAL, -ERANGE. */
static int parse_ns(const char *text, uint64_t *ret_ps)
{
	const char *p = text;
	uint64_t ns = 0, fraction = 0, unit = PS_PER_NS;

	if (*p < '0' || *p > '9')
		return -EINVAL;
	for (; *p >= '0' && *p <= '9'; p++) {
		ns = ns * 10 + (uint64_t)(*p - '0');
		if (ns > COST_MAX_NS)
			return -ERANGE;
	}
	if (*p == '.') {
		for (p++; *p >= '0' && *p <= '9' && unit > 1; p++) {
			unit /= 10;
			fraction += (uint64_t)(*p - '0') * unit;
		}
		if (unit == PS_PER_NS)
			return -EINVAL;
	}
	if (*p != '\0')
		return -EINVAL;
	*ret_ps = ns * PS_PER_NS + fraction;
	return 0;
}

int cost_profile_set(struct cost_profile *costs, const char *key,
		     const char *value)
{
	uint64_t ps;
	int r;

	for (unsigned int i = 0; i < ARRAY_SIZE(names); i++) {
		if (strcmp(names[i], key) != 0)
			continue;
		r = parse_ns(value, &ps);
		if (r)
			return r;
		*field(costs, i) = ps;
		return 0;
	}
	return -ENOENT;
}

void cost_profile_scale(struct cost_profile *costs, uint32_t num, uint32_t den)
{
	assert(den > 0);
	for (unsigned int i = 0; i < ARRAY_SIZE(names); i++)
		*field(costs, i) = *field(costs, i) * num / den;
}

const char *cost_name(unsigned int i)
{
	assert(i < ARRAY_SIZE(names));
	return names[i];
}

const char *cost_meaning(unsigned int i)
{
	assert(i < ARRAY_SIZE(meanings));
	return meanings[i];
}

uint64_t cost_value_ps(const struct cost_profile *costs, unsigned int i)
{
	assert(i < ARRAY_SIZE(offsets));
	return *(const uint64_t *)(const void *)((const char *)costs +
						 offsets[i]);
}
