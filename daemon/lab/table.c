/* SPDX-License-Identifier: MIT */
#include "lab/table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "mm/node.h"

/* Room for one more in an array that doubles. Return: NULL: no memory. */
static void *grow(void *array, size_t n, size_t size)
{
	if (n != 0 && !is_power_of_2(n))
		return array;
	return reallocarray(array, n ? 2 * n : 1, size);
}

struct lab_row *lab_table_add(struct lab_table *table)
{
	struct lab_row *rows = grow(table->rows, table->n_rows, sizeof(*rows));

	if (!rows)
		return NULL;
	table->rows = rows;
	rows[table->n_rows] = (struct lab_row){0};
	return &rows[table->n_rows++];
}

int lab_table_alloc_vmstat(struct lab_table *table)
{
	table->vmstat = calloc(node_vmstat_count(), sizeof(*table->vmstat));
	return table->vmstat ? 0 : err_raise(-ENOMEM);
}

void lab_table_begin(struct lab_table *table, const struct node *node)
{
	struct node_page_counts counts;

	node_page_counts(node, &counts);
	table->free_before_bytes =
		counts.free_pages * node_params(node)->page_size_bytes;
}

void lab_table_fini(struct lab_table *table)
{
	free(table->rows);
	free(table->vmstat);
	free(table->buddyinfo_before);
	free(table->buddyinfo_after);
	*table = (struct lab_table){0};
}

struct lab_table *lab_results_add(struct lab_results *results)
{
	struct lab_table *tables =
		grow(results->tables, results->n_tables, sizeof(*tables));

	if (!tables)
		return NULL;
	results->tables = tables;
	tables[results->n_tables] = (struct lab_table){0};
	return &tables[results->n_tables++];
}

void lab_results_fini(struct lab_results *results)
{
	for (size_t i = 0; i < results->n_tables; i++)
		lab_table_fini(&results->tables[i]);
	free(results->tables);
	*results = (struct lab_results){0};
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void summarise_row(struct lab_summary *sum, const struct lab_row *row,
			  uint64_t *latencies)
{
	sum->n++;
	sum->stall_ns += row->stall_ns;
	if (row->failed) {
		sum->n_failed++;
		sum->failed_stall_ns += row->stall_ns;
		return;
	}
	latencies[sum->n - sum->n_failed - 1] = row->latency_ns;
	sum->sum_ns += row->latency_ns;
	sum->bytes += row->len_bytes;
	for (unsigned int order = 0; order < POLICY_ORDER_COUNT; order++)
		sum->blocks[order] += row->composition[order];
}

int lab_summarise(const struct lab_table *table, uint32_t set,
		  struct lab_summary *ret)
{
	struct lab_summary sum = {0};
	uint64_t *latencies;
	uint64_t n;

	latencies = calloc(table->n_rows + 1, sizeof(*latencies));
	if (!latencies)
		return err_raise(-ENOMEM);
	for (size_t i = 0; i < table->n_rows; i++) {
		if (set == 0 || table->rows[i].set == set)
			summarise_row(&sum, &table->rows[i], latencies);
	}
	n = sum.n - sum.n_failed;
	qsort(latencies, n, sizeof(*latencies), compare_u64);
	if (n) {
		sum.min_ns = latencies[0];
		sum.median_ns = (latencies[(n - 1) / 2] + latencies[n / 2]) / 2;
		sum.p90_ns = latencies[(n * 9 - 1) / 10];
		sum.max_ns = latencies[n - 1];
	}
	free(latencies);
	*ret = sum;
	return 0;
}

void lab_table_origin(const struct lab_table *table, struct strbuf *out)
{
	strbuf_append(out, "table %" PRIu32, table->number);
	if (*table->snapshot)
		strbuf_append(out, ", snapshot %s", table->snapshot);
}

const char *lab_table_policy(const struct lab_table *table,
			     char buf[LAB_NAME_BYTES + 1])
{
	bool is_changed = strchr(table->policy_name, '*') != NULL;

	(void)snprintf(buf, LAB_NAME_BYTES + 1, "%s%s", table->policy,
		       is_changed ? "*" : "");
	return buf;
}

uint32_t lab_table_n_sets(const struct lab_table *table)
{
	uint32_t n = 0;

	for (size_t i = 0; i < table->n_rows; i++)
		n = MAX(n, table->rows[i].set);
	return n;
}

unsigned int lab_table_orders(const struct lab_table *table,
			      unsigned int orders[POLICY_ORDER_COUNT])
{
	bool shown[POLICY_ORDER_COUNT] = {[8] = true, [4] = true, [0] = true};
	unsigned int n = 0;

	for (unsigned int order = 0; order < POLICY_ORDER_COUNT; order++) {
		if (policy_has_order(&table->steps, order))
			shown[order] = true;
		for (size_t i = 0; i < table->n_rows; i++) {
			if (table->rows[i].composition[order])
				shown[order] = true;
		}
	}
	for (unsigned int order = POLICY_ORDER_COUNT; order-- > 0;) {
		if (shown[order])
			orders[n++] = order;
	}
	return n;
}
