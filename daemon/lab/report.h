/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Report: the tables of one experiment and the sentence that closes it, as
 * text or JSON.
 *
 * Every table says under what it was made: policy, seed, profile, version, and
 * whether its figures were measured on this machine, modelled, or counted.
 *
 * Units:     those that the columns' headings name.
 * Ownership: a report owns all of its texts.
 * Threads:   not locked.
 *
 * Memory that runs out is noticed at the end: report_render_*() say so.
 */

#include "base/base.h"
#include "base/strbuf.h"

struct report_context {
	const char *policy; /* "8,4,0", or "none" where no heap takes part */
	uint64_t seed;
	const char *profile; /* of the model's costs, "none" if not modelled */
	const char *kind;    /* "measured", "modelled", "counted", or which
				column is which */
};

struct report;

/* Return: 0 or -ENOMEM. */
int report_new(struct report **ret, const char *name, const char *title)
	_must_check_;

/* Return: NULL, always. @report may be NULL. */
struct report *report_free(struct report *report);
DEFINE_CLEANUP(struct report *, report_free);

/**
 * report_table() - begin a table
 * @columns:    headings, separated by '|'
 */
void report_table(struct report *report, const char *title,
		  const struct report_context *context, const char *columns);

/* A row of the last table: one text, its cells separated by '|'. Cells beyond
 * the headings are asserted; missing ones are empty. */
void report_row(struct report *report, const char *format, ...) _printf_(2, 3);

/* A sentence below the last table. */
void report_note(struct report *report, const char *format, ...) _printf_(2, 3);

/* Adds to the sentence that closes the report. */
void report_conclude(struct report *report, const char *format, ...)
	_printf_(2, 3);

/* Return: the closing sentence so far. */
const char *report_conclusion(const struct report *report);

/* Return: 0 or -ENOMEM (something of the report is missing). */
int report_render_text(const struct report *report, struct strbuf *sb)
	_must_check_;
int report_render_json(const struct report *report, struct strbuf *sb)
	_must_check_;
