/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * One [step VERB] section of a scenario: its keys and their values.
 *
 * Units:     as in scenario.h.
 * Ownership: @step borrows the section.
 * Threads:   no state.
 */

#include "conf/scenario.h"

/* Return: 0, or CONF_E_INVALID with @err. */
int scenario_read_step(struct scenario_step *step,
		       const struct conf_section *section,
		       struct conf_error *err) _must_check_;
