/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Experiment stringbuf: the four loops of the 2007 discussion of a growing
 * string, for exact and geometric growth, on memory of three kinds.
 *
 * Units:     ns per append; reallocations and bytes copied per string.
 * Ownership: plain values.
 * Threads:   none of its own.
 */

#include "lab/experiment.h"

enum stringbuf_memory {
	STRINGBUF_GLIBC,   /* realloc() */
	STRINGBUF_CLASSES, /* base/slab_class: moves from class to class */
	STRINGBUF_PLAIN,   /* no size classes: every resize moves */
	STRINGBUF_MEMORIES,
};

enum stringbuf_loop {
	STRINGBUF_APPEND,  /* strbuf_append() */
	STRINGBUF_NO_COPY, /* allocate and free without copying */
	STRINGBUF_REALLOC, /* plain resizing, no formatting */
	STRINGBUF_LOOPS,
};

struct stringbuf_params {
	uint64_t seed;          /* printed only: nothing here is random */
	unsigned int n_strings; /* per round */
	unsigned int n_appends; /* of one byte, per string */
	unsigned int n_rounds;  /* the median round counts */
};

struct stringbuf_cell {
	double ns_per_append;
	double reallocations; /* per string */
	double bytes_copied;  /* per string */
};

struct stringbuf_result {
	struct stringbuf_params params;
	double sprintf_ns; /* formatting into a fixed array */
	/* [memory][0: geometric, 1: exact][loop] */
	struct stringbuf_cell cell[STRINGBUF_MEMORIES][2][STRINGBUF_LOOPS];
};

extern const struct experiment experiment_stringbuf;

/* Return: 0 or -ENOMEM. */
int stringbuf_measure(const struct stringbuf_params *params,
		      struct stringbuf_result *ret) _must_check_;

/* Tables and closing sentence from the figures, and from nothing else. */
void stringbuf_report(const struct stringbuf_result *result,
		      struct report *report);
