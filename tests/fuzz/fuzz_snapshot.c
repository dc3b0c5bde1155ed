/* SPDX-License-Identifier: MIT */
/*
 * A snapshot: the texts of buddyinfo, pagetypeinfo, zoneinfo, meminfo and
 * vmstat in this order, separated by form feeds; an empty one is not given.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "mm/snapshot.h"

static void check(const struct snapshot *s)
{
	FUZZ_REQUIRE(s->n_zones >= 1 && s->n_zones <= SNAPSHOT_ZONES_MAX);
	for (unsigned int i = 0; i < s->n_zones; i++) {
		const struct snapshot_zone *zone = &s->zone[i];
		uint64_t free_pages = 0;

		FUZZ_REQUIRE(zone->name[0]);
		FUZZ_REQUIRE(strnlen(zone->name, sizeof(zone->name)) <
			     sizeof(zone->name));
		FUZZ_REQUIRE(zone->managed_pages <= zone->span_pages);
		for (unsigned int t = 0; t < SNAPSHOT_TYPES; t++)
			for (unsigned int o = 0; o < SNAPSHOT_ORDERS; o++)
				free_pages += zone->free[t][o] << o;
		FUZZ_REQUIRE(free_pages <= zone->managed_pages);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	char *text = malloc(n_bytes + 1), *part[5] = {NULL}, *next;
	struct snapshot_texts texts;
	struct snapshot_error error = {0};
	struct snapshot *snapshot;
	int r;

	FUZZ_REQUIRE(text);
	memcpy(text, data, n_bytes);
	text[n_bytes] = '\0';
	next = text;
	for (size_t i = 0; i < 5 && next; i++) {
		char *end = strchr(next, '\f');

		if (end)
			*end = '\0';
		part[i] = *next ? next : NULL;
		next = end ? end + 1 : NULL;
	}
	texts = (struct snapshot_texts){part[0], part[1], part[2], part[3],
					part[4]};
	r = snapshot_parse(&snapshot, &texts, NULL, &error);
	FUZZ_REQUIRE(r == 0 || r == SNAPSHOT_E_INVALID);
	if (r) {
		FUZZ_REQUIRE(error.text[0]);
	} else {
		check(snapshot);
		snapshot_free(snapshot);
	}
	free(text);
	return 0;
}
