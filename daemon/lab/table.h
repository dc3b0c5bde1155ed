/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Table: what one run of a scenario's table gave, allocation by allocation,
 * with all that says which run it was.
 *
 * Units:     *_ns of the model's time, *_bytes; sets and numbers count from 1.
 * Ownership: lab_table_fini() and lab_results_fini() free what they hold.
 * Threads:   not locked.
 */

#include "base/base.h"
#include "base/strbuf.h"
#include "heap/system_heap.h"

#define LAB_NAME_BYTES 64u
#define LAB_HEAPS_MAX  16u /* of one trace */

struct node;

struct lab_row {
	uint32_t set;
	uint32_t n;
	bool failed;
	uint64_t len_bytes;
	uint64_t start_ns;
	uint64_t latency_ns;
	uint64_t stall_ns;
	uint32_t composition[POLICY_ORDER_COUNT];
};

struct lab_table {
	char scenario[LAB_NAME_BYTES];
	char condition[LAB_NAME_BYTES];
	uint32_t number;               /* of the scenario's table; 0: none */
	char snapshot[LAB_NAME_BYTES]; /* of the node; "": none */
	char policy[LAB_NAME_BYTES];   /* as the scenario writes it */
	char policy_name[POLICY_NAME_BYTES];
	char profile[LAB_NAME_BYTES];
	uint64_t seed;
	uint64_t node_bytes;
	uint64_t free_before_bytes; /* when the first allocation came */
	struct policy steps;        /* the policy itself */
	struct lab_row *rows;
	size_t n_rows;
	char *buddyinfo_before; /* at the first allocation */
	char *buddyinfo_after;  /* at the end */
	uint64_t *vmstat;       /* deltas, by the index of node_vmstat_name() */
	struct heap_stats heap;
};

struct lab_results {
	struct lab_table *tables;
	size_t n_tables;
};

/* Of the rows of one set (0: of all); times only of those that succeeded, but
 * for the time stalled. */
struct lab_summary {
	uint64_t n;
	uint64_t n_failed;
	uint64_t min_ns;
	uint64_t median_ns; /* the mean of the two in the middle */
	uint64_t p90_ns;
	uint64_t max_ns;
	uint64_t sum_ns;
	uint64_t stall_ns;        /* of all */
	uint64_t failed_stall_ns; /* of those that failed */
	uint64_t bytes;
	uint64_t blocks[POLICY_ORDER_COUNT];
};

/* Return: the new row, zeroed, or NULL when there is no memory. */
struct lab_row *lab_table_add(struct lab_table *table);
/* Room for the counters. Return: 0 or -ENOMEM. */
int lab_table_alloc_vmstat(struct lab_table *table) _must_check_;

/* The first allocation comes: how much is free. */
void lab_table_begin(struct lab_table *table, const struct node *node);

void lab_table_fini(struct lab_table *table);

/* Return: the new table, zeroed, or NULL when there is no memory. */
struct lab_table *lab_results_add(struct lab_results *results);
void lab_results_fini(struct lab_results *results);
static inline void lab_results_finip(struct lab_results *results)
{
	lab_results_fini(results);
}

/* Appends which of a scenario's tables it was: conditions and policies may come
 * twice. "table 2, snapshot order4-enough-800". */
void lab_table_origin(const struct lab_table *table, struct strbuf *out);

/* The policy as the scenario writes it, with a star if the table changes its
 * orders or flags. Return: @buf. */
const char *lab_table_policy(const struct lab_table *table,
			     char buf[LAB_NAME_BYTES + 1]);

/* Return: 0 or -ENOMEM. */
int lab_summarise(const struct lab_table *table, uint32_t set,
		  struct lab_summary *ret) _must_check_;

/* Return: the largest set number. */
uint32_t lab_table_n_sets(const struct lab_table *table);

/*
 * The orders that a table shows: 8, 4 and 0, and any other that its policy has
 * or a buffer got; from large to small. Return: how many.
 */
unsigned int lab_table_orders(const struct lab_table *table,
			      unsigned int orders[POLICY_ORDER_COUNT]);
