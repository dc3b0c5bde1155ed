/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Choose: which backing is in force on this host, and why not a better one.
 *
 * Ownership: nothing is kept but in the backing.
 * Threads:   the loop's, before the workers start or while it may wait 1 ms.
 */

#include "backing/buffer.h"

/* Sets mode, in_force, collapse_works, reason and thp of @b. Tries what it
 * takes: see selftest.h. */
void choose_backing(struct backing *b, const struct backing_params *params);

/* Other orders are in use now: with manage_thp their switches are set too. */
void choose_more_orders(struct backing *b, uint32_t orders);
