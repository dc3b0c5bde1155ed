/* SPDX-License-Identifier: MIT */
/* A scenario. */
#include <string.h>

#include "conf/scenario.h"
#include "fuzz.h"

static void check(const struct scenario *s)
{
	FUZZ_REQUIRE(s->n_tables >= 1);
	FUZZ_REQUIRE(s->n_tables <= SCENARIO_TABLES_MAX);
	FUZZ_REQUIRE(s->n_steps <= SCENARIO_STEPS_MAX);
	FUZZ_REQUIRE(s->n_common_steps <= s->n_steps);
	for (size_t i = 0; i < s->n_steps; i++) {
		const struct scenario_step *step = &s->steps[i];

		FUZZ_REQUIRE(step->verb < SCENARIO_VERBS);
		FUZZ_REQUIRE(step->count <= SCENARIO_COUNT_MAX);
		FUZZ_REQUIRE(step->n_sizes <= SCENARIO_SIZES_MAX);
		if (step->verb == SCENARIO_REPEAT ||
		    step->verb == SCENARIO_END) {
			FUZZ_REQUIRE(step->match < s->n_steps);
			FUZZ_REQUIRE(s->steps[step->match].match == i);
		}
	}
	for (size_t i = 0; i < s->n_tables; i++)
		FUZZ_REQUIRE(s->tables[i].first_step + s->tables[i].n_steps <=
			     s->n_steps);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	struct conf_error error = {0};
	struct scenario *scenario;
	int r;

	r = scenario_parse(&scenario, "f", (const char *)data, n_bytes, &error);
	FUZZ_REQUIRE(r == 0 || r == CONF_E_INVALID);
	if (r) {
		FUZZ_REQUIRE(!strncmp(error.text, "f:", 2));
		return 0;
	}
	check(scenario);
	scenario_free(scenario);
	return 0;
}
