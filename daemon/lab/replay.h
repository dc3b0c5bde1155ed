/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Replay: a recorded trace (docs/trace-format.md) run again on a node of the
 * same parameters, or on another one, or with another policy.
 *
 * Units:     as lab/table.h.
 * Ownership: results are the caller's.
 * Threads:   main thread.
 */

#include "base/base.h"
#include "lab/setup.h"
#include "lab/table.h"

/* How the replay went beside the record. */
struct replay_counts {
	uint64_t n_allocs;
	uint64_t n_compared;  /* of them, those whose result is recorded */
	uint64_t n_same;      /* of these, with that outcome and composition */
	uint64_t n_same_time; /* of them, with the same spent_ns */
	uint64_t n_unknown; /* events of an id that the replay does not have */
	uint64_t n_taken;   /* parked buffers taken whole */
	uint64_t n_missing; /* taken, but older than the trace: not replayed */
};

/**
 * replay_run() - replay a trace
 * @text: NUL-terminated, changed while reading
 *
 * The table has one set per heap, in the order of their first event. The first
 * of @overrides->policies replaces every heap's orders and flags.
 *
 * Return: 0, CONF_E_INVALID with @err, -ENOMEM.
 */
int replay_run(struct lab_table *ret, struct replay_counts *counts,
	       const char *file, char *text,
	       const struct lab_overrides *overrides, struct conf_error *err)
	_must_check_;
