/* SPDX-License-Identifier: MIT */
#include "ctl/units.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char suffixes[] = "KMGT";

static bool parse_digits(const char *text, char **ret_end, uint64_t *ret)
{
	if (!isdigit((unsigned char)text[0])) /* strtoull() would take "-1" */
		return false;
	errno = 0;
	*ret = strtoull(text, ret_end, 10);
	return errno == 0;
}

bool units_parse_number(const char *text, uint64_t *ret)
{
	uint64_t value;
	char *end;

	if (!parse_digits(text, &end, &value) || *end)
		return false;
	*ret = value;
	return true;
}

bool units_parse_ms(const char *text, uint64_t *ret_ms)
{
	uint64_t value, scale = 1;
	char *end;

	if (!parse_digits(text, &end, &value))
		return false;
	if (!strcmp(end, "s"))
		scale = 1000;
	else if (*end && strcmp(end, "ms") != 0)
		return false;
	if (value > UINT64_MAX / scale)
		return false;
	*ret_ms = value * scale;
	return true;
}

bool units_parse_size(const char *text, uint64_t *ret_bytes)
{
	unsigned int shift = 0;
	uint64_t value;
	char *end;

	if (!parse_digits(text, &end, &value))
		return false;
	if (*end) {
		const char *suffix =
			strchr(suffixes, toupper((unsigned char)*end));

		if (!suffix || end[1])
			return false;
		shift = 10 * (unsigned int)(suffix - suffixes + 1);
	}
	if (value > UINT64_MAX >> shift)
		return false;
	*ret_bytes = value << shift;
	return true;
}

bool units_parse_decimal(const char *text, double *ret)
{
	double value;
	char *end;

	if (!isdigit((unsigned char)text[0]) && text[0] != '.')
		return false;
	errno = 0;
	value = strtod(text, &end);
	if (errno || end == text || *end || !isfinite(value))
		return false;
	*ret = value;
	return true;
}

const char *units_size(uint64_t bytes, struct units_text *buffer)
{
	char suffix[2] = "";
	int unit = -1; /* bytes */
	bool shortened = false;
	double value;

	/* Exact, as long as that stays short. */
	while (unit < 3 && bytes > 0 && bytes % 1024 == 0) {
		bytes /= 1024;
		unit++;
	}
	value = (double)bytes;
	while (unit < 3 && value >= (shortened ? 1024 : 10000)) {
		value /= 1024;
		unit++;
		shortened = true;
	}
	if (unit >= 0)
		suffix[0] = suffixes[unit];
	snprintf(buffer->s, sizeof(buffer->s), "%.*f%s",
		 value == floor(value) ? 0 : 1, value, suffix);
	return buffer->s;
}

const char *units_time(uint64_t ns, struct units_text *buffer)
{
	if (ns < 1000)
		snprintf(buffer->s, sizeof(buffer->s), "%uns", (unsigned)ns);
	else if (ns < 1000000)
		snprintf(buffer->s, sizeof(buffer->s), "%.1fus",
			 (double)ns / 1e3);
	else if (ns < 1000000000)
		snprintf(buffer->s, sizeof(buffer->s), "%.1fms",
			 (double)ns / 1e6);
	else
		snprintf(buffer->s, sizeof(buffer->s), "%.2fs",
			 (double)ns / 1e9);
	return buffer->s;
}
