/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Experiments: each answers, with figures of this project's own code running,
 * the questions that one kernel discussion left open (docs/experiments.md), and
 * prints the discussion's own figures beside.
 *
 * Units:     see the reports.
 * Ownership: a report is the caller's.
 * Threads:   the main thread; an experiment may start threads of its own.
 */

#include "base/base.h"
#include "lab/report.h"

struct experiment_options {
	uint64_t seed;
	const char *trace;  /* a recorded trace to use, or NULL */
	const char *daemon; /* program to measure, or NULL: look for it */
	bool manage_thp;    /* as root: set the switches of large folios, and
			       restore them */
};

struct experiment {
	const char *name;
	const char *title;
	/* Return: 0, or a negated errno with a reason in @why. */
	int (*run)(const struct experiment_options *options,
		   struct report *report, struct strbuf *why);
};

/* Return: experiment @i, or NULL after the last. */
const struct experiment *experiment_get(size_t i);

/**
 * experiment_main() - `dmaheap-lab experiment [OPTIONS] NAME... | all | list`
 * @argc, @argv: from the word "experiment" on
 *
 * Return: exit status: 0, 1 when one failed, 2 on bad usage.
 */
int experiment_main(int argc, char **argv);
