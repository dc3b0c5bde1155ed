/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What the lab's tests share: shipped scenarios as text, to run as they are or
 * changed, and summaries of the results.
 *
 * Ownership: scenario_text() gives the caller a text to free().
 * Threads:   main thread.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/files.h"
#include "lab/data.h"
#include "lab/player.h"
#include "support/test.h"

static inline char *scenario_text(const char *name)
{
	char path[LAB_PATH_BYTES];
	char *text = NULL;

	T_REQUIRE(lab_find(path, "scenarios", name, ".conf", NULL));
	T_REQUIRE(conf_read_file(path, CONF_FILE_MAX_BYTES, &text, NULL) == 0);
	return text;
}

/* Return: @text with every @from replaced by @to; frees @text. At least one
 * must be there. */
static inline char *replaced(char *text, const char *from, const char *to)
{
	size_t n = 0, len = strlen(text);
	char *out, *end;

	for (char *at = text; (at = strstr(at, from)); at += strlen(from))
		n++;
	T_REQUIRE(n > 0);
	out = malloc(len + n * strlen(to) + 1);
	T_REQUIRE(out);
	end = out;
	for (char *at = text, *hit; *at; at = hit + strlen(from)) {
		hit = strstr(at, from);
		if (!hit) {
			end = stpcpy(end, at);
			break;
		}
		end = mempcpy(end, at, (size_t)(hit - at));
		end = stpcpy(end, to);
	}
	*end = '\0';
	free(text);
	return out;
}

/* Runs a text as if it were a file of that name; frees @text. */
static inline void play_text(struct lab_results *results, char *text,
			     uint64_t seed)
{
	const struct lab_overrides overrides = {.has_seed = true, .seed = seed};
	struct conf_error err = {{0}};
	struct scenario *scenario = NULL;
	int r = scenario_parse(&scenario, "test.conf", text, strlen(text),
			       &err);

	if (!r)
		r = lab_play(results, scenario, "test", "test.conf", &overrides,
			     &err);
	if (r)
		printf("%s\n", err.text);
	T_REQUIRE(r == 0);
	scenario = scenario_free(scenario);
	free(text);
}

static inline const struct lab_table *
find_table(const struct lab_results *results, const char *condition,
	   const char *policy)
{
	for (size_t i = 0; i < results->n_tables; i++) {
		if (!strcmp(results->tables[i].condition, condition) &&
		    !strcmp(results->tables[i].policy, policy))
			return &results->tables[i];
	}
	T_REQUIRE(!"no such table");
	return NULL;
}

static inline struct lab_summary summary_of(const struct lab_results *results,
					    const char *condition,
					    const char *policy, uint32_t set)
{
	struct lab_summary sum;

	T_REQUIRE(lab_summarise(find_table(results, condition, policy), set,
				&sum) == 0);
	return sum;
}
