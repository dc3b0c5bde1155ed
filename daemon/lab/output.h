/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Output: results as text for people, as TSV, JSON and HTML for programs and
 * reports. Every table names its scenario, condition, policy, seed, profile
 * and the program's version, so that no two can be confused.
 *
 * Units:     microseconds in TSV and text, as the sources' tables have them;
 *            nanoseconds in JSON.
 * Ownership: nothing is kept.
 * Threads:   no state.
 */

#include "base/base.h"
#include "base/strbuf.h"
#include "lab/table.h"

/* Return: 0 or -ENOMEM, each; strbuf_failed() as well says -ENOMEM. */
int output_text(const struct lab_results *results, struct strbuf *out)
	_must_check_;
int output_json(const struct lab_results *results, struct strbuf *out)
	_must_check_;
int output_html(const struct lab_results *results, struct strbuf *out)
	_must_check_;

/* Columns: condition policy set n latency_us order8 order4 order0, others
 * after these; a failed allocation has no blocks and says so in a comment. */
void output_tsv(const struct lab_results *results, struct strbuf *out);

/* Rounded to the nearest. */
static inline uint64_t ns_to_us(uint64_t ns)
{
	return (ns + 500) / 1000;
}
