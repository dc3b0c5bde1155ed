/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Experiment binder-kvcalloc: a buffer's page array of order 3, as one
 * contiguous block or as kvalloc gets it, in nodes of three states, for
 * payloads of 4 to 64 KiB.
 *
 * Units:     *_bytes; *_ns of the model.
 * Ownership: plain values.
 * Threads:   none of its own.
 */

#include "lab/experiment.h"
#include "mm/cost.h"

#define KVCALLOC_PAYLOADS 5u

enum kvcalloc_state {
	KVCALLOC_PLENTY,  /* nearly everything is free */
	KVCALLOC_LOW,     /* little is free, in pieces, but movable */
	KVCALLOC_STARVED, /* no order 3 anywhere, and none to be made */
	KVCALLOC_STATES,
};

enum kvcalloc_mode {
	KVCALLOC_KV,
	KVCALLOC_CONTIGUOUS,
	KVCALLOC_MODES,
};

struct kvcalloc_params {
	uint64_t seed;
	uint64_t node_bytes;
	unsigned int n_ops;
	unsigned int n_live; /* buffers alive at once */
	struct cost_profile costs;
	const char *profile;
};

struct kvcalloc_cell {
	uint64_t n_done, n_failed;
	uint64_t n_contiguous, n_fallback;
	uint64_t n_oom_kills;
	uint64_t stall_ns;  /* in all */
	uint64_t per_op_ns; /* the mean */
	uint64_t median_ns;
};

struct kvcalloc_result {
	struct kvcalloc_params params;
	struct kvcalloc_cell cell[KVCALLOC_STATES][KVCALLOC_PAYLOADS]
				 [KVCALLOC_MODES];
};

extern const struct experiment experiment_kvcalloc;

/* Return: 0, or a negated errno with the reason in @why. */
int kvcalloc_run(struct kvcalloc_result *result, struct strbuf *why)
	_must_check_;

/* Tables and closing sentence from the figures, and from nothing else. */
void kvcalloc_report(const struct kvcalloc_result *result,
		     struct report *report);
