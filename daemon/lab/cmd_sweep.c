/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "heap/policy.h"
#include "lab/args.h"
#include "lab/cmd.h"
#include "lab/output.h"

/*
 * A grid: each of a scenario's tables (memory states) with each policy, one
 * line per set. Conditions may come twice, so each line has its table's number.
 */

/* Bytes in blocks of at least @order, in hundredths of all. */
static unsigned int share_from(const struct lab_summary *sum,
			       unsigned int order)
{
	uint64_t all = 0, large = 0;

	for (unsigned int o = 0; o < POLICY_ORDER_COUNT; o++) {
		all += sum->blocks[o] << o;
		if (o >= order)
			large += sum->blocks[o] << o;
	}
	return all ? (unsigned int)(large * 100 / all) : 0;
}

#define COLUMNS 13u

static const struct {
	const char *name;
	int width; /* < 0: from the left */
} columns[COLUMNS] = {
	{"scenario", -16}, {"condition", -20}, {"table", 5},
	{"policy", -10},   {"set", 4},         {"n", 7},
	{"failed", 7},     {"median_us", 10},  {"p90_us", 10},
	{"max_us", 10},    {"stalled_us", 12}, {"in_8+_%", 8},
	{"in_4+_%", 8},
};

static void sweep_cell(unsigned int i, const char *text, bool tsv,
		       struct strbuf *out)
{
	strbuf_append(out, "%s%*s",
		      i == 0 ? ""
		      : tsv  ? "\t"
			     : " ",
		      tsv ? 0 : columns[i].width, text);
	if (i + 1 == COLUMNS)
		strbuf_append_char(out, '\n');
}

static void sweep_number(unsigned int i, uint64_t value, bool tsv,
			 struct strbuf *out)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRIu64, value);
	sweep_cell(i, text, tsv, out);
}

static void sweep_line(const struct lab_table *table, uint32_t set,
		       const struct lab_summary *sum, bool tsv,
		       struct strbuf *out)
{
	const uint64_t numbers[] = {
		set,
		sum->n,
		sum->n_failed,
		ns_to_us(sum->median_ns),
		ns_to_us(sum->p90_ns),
		ns_to_us(sum->max_ns),
		ns_to_us(sum->stall_ns),
		share_from(sum, 8),
		share_from(sum, 4),
	};
	char policy[LAB_NAME_BYTES + 1];

	sweep_cell(0, table->scenario, tsv, out);
	sweep_cell(1, table->condition, tsv, out);
	sweep_number(2, table->number, tsv, out);
	sweep_cell(3, lab_table_policy(table, policy), tsv, out);
	for (unsigned int i = 0; i < ARRAY_SIZE(numbers); i++)
		sweep_number(4 + i, numbers[i], tsv, out);
}

static void sweep_head(const struct lab_results *results, bool tsv,
		       struct strbuf *out)
{
	const struct lab_table *first = &results->tables[0];

	strbuf_append(out, "# seed %" PRIu64 ", profile %s, dmaheap %s\n",
		      first->seed, first->profile, DMAHEAP_VERSION);
	for (size_t i = 0; i < results->n_tables; i++) {
		const struct lab_table *table = &results->tables[i];

		if (i && table->number == table[-1].number &&
		    !strcmp(table->scenario, table[-1].scenario))
			continue; /* with another policy */
		strbuf_append(out, "# %s: %s is ", table->scenario,
			      table->condition);
		lab_table_origin(table, out);
		strbuf_append_char(out, '\n');
	}
	for (unsigned int i = 0; i < COLUMNS; i++)
		sweep_cell(i, columns[i].name, tsv, out);
}

static int sweep_render(const struct lab_results *results, bool tsv,
			struct strbuf *out)
{
	sweep_head(results, tsv, out);
	for (size_t i = 0; i < results->n_tables; i++) {
		const struct lab_table *table = &results->tables[i];

		for (uint32_t set = 1; set <= lab_table_n_sets(table); set++) {
			struct lab_summary sum;
			int r = lab_summarise(table, set, &sum);

			if (r)
				return r;
			sweep_line(table, set, &sum, tsv, out);
		}
	}
	return strbuf_failed(out) ? -ENOMEM : 0;
}

int cmd_sweep(int argc, char **argv)
{
	_cleanup_(lab_results_finip) struct lab_results results = {0};
	_cleanup_(strbuf_finip) struct strbuf out = STRBUF_INIT;
	struct lab_args args;
	int r;

	r = lab_args_parse(&args, argc, argv);
	if (r)
		return r;
	if (args.n_inputs == 0)
		return lab_usage(
			"sweep needs a scenario, in front of --policy");
	args.overrides.every_policy = args.overrides.n_policies == 0;
	r = lab_run_inputs(&results, &args);
	if (r)
		return r;
	if (args.format == LAB_FORMAT_JSON)
		r = output_json(&results, &out);
	else if (args.format == LAB_FORMAT_HTML)
		r = output_html(&results, &out);
	else
		r = sweep_render(&results, args.format == LAB_FORMAT_TSV, &out);
	if (r)
		return lab_fail("%s", strerror(-r));
	return lab_write(args.html_file, &out);
}
