/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "lab/output.h"
#include "mm/node.h"

/*
 * jansson's set functions take over a value even when it is NULL for want of
 * memory, and fail then: one flag collects that.
 */
struct json {
	bool failed;
};

static void set(struct json *j, json_t *object, const char *key, json_t *value)
{
	if (json_object_set_new(object, key, value))
		j->failed = true;
}

static void set_u64(struct json *j, json_t *object, const char *key,
		    uint64_t value)
{
	set(j, object, key, json_integer((json_int_t)value));
}

static void append(struct json *j, json_t *array, json_t *value)
{
	if (json_array_append_new(array, value))
		j->failed = true;
}

static json_t *json_row(struct json *j, const struct lab_table *table,
			const struct lab_row *row)
{
	unsigned int orders[POLICY_ORDER_COUNT];
	unsigned int n_orders = lab_table_orders(table, orders);
	json_t *object = json_object(), *composition = json_object();
	char key[16];

	set_u64(j, object, "set", row->set);
	set_u64(j, object, "n", row->n);
	set_u64(j, object, "size", row->len_bytes);
	set(j, object, "failed", json_boolean(row->failed));
	set_u64(j, object, "start_ns", row->start_ns);
	set_u64(j, object, "latency_ns", row->latency_ns);
	set_u64(j, object, "stall_ns", row->stall_ns);
	for (unsigned int i = 0; i < n_orders; i++) {
		(void)snprintf(key, sizeof(key), "%u", orders[i]);
		set_u64(j, composition, key, row->composition[orders[i]]);
	}
	set(j, object, "composition", composition);
	return object;
}

static json_t *json_summary(struct json *j, const struct lab_table *table,
			    uint32_t number)
{
	json_t *object = json_object();
	struct lab_summary sum = {0};

	if (lab_summarise(table, number, &sum))
		j->failed = true;
	set_u64(j, object, "set", number);
	set_u64(j, object, "n", sum.n);
	set_u64(j, object, "failed", sum.n_failed);
	set_u64(j, object, "min_ns", sum.min_ns);
	set_u64(j, object, "median_ns", sum.median_ns);
	set_u64(j, object, "p90_ns", sum.p90_ns);
	set_u64(j, object, "max_ns", sum.max_ns);
	set_u64(j, object, "sum_ns", sum.sum_ns);
	set_u64(j, object, "stall_ns", sum.stall_ns);
	set_u64(j, object, "failed_stall_ns", sum.failed_stall_ns);
	return object;
}

static json_t *json_table(struct json *j, const struct lab_table *table)
{
	json_t *object = json_object(), *rows = json_array();
	json_t *sets = json_array(), *vmstat = json_object();

	set(j, object, "scenario", json_string(table->scenario));
	set(j, object, "condition", json_string(table->condition));
	set_u64(j, object, "table", table->number);
	if (*table->snapshot)
		set(j, object, "snapshot", json_string(table->snapshot));
	set(j, object, "policy", json_string(table->policy));
	set(j, object, "policy_name", json_string(table->policy_name));
	set(j, object, "profile", json_string(table->profile));
	set(j, object, "version", json_string(DMAHEAP_VERSION));
	set_u64(j, object, "seed", table->seed);
	set_u64(j, object, "node_bytes", table->node_bytes);
	set_u64(j, object, "free_before_bytes", table->free_before_bytes);
	for (size_t i = 0; i < table->n_rows; i++)
		append(j, rows, json_row(j, table, &table->rows[i]));
	for (uint32_t n = 1; n <= lab_table_n_sets(table); n++)
		append(j, sets, json_summary(j, table, n));
	for (unsigned int i = 0; i < node_vmstat_count(); i++)
		set_u64(j, vmstat, node_vmstat_name(i), table->vmstat[i]);
	if (table->buddyinfo_before)
		set(j, object, "buddyinfo_before",
		    json_string(table->buddyinfo_before));
	if (table->buddyinfo_after)
		set(j, object, "buddyinfo_after",
		    json_string(table->buddyinfo_after));
	set(j, object, "rows", rows);
	set(j, object, "sets", sets);
	set(j, object, "vmstat", vmstat);
	return object;
}

int output_json(const struct lab_results *results, struct strbuf *out)
{
	struct json j = {false};
	json_t *array = json_array();
	char *text;

	for (size_t i = 0; i < results->n_tables; i++)
		append(&j, array, json_table(&j, &results->tables[i]));
	text = j.failed ? NULL : json_dumps(array, JSON_INDENT(1));
	json_decref(array);
	if (!text)
		return err_raise(-ENOMEM);
	strbuf_append_string(out, text);
	strbuf_append_char(out, '\n');
	free(text);
	return strbuf_failed(out) ? err_raise(-ENOMEM) : 0;
}
