/* SPDX-License-Identifier: MIT */
#include <inttypes.h>

#include "lab/output.h"

/* Orders besides 8, 4 and 0 that any table shows, from large to small. */
static unsigned int other_orders(const struct lab_results *results,
				 unsigned int others[POLICY_ORDER_COUNT])
{
	bool any[POLICY_ORDER_COUNT] = {false};
	unsigned int orders[POLICY_ORDER_COUNT], n = 0;

	for (size_t i = 0; i < results->n_tables; i++) {
		unsigned int n_orders =
			lab_table_orders(&results->tables[i], orders);

		for (unsigned int o = 0; o < n_orders; o++)
			any[orders[o]] = true;
	}
	for (unsigned int order = POLICY_ORDER_COUNT; order-- > 0;) {
		if (any[order] && order != 8 && order != 4 && order != 0)
			others[n++] = order;
	}
	return n;
}

static void tsv_row(const struct lab_table *table, const struct lab_row *row,
		    const unsigned int *others, unsigned int n_others,
		    struct strbuf *out)
{
	if (row->failed)
		strbuf_append(out,
			      "# failed: %s %s set %" PRIu32 " n %" PRIu32
			      " size %" PRIu64 "\n",
			      table->condition, table->policy, row->set, row->n,
			      row->len_bytes);
	strbuf_append(out,
		      "%s\t%s\t%" PRIu32 "\t%" PRIu32 "\t%" PRIu64 "\t%" PRIu32
		      "\t%" PRIu32 "\t%" PRIu32,
		      table->condition, table->policy, row->set, row->n,
		      ns_to_us(row->latency_ns), row->composition[8],
		      row->composition[4], row->composition[0]);
	for (unsigned int i = 0; i < n_others; i++)
		strbuf_append(out, "\t%" PRIu32, row->composition[others[i]]);
	strbuf_append_char(out, '\n');
}

void output_tsv(const struct lab_results *results, struct strbuf *out)
{
	unsigned int others[POLICY_ORDER_COUNT];
	unsigned int n_others = other_orders(results, others);

	for (size_t i = 0; i < results->n_tables; i++) {
		const struct lab_table *table = &results->tables[i];

		strbuf_append(out,
			      "# %s: %s, policy %s = %s, seed %" PRIu64
			      ", profile %s, dmaheap %s",
			      table->scenario, table->condition, table->policy,
			      table->policy_name, table->seed, table->profile,
			      DMAHEAP_VERSION);
		if (table->number) {
			strbuf_append_string(out, "; ");
			lab_table_origin(table, out);
		}
		strbuf_append_char(out, '\n');
	}
	strbuf_append(out, "# condition\tpolicy\tset\tn\tlatency_us\torder8"
			   "\torder4\torder0");
	for (unsigned int i = 0; i < n_others; i++)
		strbuf_append(out, "\torder%u", others[i]);
	strbuf_append_char(out, '\n');
	for (size_t i = 0; i < results->n_tables; i++) {
		for (size_t n = 0; n < results->tables[i].n_rows; n++)
			tsv_row(&results->tables[i],
				&results->tables[i].rows[n], others, n_others,
				out);
	}
}
