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
	 "run SCENARIO|NAME... [--node DIR] [--profile FILE|NAME] [--seed N]\n"
	 "      [--policy NAME|FILE...] [--json | --tsv | --html FILE]\n"
	 "                                           run scenarios"},
	{"sweep", cmd_sweep,
	 "sweep SCENARIO|NAME... [the same options]\n"
	 "                                           every policy in every "
	 "condition"},
	{"merge", cmd_merge,
	 "merge FILE...                            compare results of run "
	 "--tsv"},
	{"replay", cmd_replay,
	 "replay TRACE [--node DIR] [--profile FILE|NAME] [--seed N]\n"
	 "      [--policy NAME|FILE] [--json | --tsv | --html FILE]\n"
	 "                                           run a recorded trace "
	 "again"},
	{"import", cmd_import,
	 "import FILE                              a kernel's trace into one "
	 "to replay"},
	{"calibrate", cmd_calibrate,
	 "calibrate [--output FILE]                measure this machine's "
	 "costs"},
	{"experiment", experiment_main,
	 "experiment [--seed N] [--trace FILE] [--daemon PROGRAM] "
	 "[--manage-thp]\n"
	 "      [--json] NAME...|all|list\n"
	 "                                           the five sources' "
	 "questions"},
};

static void print_usage(FILE *to)
{
	fprintf(to, "usage: dmaheap-lab VERB ...\n");
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		fprintf(to, "  %s\n", verbs[i].usage);
}

static bool asks_for_help(const char *arg)
{
	return !strcmp(arg, "--help") || !strcmp(arg, "-h");
}

static int run_verb(unsigned int verb, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (asks_for_help(argv[i])) {
			printf("usage: dmaheap-lab %s\n", verbs[verb].usage);
			return LAB_EXIT_OK;
		}
	}
	return verbs[verb].run(argc, argv);
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		print_usage(stderr);
		return LAB_EXIT_USAGE;
	}
	if (asks_for_help(argv[1])) {
		print_usage(stdout);
		return LAB_EXIT_OK;
	}
	if (!strcmp(argv[1], "--version")) {
		printf("dmaheap-lab %s\n", DMAHEAP_VERSION);
		return LAB_EXIT_OK;
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(verbs); i++) {
		if (!strcmp(argv[1], verbs[i].name))
			return run_verb(i, argc - 1, argv + 1);
	}
	return lab_usage("no such verb: %s", argv[1]);
}
