/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/err.h"
#include "lab/output.h"
#include "mm/node.h"

/* Sets with more rows are only summed up; --tsv has every row. */
#define ROWS_SHOWN_MAX 64u

static void text_head(const struct lab_table *table, struct strbuf *out)
{
	strbuf_append(out, "== %s: %s, policy %s", table->scenario,
		      table->condition, table->policy);
	if (__builtin_strcmp(table->policy, table->policy_name) != 0)
		strbuf_append(out, " (%s)", table->policy_name);
	strbuf_append(out, ", seed %" PRIu64 ", profile %s, dmaheap %s\n   ",
		      table->seed, table->profile, DMAHEAP_VERSION);
	if (table->number) {
		lab_table_origin(table, out);
		strbuf_append_string(out, ": ");
	}
	strbuf_append(out,
		      "node %" PRIu64 " MiB, %" PRIu64
		      " MiB free at the first allocation\n",
		      table->node_bytes >> 20, table->free_before_bytes >> 20);
}

static void text_rows(const struct lab_table *table, uint32_t set,
		      const unsigned int *orders, unsigned int n_orders,
		      struct strbuf *out)
{
	strbuf_append(out, "   n       usec");
	for (unsigned int i = 0; i < n_orders; i++)
		strbuf_append(out, " %6u", orders[i]);
	strbuf_append_char(out, '\n');
	for (size_t i = 0; i < table->n_rows; i++) {
		const struct lab_row *row = &table->rows[i];

		if (row->set != set)
			continue;
		strbuf_append(out, "%4" PRIu32 " %10" PRIu64, row->n,
			      ns_to_us(row->latency_ns));
		for (unsigned int o = 0; o < n_orders; o++)
			strbuf_append(out, " %6" PRIu32,
				      row->composition[orders[o]]);
		strbuf_append_string(out, row->failed ? "  failed\n" : "\n");
	}
}

static void text_summary(const struct lab_summary *sum,
			 const unsigned int *orders, unsigned int n_orders,
			 struct strbuf *out)
{
	strbuf_append(out, " sum %10" PRIu64, ns_to_us(sum->sum_ns));
	for (unsigned int i = 0; i < n_orders; i++)
		strbuf_append(out, " %6" PRIu64, sum->blocks[orders[i]]);
	strbuf_append(out,
		      "\n     n %" PRIu64 ", failed %" PRIu64
		      "; usec: min %" PRIu64 ", median %" PRIu64
		      ", p90 %" PRIu64 ", max %" PRIu64 "; stalled %" PRIu64,
		      sum->n, sum->n_failed, ns_to_us(sum->min_ns),
		      ns_to_us(sum->median_ns), ns_to_us(sum->p90_ns),
		      ns_to_us(sum->max_ns), ns_to_us(sum->stall_ns));
	if (sum->n_failed)
		strbuf_append(out, ", %" PRIu64 " of it in those that failed",
			      ns_to_us(sum->failed_stall_ns));
	strbuf_append_char(out, '\n');
}

static int text_set(const struct lab_table *table, uint32_t set,
		    struct strbuf *out)
{
	unsigned int orders[POLICY_ORDER_COUNT];
	unsigned int n_orders = lab_table_orders(table, orders);
	struct lab_summary sum;
	int r = lab_summarise(table, set, &sum);

	if (r)
		return err_trace(r);
	strbuf_append(out, "-- set %" PRIu32 "\n", set);
	if (sum.n <= ROWS_SHOWN_MAX)
		text_rows(table, set, orders, n_orders, out);
	else
		strbuf_append(out,
			      "     %" PRIu64 " rows: --tsv prints each\n"
			      "            usec",
			      sum.n);
	for (unsigned int i = 0; sum.n > ROWS_SHOWN_MAX && i < n_orders; i++)
		strbuf_append(out, " %6u%s", orders[i],
			      i + 1 == n_orders ? "\n" : "");
	text_summary(&sum, orders, n_orders, out);
	return 0;
}

/* Only what moved: the kernel has many counters. */
static void text_vmstat(const struct lab_table *table, struct strbuf *out)
{
	strbuf_append(out, "-- vmstat");
	for (unsigned int i = 0; i < node_vmstat_count(); i++) {
		if (table->vmstat[i])
			strbuf_append(out, " %s %" PRId64, node_vmstat_name(i),
				      (int64_t)table->vmstat[i]);
	}
	strbuf_append_char(out, '\n');
}

static void text_buddyinfo(const char *when, const char *text,
			   struct strbuf *out)
{
	if (text)
		strbuf_append(out, "-- buddyinfo %s\n%s", when, text);
}

int output_text(const struct lab_results *results, struct strbuf *out)
{
	for (size_t i = 0; i < results->n_tables; i++) {
		const struct lab_table *table = &results->tables[i];

		text_head(table, out);
		for (uint32_t set = 1; set <= lab_table_n_sets(table); set++) {
			int r = text_set(table, set, out);

			if (r)
				return err_trace(r);
		}
		text_vmstat(table, out);
		text_buddyinfo("before", table->buddyinfo_before, out);
		text_buddyinfo("after", table->buddyinfo_after, out);
		strbuf_append_char(out, '\n');
	}
	return strbuf_failed(out) ? err_raise(-ENOMEM) : 0;
}
