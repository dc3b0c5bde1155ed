/* SPDX-License-Identifier: MIT */
#include "lab/experiment.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/parse.h"
#include "lab/experiment_kvcalloc.h"
#include "lab/experiment_objtrack.h"
#include "lab/experiment_order4.h"
#include "lab/experiment_order_usage.h"
#include "lab/experiment_stringbuf.h"
#include "lab/experiment_threadcache.h"

enum {
	EXIT_OK_ = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
};

static const struct experiment *const experiments[] = {
	&experiment_order4,   &experiment_order_usage, &experiment_threadcache,
	&experiment_kvcalloc, &experiment_stringbuf,   &experiment_objtrack,
};

const struct experiment *experiment_get(size_t i)
{
	return i < ARRAY_SIZE(experiments) ? experiments[i] : NULL;
}

static const struct experiment *find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(experiments); i++)
		if (!strcmp(experiments[i]->name, name))
			return experiments[i];
	return NULL;
}

static int usage(void)
{
	fprintf(stderr,
		"usage: dmaheap-lab experiment [--seed N] [--trace FILE] "
		"[--daemon PROGRAM] [--manage-thp] [--json] NAME... | all | "
		"list\n");
	return EXIT_USAGE;
}

static int list(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(experiments); i++)
		printf("%-22s %s\n", experiments[i]->name,
		       experiments[i]->title);
	return EXIT_OK_;
}

static int run_one(const struct experiment *e,
		   const struct experiment_options *options, bool json)
{
	_cleanup_(report_freep) struct report *report = NULL;
	_cleanup_(strbuf_finip) struct strbuf out = STRBUF_INIT;
	_cleanup_(strbuf_finip) struct strbuf why = STRBUF_INIT;
	uint64_t start = clock_now_ns();
	int r;

	r = report_new(&report, e->name, e->title);
	if (r == 0)
		r = e->run(options, report, &why);
	if (r == 0)
		r = json ? report_render_json(report, &out)
			 : report_render_text(report, &out);
	if (r) {
		fprintf(stderr, "dmaheap-lab: experiment %s: %s\n", e->name,
			why.len ? strbuf_string(&why) : strerror(-r));
		return EXIT_FAILED;
	}
	printf("%s", strbuf_string(&out));
	if (!json)
		printf("(%.1f s)\n\n", (double)(clock_now_ns() - start) / 1e9);
	fflush(stdout);
	return EXIT_OK_;
}

static int run_all(const struct experiment_options *options, bool json)
{
	int status = EXIT_OK_;

	for (size_t i = 0; i < ARRAY_SIZE(experiments); i++)
		status = MAX(status, run_one(experiments[i], options, json));
	return status;
}

static int run_named(char **names, const struct experiment_options *options,
		     bool json)
{
	int status = EXIT_OK_;

	for (; *names; names++) {
		const struct experiment *e = find(*names);

		if (!e) {
			fprintf(stderr,
				"dmaheap-lab: no experiment \"%s\"; "
				"\"experiment list\" names them\n",
				*names);
			return EXIT_USAGE;
		}
		status = MAX(status, run_one(e, options, json));
	}
	return status;
}

int experiment_main(int argc, char **argv)
{
	static const struct option longopts[] = {
		{"seed", required_argument, NULL, 's'},
		{"trace", required_argument, NULL, 't'},
		{"daemon", required_argument, NULL, 'd'},
		{"manage-thp", no_argument, NULL, 'm'},
		{"json", no_argument, NULL, 'j'},
		{0},
	};
	struct experiment_options options = {.seed = 1};
	bool json = false;
	int opt;

	optind = 1;
	while ((opt = getopt_long(argc, argv, "", longopts, NULL)) != -1) {
		if (opt == 's' && parse_u64(optarg, &options.seed) == 0)
			continue;
		else if (opt == 't')
			options.trace = optarg;
		else if (opt == 'd')
			options.daemon = optarg;
		else if (opt == 'm')
			options.manage_thp = true;
		else if (opt == 'j')
			json = true;
		else
			return usage();
	}
	if (optind == argc)
		return usage();
	if (argc - optind == 1 && !strcmp(argv[optind], "list"))
		return list();
	if (argc - optind == 1 && !strcmp(argv[optind], "all"))
		return run_all(&options, json);
	return run_named(argv + optind, &options, json);
}
