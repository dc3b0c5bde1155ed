/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Player: runs a scenario's tables on a fresh node each, in virtual time.
 *
 * Units:     as lab/table.h.
 * Ownership: results are the caller's.
 * Threads:   main thread. A run depends on nothing but its arguments and the
 *            files that these name.
 */

#include "base/base.h"
#include "conf/scenario.h"
#include "lab/setup.h"
#include "lab/table.h"

/**
 * lab_play() - run every table of a scenario with each of its policies
 * @results:  receives one table each; tables of earlier runs stay
 * @name:     of the scenario, for reports
 * @file:     its path
 *
 * Return: 0, CONF_E_INVALID with @err, -ENOMEM.
 */
int lab_play(struct lab_results *results, const struct scenario *scenario,
	     const char *name, const char *file,
	     const struct lab_overrides *overrides, struct conf_error *err)
	_must_check_;

/**
 * lab_play_table() - run one table with one policy
 *
 * Return: as lab_play().
 */
int lab_play_table(struct lab_table *ret, const struct scenario *scenario,
		   const struct scenario_table *table, const char *policy_name,
		   const char *file, const struct lab_overrides *overrides,
		   struct conf_error *err) _must_check_;
