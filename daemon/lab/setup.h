/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Setup: the node and the policy that a scenario's table asks for, with what
 * the command line says instead.
 *
 * Units:     as mm/node.h and heap/policy.h.
 * Ownership: results are the caller's; texts are borrowed.
 * Threads:   main thread.
 */

#include "base/base.h"
#include "conf/scenario.h"
#include "heap/policy.h"
#include "lab/policies.h"
#include "lab/table.h"
#include "mm/node.h"

/* What the command line says instead of the scenario. */
struct lab_overrides {
	const char *node_dir; /* a snapshot, NULL: as the scenario says */
	const char *profile;  /* of costs, NULL: as the scenario says */
	bool has_seed;
	uint64_t seed;
	const char *const *policies; /* names, instead of each table's */
	size_t n_policies;
	bool every_policy; /* all shipped and all of the scenario instead */
	const struct lab_policies *own; /* of --policy's files, or NULL */
};

/**
 * lab_node_new() - build the node of a table
 * @file:        the scenario's path: other paths are relative to it
 * @ret_profile: receives the name of the cost profile
 *
 * Keys of [node] and of the table; the table's win.
 * Return: 0, CONF_E_INVALID with @err, -ENOMEM.
 */
int lab_node_new(struct node **ret, const struct scenario *scenario,
		 const struct scenario_table *table, const char *file,
		 const struct lab_overrides *overrides,
		 char ret_profile[LAB_NAME_BYTES], struct conf_error *err)
	_must_check_;

/**
 * lab_node_from_keys() - the same from one list of keys, as in a trace
 * @section: its entries are the node's keys
 */
int lab_node_from_section(struct node **ret, const struct conf_section *section,
			  const struct lab_overrides *overrides,
			  char ret_profile[LAB_NAME_BYTES],
			  struct conf_error *err) _must_check_;

/* Return: true if @key is one of [node]. */
bool lab_is_node_key(const char *key);

/**
 * lab_policy() - the policy called @name, with the keys of @table on top
 *
 * One of @overrides, of the scenario, or a shipped one, in this order.
 * Return: 0, or CONF_E_INVALID with @err.
 */
int lab_policy(struct policy *ret, const char *name,
	       const struct scenario *scenario,
	       const struct scenario_table *table,
	       const struct lab_overrides *overrides, struct conf_error *err)
	_must_check_;

/**
 * lab_profile() - read a cost profile
 * @name: a shipped name or a path relative to the directory of @beside
 *
 * Return: 0, CONF_E_INVALID with @err ("file: ..."), -ENOMEM.
 */
int lab_profile(struct cost_profile *ret, const char *name, const char *beside,
		struct conf_error *err) _must_check_;
