/* SPDX-License-Identifier: MIT */
/* dmaheapctl: one verb per file; this one finds it and reads its options. */
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/ctl.h"
#include "ctl/options.h"

static void print_usage(FILE *to)
{
	fprintf(to, "Usage: dmaheapctl VERB [ARGUMENTS] [OPTIONS]\n"
		    "Talks to dmaheapd, the dma-buf system heap in user "
		    "space.\n\nVerbs:\n");
	for (const struct verb *const *v = verbs; *v; v++)
		fprintf(to, "  %-14s %s\n", (*v)->name, (*v)->summary);
	fprintf(to, "\n\"dmaheapctl VERB --help\" says more. Sizes take K, M "
		    "and G (binary).\n"
		    "Exit status: 0 done, 1 the operation failed, 2 wrong "
		    "usage.\n");
}

static const struct verb *find_verb(const char *name)
{
	for (const struct verb *const *v = verbs; *v; v++)
		if (!strcmp((*v)->name, name))
			return *v;
	return NULL;
}

static bool wants_colour(void)
{
	const char *no = getenv("NO_COLOR");
	const char *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && !(no && *no) && term &&
	       strcmp(term, "dumb") != 0;
}

static int run(struct ctl *ctl, int argc, char **argv)
{
	bool help = false;
	int n, r;

	r = options_parse(ctl, argc, argv, &n, &help);
	if (r)
		return r;
	if (help) {
		options_print_help(ctl->verb);
		return CTL_OK;
	}
	return ctl->verb->run(ctl, n, argv);
}

int main(int argc, char **argv)
{
	struct ctl ctl = {.colour = wants_colour()};
	int r;

	setlocale(LC_CTYPE, ""); /* for top; numbers stay as in C */
	if (argc < 2) {
		print_usage(stderr);
		return CTL_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "help")) {
		print_usage(stdout);
		return CTL_OK;
	}
	if (!strcmp(argv[1], "--version")) {
		puts("dmaheapctl " DMAHEAP_VERSION);
		return CTL_OK;
	}
	if (argv[1][0] == '-') {
		ctl_fail("%s: options follow the verb; \"dmaheapctl --help\" "
			 "lists the verbs",
			 argv[1]);
		return CTL_USAGE;
	}
	ctl.verb = find_verb(argv[1]);
	if (!ctl.verb) {
		ctl_fail("no verb \"%s\"; \"dmaheapctl --help\" lists them",
			 argv[1]);
		return CTL_USAGE;
	}
	r = run(&ctl, argc - 2, argv + 2);
	dmaheap_close(ctl.dh);
	if (fflush(stdout) || ferror(stdout))
		return ctl_fail("standard output: cannot write");
	return r;
}
