/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The arguments that run, sweep and replay share.
 *
 *   SCENARIO|NAME...  --node DIR  --profile P  --policy P...  --seed N
 *   --json | --tsv | --html FILE
 *
 * --policy takes all words up to the next option: names of policies, and files
 * of sections [policy NAME], all of which it takes. It may come again.
 *
 * Ownership: texts are borrowed from argv; a struct lab_args points into itself
 *            and must stay where it is.
 * Threads:   main thread.
 */

#include "base/base.h"
#include "lab/setup.h"
#include "lab/table.h"

#define LAB_INPUTS_MAX 32u

enum lab_format {
	LAB_FORMAT_TEXT,
	LAB_FORMAT_JSON,
	LAB_FORMAT_TSV,
	LAB_FORMAT_HTML,
};

struct lab_args {
	const char *inputs[LAB_INPUTS_MAX];
	size_t n_inputs;
	const char *policies[LAB_POLICIES_MAX];
	struct lab_policies own; /* of files */
	struct lab_overrides overrides;
	enum lab_format format;
	const char *html_file;
};

/* Return: exit status; a message was printed unless LAB_EXIT_OK. */
int lab_args_parse(struct lab_args *ret, int argc, char **argv);

/**
 * lab_run_inputs() - play the scenarios that @args names
 *
 * Return: exit status; a message was printed unless LAB_EXIT_OK.
 */
int lab_run_inputs(struct lab_results *results, const struct lab_args *args);
