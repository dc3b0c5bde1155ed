/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lab/cmd.h"
#include "lab/experiment.h"

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *usage;
} verbs[] = {
	{"run", cmd_run,
	 "run SCENARIO|NAME... [--node DIR] [--policy P...] [--seed N]\n"
	 "      [--json | --tsv | --html FILE]       run scenarios"},
	{"sweep", cmd_sweep,
	 "sweep SCENARIO|NAME... [the same options]\n"
	 "                                           every policy in every "
	 "condition"},
	{"merge", cmd_merge,
	 "merge FILE...                            compare results of run "
	 "--tsv"},
	{"replay", cmd_replay,
	 "replay TRACE [--node DIR] [--policy P] [--seed N] [--json | --tsv]\n"
	 "                                           run a recorded trace "
	 "again"},
	{"import", cmd_import,
	 "import FILE                              a kernel's trace into one "
	 "to replay"},
	{"calibrate", cmd_calibrate,
	 "calibrate [--output FILE]                measure this machine's "
	 "costs"},
	{"experiment", experiment_main,
	 "experiment [--seed N] [--json] NAME...|all|list\n"
	 "                                           the five sources' "
	 "questions"},
};

static void print_usage(FILE *to)
{
	fprintf(to, "usage: dmaheap-lab VERB ...\n");
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		fprintf(to, "  %s\n", verbs[i].usage);
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		print_usage(stderr);
		return LAB_EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		print_usage(stdout);
		return LAB_EXIT_OK;
	}
	if (!strcmp(argv[1], "--version")) {
		printf("dmaheap-lab %s\n", DMAHEAP_VERSION);
		return LAB_EXIT_OK;
	}
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		if (!strcmp(argv[1], verbs[i].name))
			return verbs[i].run(argc - 1, argv + 1);
	}
	return lab_usage("no such verb: %s", argv[1]);
}
