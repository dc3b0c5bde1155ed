/* SPDX-License-Identifier: MIT */
#include "mm/gfp.h"

#include <errno.h>
#include <string.h>

static const struct {
	const char *name;
	uint32_t flags;
} sets[] =
	{
		{"LOW_ORDER", GFP_LOW_ORDER},
		{"MID_ORDER", GFP_MID_ORDER},
		{"HIGH_ORDER", GFP_HIGH_ORDER},
},
  bits[] = {
	  {"DIRECT_RECLAIM", GFP_DIRECT_RECLAIM},
	  {"KSWAPD_RECLAIM", GFP_KSWAPD_RECLAIM},
	  {"NORETRY", GFP_NORETRY},
	  {"RETRY_MAYFAIL", GFP_RETRY_MAYFAIL},
	  {"NOFAIL", GFP_NOFAIL},
	  {"NOWARN", GFP_NOWARN},
	  {"COMP", GFP_COMP},
	  {"ZERO", GFP_ZERO},
	  {"MOVABLE", GFP_MOVABLE},
	  {"RECLAIMABLE", GFP_RECLAIMABLE},
};

const char gfp_names[] =
	"LOW_ORDER, MID_ORDER, HIGH_ORDER, DIRECT_RECLAIM, KSWAPD_RECLAIM, "
	"NORETRY, RETRY_MAYFAIL, NOFAIL, NOWARN, COMP, ZERO, MOVABLE, "
	"RECLAIMABLE";

/* Return: the flags of the name, or 0. */
static uint32_t find(const char *name, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(sets); i++)
		if (strlen(sets[i].name) == len &&
		    memcmp(sets[i].name, name, len) == 0)
			return sets[i].flags;
	for (size_t i = 0; i < ARRAY_SIZE(bits); i++)
		if (strlen(bits[i].name) == len &&
		    memcmp(bits[i].name, name, len) == 0)
			return bits[i].flags;
	return 0;
}

int gfp_parse(const char *text, uint32_t *ret_flags)
{
	const uint32_t both = GFP_MOVABLE | GFP_RECLAIMABLE;
	uint32_t flags = 0;

	if (strcmp(text, "0") == 0) {
		*ret_flags = 0;
		return 0;
	}
	for (const char *p = text;; p++) {
		size_t len = strcspn(p, "|");
		uint32_t found = find(p, len);

		if (found == 0)
			return -EINVAL;
		flags |= found;
		p += len;
		if (*p == '\0')
			break;
	}
	if ((flags & both) == both)
		return -EINVAL;
	*ret_flags = flags;
	return 0;
}

void gfp_format(struct strbuf *sb, uint32_t flags)
{
	const char *separator = "";

	if (flags == 0)
		strbuf_append_string(sb, "0");
	for (size_t i = 0; i < ARRAY_SIZE(sets); i++) {
		if (flags == sets[i].flags) {
			strbuf_append_string(sb, sets[i].name);
			return;
		}
	}
	for (size_t i = 0; i < ARRAY_SIZE(bits); i++) {
		if (!(flags & bits[i].flags))
			continue;
		strbuf_append(sb, "%s%s", separator, bits[i].name);
		separator = "|";
	}
}
