/* SPDX-License-Identifier: MIT */
#include "base/parse.h"

#include <errno.h>
#include <string.h>

/* Return: as parse_u64(); @rest receives what follows the digits. */
static int parse_digits(const char *text, uint64_t *ret, const char **rest)
{
	uint64_t value = 0;
	const char *p = text;

	for (; *p >= '0' && *p <= '9'; p++) {
		if (__builtin_mul_overflow(value, UINT64_C(10), &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value))
			return -ERANGE;
	}
	if (p == text)
		return -EINVAL;
	*ret = value;
	*rest = p;
	return 0;
}

int parse_u64(const char *text, uint64_t *ret)
{
	const char *rest;
	uint64_t value;
	int r;

	r = parse_digits(text, &value, &rest);
	if (r)
		return r;
	if (*rest)
		return -EINVAL;
	*ret = value;
	return 0;
}

int parse_size(const char *text, uint64_t *ret)
{
	static const char units[] = "KMGT";
	const char *rest, *unit;
	uint64_t value;
	int r;

	r = parse_digits(text, &value, &rest);
	if (r)
		return r;
	if (*rest) {
		unit = strchr(units, *rest);
		if (!unit || rest[1])
			return -EINVAL;
		r = __builtin_mul_overflow(value,
					   UINT64_C(1024)
						   << (10 * (unit - units)),
					   &value);
		if (r)
			return -ERANGE;
	}
	*ret = value;
	return 0;
}

int parse_bool(const char *text, bool *ret)
{
	static const char *const words[] = {"off", "on", "no",    "yes",
					    "0",   "1",  "false", "true"};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (!strcmp(text, words[i])) {
			*ret = i % 2;
			return 0;
		}
	}
	return -EINVAL;
}

int parse_word(const char **list, char *buf, size_t size)
{
	const char *word = *list + strspn(*list, " \t,");
	size_t len = strcspn(word, " \t,");

	if (len >= size)
		return -ERANGE;
	memcpy(buf, word, len);
	buf[len] = '\0';
	*list = word + len;
	return (int)len;
}
