/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Probe: what this host offers to the backing and what it lacks, for doctor.
 * Everything is tried, nothing is judged by the kernel's version.
 *
 * Units:     texts say theirs.
 * Ownership: the caller's array.
 * Threads:   any; for a program that is not serving: maps, forks, opens.
 */

#include "base/base.h"

#define PROBE_FACTS_MAX  24u
#define PROBE_TEXT_BYTES 200u

struct probe_fact {
	const char *name;
	bool ok;
	char value[PROBE_TEXT_BYTES];       /* what there is */
	char consequence[PROBE_TEXT_BYTES]; /* !ok: what that means here */
	const char *kernel; /* !ok: since when Linux has it, or "" */
	char command[PROBE_TEXT_BYTES]; /* !ok: what mends it, or "" */
};

/**
 * backing_probe() - try everything
 * @orders: mask of the orders of 4 KiB pages that policies use, for folio
 *
 * Return: the number of facts stored.
 */
unsigned int backing_probe(struct probe_fact facts[PROBE_FACTS_MAX],
			   uint32_t orders);
