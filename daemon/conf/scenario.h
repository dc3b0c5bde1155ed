/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Scenario: what is done to a node, step by step, as an INI text. dmaheap-lab
 * runs it in virtual time, `dmaheapctl pressure play` live. docs/lab.md
 * describes the sections and keys.
 *
 *   [scenario]          title, seed
 *   [node]              the node's keys, for who builds it
 *   [table CONDITION]   a run from a fresh node: policy, policy keys, node keys
 *   [policy NAME]       a policy of one's own, for who runs it
 *   [step VERB]         belongs to the table above it; before the first table,
 *                       to the beginning of every table
 *
 * Units:     *_bytes, *_ns.
 * Ownership: the struct owns all texts and arrays in it.
 * Threads:   immutable once parsed.
 *
 * Syntax, numbers and nesting are checked here; names of policies and occupants
 * and the node's keys by who uses them, with conf_entry_error().
 */

#include "base/base.h"
#include "base/rng.h"
#include "conf/ini.h"

#define SCENARIO_SIZES_MAX   8u
#define SCENARIO_DEPTH_MAX   4u
#define SCENARIO_STEPS_MAX   1000u
#define SCENARIO_TABLES_MAX  64u
#define SCENARIO_COUNT_MAX   1000000u           /* of one step */
#define SCENARIO_EVENTS_MAX  UINT64_C(10000000) /* of one table, unrolled */
#define SCENARIO_TIME_MAX_NS (UINT64_C(86400) * NSEC_PER_SEC)

enum scenario_verb {
	SCENARIO_ALLOC,
	SCENARIO_FREE,
	SCENARIO_SLEEP,
	SCENARIO_PRESSURE,
	SCENARIO_OCCUPY,
	SCENARIO_VACATE,
	SCENARIO_RELEASE_EVERY,
	SCENARIO_CONVERT,
	SCENARIO_REPEAT,
	SCENARIO_END,
	SCENARIO_VERBS,
};

enum scenario_which {
	SCENARIO_OLDEST,
	SCENARIO_NEWEST,
	SCENARIO_RANDOM,
};

enum scenario_pressure {
	SCENARIO_PRESSURE_LOW_MEMORY,
	SCENARIO_PRESSURE_FILL,
	SCENARIO_PRESSURE_FRAGMENT,
	SCENARIO_PRESSURE_RELEASE,
};

struct scenario_step {
	enum scenario_verb verb;
	const struct conf_section *section;
	/* alloc: the sizes in turn, or uniform over the powers from [0] to [1]
	 */
	uint64_t size_bytes[SCENARIO_SIZES_MAX];
	unsigned int n_sizes;
	bool sizes_are_range;
	uint32_t set;     /* alloc: 1 for the table's first one, and so on */
	uint64_t count;   /* alloc, free, repeat: how often */
	uint64_t keep;    /* free: so many buffers stay */
	uint64_t time_ns; /* sleep; alloc: from one start to the next */
	enum scenario_which which; /* free */
	enum scenario_pressure pressure;
	uint64_t bytes;     /* occupy, vacate, pressure fill; see has_leave */
	bool has_leave;     /* occupy: bytes are what stays free */
	uint64_t max_order; /* pressure fragment */
	uint64_t n;         /* release-every, convert: one page in n */
	const struct conf_entry *kind; /* occupant; also "from" of convert */
	const struct conf_entry *to;   /* convert */
	size_t match;                  /* repeat and end: index of each other */
};

struct scenario_table {
	const struct conf_section *section;
	const char *condition;
	const struct conf_entry *policy; /* NULL: the default */
	size_t first_step;               /* of scenario::steps */
	size_t n_steps;
};

struct scenario {
	struct conf_ini *ini;
	const char *title;
	uint64_t seed;
	const struct conf_section *node; /* NULL: defaults */
	struct scenario_step *steps;     /* the common ones first */
	size_t n_common_steps;
	size_t n_steps;
	struct scenario_table *tables; /* at least one */
	size_t n_tables;
};

/**
 * scenario_parse() - read a scenario from text
 * @file: its name, for messages
 *
 * Return: 0, CONF_E_INVALID with @err ("file:line: ..."), or -ENOMEM.
 */
int scenario_parse(struct scenario **ret, const char *file, const char *text,
		   size_t len, struct conf_error *err) _must_check_;

/* Return: NULL, always. @scenario may be NULL. */
struct scenario *scenario_free(struct scenario *scenario);
DEFINE_CLEANUP(struct scenario *, scenario_free);

/**
 * scenario_size() - the size of an alloc step's allocation number @i from 0
 *
 * Of a list, the sizes in turn; of a range, one power of two times the smallest
 * by lot, then uniform up to the next one, never above the largest.
 */
uint64_t scenario_size(const struct scenario_step *step, uint64_t i,
		       struct rng *rng);

/* "250us", "1s", "10ms", "5ns". Return: 0, -EINVAL or -ERANGE. */
int scenario_parse_time(const char *text, uint64_t *ret_ns) _must_check_;
