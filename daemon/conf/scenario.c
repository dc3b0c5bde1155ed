/* SPDX-License-Identifier: MIT */
#include "conf/scenario.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "conf/scenario_step.h"

/*
 * Steps of all tables lie in one array: first the common ones, then each
 * table's own. The text decides how often each runs; the number of steps that
 * a table comes to is bounded here, so that a short text cannot keep a
 * reader busy for ever.
 */

struct scenario *scenario_free(struct scenario *scenario)
{
	if (!scenario)
		return NULL;
	scenario->ini = conf_ini_free(scenario->ini);
	free(scenario->steps);
	free(scenario->tables);
	free(scenario);
	return NULL;
}

static int read_head(struct scenario *s, const struct conf_section *section,
		     struct conf_error *err)
{
	int r = 0;

	for (size_t i = 0; i < section->n_entries && !r; i++) {
		const struct conf_entry *entry = &section->entries[i];

		if (!strcmp(entry->key, "title"))
			s->title = entry->value;
		else if (!strcmp(entry->key, "seed"))
			r = conf_entry_u64(entry, 0, UINT64_MAX, &s->seed, err);
		else
			r = conf_entry_error(entry, err,
					     "no such key; allowed are title, "
					     "seed");
	}
	return r;
}

static int begin_table(struct scenario *s, const struct conf_section *section,
		       struct conf_error *err)
{
	struct scenario_table *table;

	if (!*section->name)
		return conf_section_error(section, err,
					  "a table needs a condition's name");
	if (s->n_tables == SCENARIO_TABLES_MAX)
		return conf_section_error(section, err, "more than %u tables",
					  SCENARIO_TABLES_MAX);
	table = &s->tables[s->n_tables++];
	*table = (struct scenario_table){
		.section = section,
		.condition = section->name,
		.policy = conf_section_find(section, "policy"),
		.first_step = s->n_steps,
	};
	return 0;
}

static int add_step(struct scenario *s, const struct conf_section *section,
		    struct conf_error *err)
{
	int r;

	if (s->n_steps == SCENARIO_STEPS_MAX)
		return conf_section_error(section, err, "more than %u steps",
					  SCENARIO_STEPS_MAX);
	r = scenario_read_step(&s->steps[s->n_steps], section, err);
	if (r)
		return r;
	s->n_steps++;
	if (s->n_tables)
		s->tables[s->n_tables - 1].n_steps++;
	else
		s->n_common_steps++;
	return 0;
}

static int add_section(struct scenario *s, const struct conf_section *section,
		       struct conf_error *err)
{
	if (!strcmp(section->kind, "step"))
		return add_step(s, section, err);
	if (!strcmp(section->kind, "table"))
		return begin_table(s, section, err);
	if (!strcmp(section->kind, "policy"))
		return 0;
	if (*section->name)
		return conf_section_error(section, err,
					  "no such section; allowed are "
					  "[scenario], [node], [policy "
					  "NAME], [table CONDITION], [step "
					  "VERB]");
	if (section != conf_ini_find(s->ini, section->kind, ""))
		return conf_section_error(section, err,
					  "section is there twice");
	if (!strcmp(section->kind, "node")) {
		s->node = section;
		return 0;
	}
	if (!strcmp(section->kind, "scenario"))
		return read_head(s, section, err);
	return conf_section_error(section, err,
				  "no such section; allowed are [scenario], "
				  "[node], [policy NAME], [table CONDITION], "
				  "[step VERB]");
}

/* Pairs repeat with end in one list of steps, and bounds what it comes to. */
static int check_nesting(struct scenario_step *steps, size_t n, size_t base,
			 struct conf_error *err)
{
	size_t open[SCENARIO_DEPTH_MAX];
	uint64_t times[SCENARIO_DEPTH_MAX + 1] = {1};
	unsigned int depth = 0;
	uint64_t events = 0;

	for (size_t i = 0; i < n; i++) {
		struct scenario_step *step = &steps[i];

		events += times[depth] *
			  (step->verb == SCENARIO_ALLOC ? step->count : 1);
		if (events > SCENARIO_EVENTS_MAX)
			return conf_section_error(
				step->section, err,
				"the steps up to here come to more than %llu",
				(unsigned long long)SCENARIO_EVENTS_MAX);
		if (step->verb == SCENARIO_REPEAT) {
			if (depth == SCENARIO_DEPTH_MAX)
				return conf_section_error(step->section, err,
							  "more than %u "
							  "repeats within each "
							  "other",
							  SCENARIO_DEPTH_MAX);
			times[depth + 1] = times[depth] * step->count;
			open[depth++] = i;
		} else if (step->verb == SCENARIO_END) {
			if (depth == 0)
				return conf_section_error(step->section, err,
							  "no repeat to end");
			step->match = base + open[--depth];
			steps[open[depth]].match = base + i;
		}
	}
	if (depth)
		return conf_section_error(steps[open[depth - 1]].section, err,
					  "no [step end] for it");
	return 0;
}

/* Numbers the alloc steps of each list of steps. */
static void number_sets(struct scenario_step *steps, size_t n, uint32_t *set)
{
	for (size_t i = 0; i < n; i++) {
		if (steps[i].verb == SCENARIO_ALLOC)
			steps[i].set = ++*set;
	}
}

static int check_steps(struct scenario *s, struct conf_error *err)
{
	uint32_t common_sets = 0;
	int r;

	r = check_nesting(s->steps, s->n_common_steps, 0, err);
	number_sets(s->steps, s->n_common_steps, &common_sets);
	for (size_t i = 0; i < s->n_tables && !r; i++) {
		struct scenario_table *table = &s->tables[i];
		uint32_t set = common_sets;

		r = check_nesting(s->steps + table->first_step, table->n_steps,
				  table->first_step, err);
		number_sets(s->steps + table->first_step, table->n_steps, &set);
		if (!r && set == 0)
			r = conf_section_error(table->section, err,
					       "no [step alloc] in it");
	}
	return r;
}

static int check_whole(struct scenario *s, const char *file,
		       struct conf_error *err)
{
	if (s->n_tables == 0) {
		*err = (struct conf_error){};
		strncat(err->text, file, sizeof(err->text) - 40);
		strcat(err->text, ": no [table CONDITION]");
		return CONF_E_INVALID;
	}
	return check_steps(s, err);
}

int scenario_parse(struct scenario **ret, const char *file, const char *text,
		   size_t len, struct conf_error *err)
{
	_cleanup_(scenario_freep) struct scenario *s = NULL;
	int r;

	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->title = "";
	s->seed = 1;
	r = conf_ini_parse(&s->ini, file, text, len, CONF_REPEAT_SECTIONS, err);
	if (r)
		return r;
	s->steps = calloc(SCENARIO_STEPS_MAX, sizeof(*s->steps));
	s->tables = calloc(SCENARIO_TABLES_MAX, sizeof(*s->tables));
	if (!s->steps || !s->tables)
		return -ENOMEM;
	for (size_t i = 0; i < s->ini->n_sections && !r; i++)
		r = add_section(s, &s->ini->sections[i], err);
	if (!r)
		r = check_whole(s, file, err);
	if (r)
		return r;
	*ret = TAKE_PTR(s);
	return 0;
}
