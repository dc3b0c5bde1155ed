/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What the experiments that run the model share.
 *
 * Units:     none.
 * Ownership: results are the caller's.
 * Threads:   the main thread.
 */

#include "mm/cost.h"

/* The costs of the phone profile if it is shipped here, else the built-in
 * defaults. Return: the name to print. */
const char *experiment_profile(struct cost_profile *ret);
