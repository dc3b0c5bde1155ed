/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Budget: how much memory the buffers may take, so that nobody is killed.
 *
 * A memory cgroup at its limit kills instead of refusing, so bytes are reserved
 * first and what is left is read again before each chunk. Three limits hold at
 * once: the configured one; what the machine and every cgroup above us leave,
 * less a headroom of 32 MiB or 5 %; and with "auto" 80 % of what they leave.
 *
 * Units:     *_bytes.
 * Ownership: budget_new() to budget_free().
 * Threads:   reserve and chunk from workers, under one lock of theirs; the rest
 *            from any thread and without a lock, so the loop never waits.
 */

#include "backing/backing.h"

struct budget;

/**
 * budget_new() -
 * @limit_bytes: 0: auto
 * @root:        "" but in tests, see hostmem_init()
 *
 * Return: 0, -ENOMEM, -ENOENT (no /proc/meminfo).
 */
int budget_new(struct budget **ret, uint64_t limit_bytes, const char *root)
	_must_check_;
struct budget *budget_free(struct budget *b);

void budget_set_limit(struct budget *b, uint64_t limit_bytes);

/* Where the bytes are to come from. */
enum budget_source {
	BUDGET_HOST,
	BUDGET_HUGETLB, /* taken from the host long ago: only the configured
			 * limit holds */
};

/**
 * budget_reserve() - promise @bytes to one buffer
 * @error: receives the sentence of a refusal, BACKING_ERROR_BYTES
 *
 * Return: 0 or BACKING_E_BUDGET.
 */
int budget_reserve(struct budget *b, enum budget_source source, uint64_t bytes,
		   char *error) _must_check_;

/* Gives back what was reserved and not filled. */
void budget_unreserve(struct budget *b, uint64_t bytes);

/**
 * budget_chunk_begin() - may @bytes of the reserved ones be filled now?
 *
 * Return: 0, or BACKING_E_BUDGET and nothing has changed.
 */
int budget_chunk_begin(struct budget *b, enum budget_source source,
		       uint64_t bytes, char *error) _must_check_;

/* @filled: they are resident now; else they are only reserved, as before. */
void budget_chunk_end(struct budget *b, uint64_t bytes, bool filled);

/* Memory that came with an adopted buffer, and memory that was given back. */
void budget_add_resident(struct budget *b, uint64_t bytes);
void budget_sub_resident(struct budget *b, uint64_t bytes);

uint64_t budget_resident_bytes(const struct budget *b);
/* With "auto" as of the last reading. */
uint64_t budget_limit_bytes(const struct budget *b);
uint64_t budget_n_refusals(const struct budget *b);
