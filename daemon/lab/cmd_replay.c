/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/files.h"
#include "lab/args.h"
#include "lab/cmd.h"
#include "lab/output.h"
#include "lab/replay.h"

#define TRACE_MAX_BYTES (1u << 30)

static void render_counts(const struct replay_counts *counts,
			  struct strbuf *out)
{
	strbuf_append(out, "%" PRIu64 " allocations; ", counts->n_allocs);
	if (counts->n_compared == 0)
		strbuf_append_string(out, "nothing to compare with: the trace "
					  "has no results (an imported one "
					  "never has)\n");
	else
		strbuf_append(out,
			      "%" PRIu64 " as recorded, %" PRIu64
			      " of them in the same time\n",
			      counts->n_same, counts->n_same_time);
	if (counts->n_compared && counts->n_compared < counts->n_allocs)
		strbuf_append(out, "%" PRIu64 " have no result in the trace\n",
			      counts->n_allocs - counts->n_compared);
	if (counts->n_unknown)
		strbuf_append(out,
			      "%" PRIu64 " events of buffers that the replay "
			      "does not have\n",
			      counts->n_unknown);
}

/* Return: exit status. What little was replayed of most is no result. */
static int check_missing(const struct replay_counts *counts, const char *file)
{
	uint64_t n = counts->n_allocs + counts->n_taken;

	if (counts->n_missing == 0)
		return LAB_EXIT_OK;
	(void)lab_fail("%s: %" PRIu64 " of %" PRIu64 " allocations took "
		       "buffers that were parked before the trace began and "
		       "are not in it; record from a fresh daemon, or after "
		       "dmaheapctl shrink",
		       file, counts->n_missing, n + counts->n_missing);
	return counts->n_missing > n ? LAB_EXIT_FAILED : LAB_EXIT_OK;
}

static int render(const struct lab_results *results,
		  const struct replay_counts *counts,
		  const struct lab_args *args, struct strbuf *out)
{
	int r;

	if (args->format == LAB_FORMAT_JSON)
		return output_json(results, out);
	if (args->format == LAB_FORMAT_HTML)
		return output_html(results, out);
	if (args->format == LAB_FORMAT_TSV) {
		output_tsv(results, out);
		return 0;
	}
	r = output_text(results, out);
	render_counts(counts, out);
	return r;
}

int cmd_replay(int argc, char **argv)
{
	_cleanup_(lab_results_finip) struct lab_results results = {0};
	_cleanup_(strbuf_finip) struct strbuf out = STRBUF_INIT;
	struct conf_error err = {{0}};
	struct replay_counts counts;
	struct lab_table *table;
	struct lab_args args;
	char *text = NULL;
	int r;

	r = lab_args_parse(&args, argc, argv);
	if (r)
		return r;
	if (args.n_inputs != 1)
		return lab_usage("replay needs one trace");
	if (args.overrides.n_policies > 1)
		return lab_usage("replay takes one policy");
	r = conf_read_file(args.inputs[0], TRACE_MAX_BYTES, &text, NULL);
	if (r)
		return lab_fail("%s: cannot be read: %s", args.inputs[0],
				strerror(-r));
	table = lab_results_add(&results);
	r = table ? replay_run(table, &counts, args.inputs[0], text,
			       &args.overrides, &err)
		  : -1;
	free(text);
	if (r > 0)
		return lab_fail("%s", err.text);
	if (!r)
		r = render(&results, &counts, &args, &out);
	if (r)
		return lab_fail("out of memory");
	r = lab_write(args.html_file, &out);
	return r ? r : check_missing(&counts, args.inputs[0]);
}
