/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "lab/args.h"
#include "lab/cmd.h"
#include "lab/data.h"
#include "lab/output.h"

static void add_name(void *ctx, const char *name)
{
	strbuf_append(ctx, " %s", name);
}

static int usage_with_names(void)
{
	_cleanup_(strbuf_finip) struct strbuf names = STRBUF_INIT;

	if (lab_list("scenarios", ".conf", add_name, &names) == 0)
		strbuf_append(&names, " none found");
	return lab_usage("run needs a scenario, in front of --policy; shipped "
			 "are:%s",
			 strbuf_string(&names));
}

static int render(const struct lab_results *results,
		  const struct lab_args *args, struct strbuf *out)
{
	switch (args->format) {
	case LAB_FORMAT_JSON:
		return output_json(results, out);
	case LAB_FORMAT_HTML:
		return output_html(results, out);
	case LAB_FORMAT_TSV:
		output_tsv(results, out);
		return 0;
	case LAB_FORMAT_TEXT:
		break;
	}
	return output_text(results, out);
}

int cmd_run(int argc, char **argv)
{
	_cleanup_(lab_results_finip) struct lab_results results = {0};
	_cleanup_(strbuf_finip) struct strbuf out = STRBUF_INIT;
	struct lab_args args;
	int r;

	r = lab_args_parse(&args, argc, argv);
	if (r)
		return r;
	if (args.n_inputs == 0)
		return usage_with_names();
	r = lab_run_inputs(&results, &args);
	if (r)
		return r;
	r = render(&results, &args, &out);
	if (r)
		return lab_fail("%s", strerror(-r));
	return lab_write(args.html_file, &out);
}
