/* SPDX-License-Identifier: MIT */
#include "conf/scenario_step.h"

#include <errno.h>
#include <string.h>

#include "base/parse.h"

/*
 * Every verb has a table of its keys: whether it must be there, and the
 * function that reads it.
 */

typedef int (*key_fn)(struct scenario_step *step,
		      const struct conf_entry *entry, struct conf_error *err);

struct key {
	const char *name;
	bool required;
	key_fn read;
};

int scenario_parse_time(const char *text, uint64_t *ret_ns)
{
	static const struct {
		const char *unit;
		uint64_t ns;
	} units[] = {{"ns", 1},
		     {"us", 1000},
		     {"ms", 1000000},
		     {"s", 1000000000}};
	size_t digits = strspn(text, "0123456789");
	char number[24];
	uint64_t value;
	int r;

	if (digits == 0 || digits >= sizeof(number))
		return digits ? -ERANGE : -EINVAL;
	memcpy(number, text, digits);
	number[digits] = '\0';
	r = parse_u64(number, &value);
	if (r)
		return r;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (strcmp(text + digits, units[i].unit) != 0)
			continue;
		if (__builtin_mul_overflow(value, units[i].ns, &value))
			return -ERANGE;
		*ret_ns = value;
		return 0;
	}
	return -EINVAL;
}

uint64_t scenario_size(const struct scenario_step *step, uint64_t i,
		       struct rng *rng)
{
	uint64_t low = step->size_bytes[0], high = step->size_bytes[1];
	uint64_t octaves = 0, base;

	assert(step->verb == SCENARIO_ALLOC && step->n_sizes > 0);
	if (!step->sizes_are_range)
		return step->size_bytes[i % step->n_sizes];
	while (low << octaves <= high / 2)
		octaves++;
	base = low << rng_below(rng, octaves + 1);
	return MIN(base + rng_below(rng, base), high);
}

static int one_size(const struct conf_entry *entry, const char *word,
		    uint64_t *ret, struct conf_error *err)
{
	if (parse_size(word, ret) || *ret == 0 || *ret > GIB(1024))
		return conf_entry_error(entry, err,
					"\"%s\" is not a size from 1 to 1T, as "
					"in 4K or 10M",
					word);
	return 0;
}

/* "4K..32M" */
static int read_size_range(struct scenario_step *step,
			   const struct conf_entry *entry, const char *dots,
			   struct conf_error *err)
{
	size_t len = (size_t)(dots - entry->value);
	char low[24];
	int r;

	if (len >= sizeof(low))
		return conf_entry_error(entry, err, "not a range of sizes");
	memcpy(low, entry->value, len);
	low[len] = '\0';
	r = one_size(entry, low, &step->size_bytes[0], err);
	if (!r)
		r = one_size(entry, dots + 2, &step->size_bytes[1], err);
	if (r)
		return r;
	if (step->size_bytes[0] > step->size_bytes[1])
		return conf_entry_error(entry, err,
					"the range's first size is the larger");
	step->n_sizes = 2;
	step->sizes_are_range = true;
	return 0;
}

static int read_sizes(struct scenario_step *step,
		      const struct conf_entry *entry, struct conf_error *err)
{
	const char *list = entry->value, *dots = strstr(entry->value, "..");
	char word[24];
	int r, len;

	if (dots)
		return read_size_range(step, entry, dots, err);
	while ((len = parse_word(&list, word, sizeof(word))) != 0) {
		if (len < 0 || step->n_sizes == SCENARIO_SIZES_MAX)
			return conf_entry_error(entry, err,
						"not a list of 1 to %u sizes",
						SCENARIO_SIZES_MAX);
		r = one_size(entry, word, &step->size_bytes[step->n_sizes],
			     err);
		if (r)
			return r;
		step->n_sizes++;
	}
	if (step->n_sizes == 0)
		return conf_entry_error(entry, err, "no size");
	return 0;
}

static int read_bytes(struct scenario_step *step,
		      const struct conf_entry *entry, struct conf_error *err)
{
	return conf_entry_size(entry, 0, GIB(16384), &step->bytes, err);
}

static int read_leave(struct scenario_step *step,
		      const struct conf_entry *entry, struct conf_error *err)
{
	step->has_leave = true;
	return read_bytes(step, entry, err);
}

static int read_count(struct scenario_step *step,
		      const struct conf_entry *entry, struct conf_error *err)
{
	return conf_entry_u64(entry, 1, SCENARIO_COUNT_MAX, &step->count, err);
}

static int read_keep(struct scenario_step *step, const struct conf_entry *entry,
		     struct conf_error *err)
{
	return conf_entry_u64(entry, 0, SCENARIO_COUNT_MAX, &step->keep, err);
}

static int read_time(struct scenario_step *step, const struct conf_entry *entry,
		     struct conf_error *err)
{
	if (scenario_parse_time(entry->value, &step->time_ns) ||
	    step->time_ns > SCENARIO_TIME_MAX_NS)
		return conf_entry_error(entry, err,
					"\"%s\" is not a time up to a day, as "
					"in 250us, 10ms or 1s",
					entry->value);
	return 0;
}

static int read_which(struct scenario_step *step,
		      const struct conf_entry *entry, struct conf_error *err)
{
	static const char *const names[] = {"oldest", "newest", "random"};
	unsigned int i = 0;
	int r = conf_entry_enum(entry, names, ARRAY_SIZE(names), &i, err);

	step->which = (enum scenario_which)i;
	return r;
}

static int read_pressure(struct scenario_step *step,
			 const struct conf_entry *entry, struct conf_error *err)
{
	static const char *const names[] = {"low-memory", "fill", "fragment",
					    "release"};
	unsigned int i = 0;
	int r = conf_entry_enum(entry, names, ARRAY_SIZE(names), &i, err);

	step->pressure = (enum scenario_pressure)i;
	return r;
}

static int read_max_order(struct scenario_step *step,
			  const struct conf_entry *entry,
			  struct conf_error *err)
{
	return conf_entry_u64(entry, 0, 10, &step->max_order, err);
}

static int read_n(struct scenario_step *step, const struct conf_entry *entry,
		  struct conf_error *err)
{
	return conf_entry_u64(entry, 1, 1000000, &step->n, err);
}

static int read_kind(struct scenario_step *step, const struct conf_entry *entry,
		     struct conf_error *err)
{
	(void)err;
	step->kind = entry;
	return 0;
}

static int read_to(struct scenario_step *step, const struct conf_entry *entry,
		   struct conf_error *err)
{
	(void)err;
	step->to = entry;
	return 0;
}

#define KEYS_MAX 4

static const struct verb {
	const char *name;
	struct key keys[KEYS_MAX];
} verbs[SCENARIO_VERBS] = {
	[SCENARIO_ALLOC] = {"alloc",
			    {{"size", true, read_sizes},
			     {"count", false, read_count},
			     {"every", false, read_time}}},
	[SCENARIO_FREE] = {"free",
			   {{"which", false, read_which},
			    {"count", false, read_count},
			    {"keep", false, read_keep}}},
	[SCENARIO_SLEEP] = {"sleep", {{"time", true, read_time}}},
	[SCENARIO_PRESSURE] = {"pressure",
			       {{"kind", true, read_pressure},
				{"leave", false, read_leave},
				{"max_order", false, read_max_order}}},
	[SCENARIO_OCCUPY] = {"occupy",
			     {{"kind", true, read_kind},
			      {"size", false, read_bytes},
			      {"leave", false, read_leave}}},
	[SCENARIO_VACATE] = {"vacate",
			     {{"kind", true, read_kind},
			      {"size", true, read_bytes}}},
	[SCENARIO_RELEASE_EVERY] = {"release-every",
				    {{"kind", true, read_kind},
				     {"n", true, read_n}}},
	[SCENARIO_CONVERT] = {"convert",
			      {{"from", true, read_kind},
			       {"to", true, read_to},
			       {"n", false, read_n}}},
	[SCENARIO_REPEAT] = {"repeat", {{"count", true, read_count}}},
	[SCENARIO_END] = {"end", {{NULL, false, NULL}}},
};

static int find_verb(const struct conf_section *section,
		     enum scenario_verb *ret, struct conf_error *err)
{
	for (unsigned int i = 0; i < SCENARIO_VERBS; i++) {
		if (!strcmp(verbs[i].name, section->name)) {
			*ret = (enum scenario_verb)i;
			return 0;
		}
	}
	return conf_section_error(section, err,
				  "no such step; allowed are alloc, free, "
				  "sleep, pressure, occupy, vacate, "
				  "release-every, convert, repeat, end");
}

static const struct key *find_key(const struct verb *verb, const char *name)
{
	for (size_t i = 0; i < KEYS_MAX && verb->keys[i].name; i++) {
		if (!strcmp(verb->keys[i].name, name))
			return &verb->keys[i];
	}
	return NULL;
}

static int refuse_key(const struct verb *verb, const struct conf_entry *entry,
		      struct conf_error *err)
{
	char names[96] = "";

	for (size_t i = 0; i < KEYS_MAX && verb->keys[i].name; i++) {
		strncat(names, i ? ", " : "",
			sizeof(names) - strlen(names) - 1);
		strncat(names, verb->keys[i].name,
			sizeof(names) - strlen(names) - 1);
	}
	return conf_entry_error(entry, err, "not a key of [step %s]; %s%s",
				verb->name,
				*names ? "allowed are " : "it has none", names);
}

static int check_together(const struct scenario_step *step,
			  struct conf_error *err)
{
	const struct conf_section *section = step->section;
	bool size = conf_section_find(section, "size") != NULL;
	bool leave = conf_section_find(section, "leave") != NULL;

	if (step->verb == SCENARIO_OCCUPY && size == leave)
		return conf_section_error(section, err,
					  "needs either size or leave");
	if (step->verb == SCENARIO_PRESSURE &&
	    leave != (step->pressure == SCENARIO_PRESSURE_FILL))
		return conf_section_error(section, err,
					  "fill needs leave, the others do not "
					  "have it");
	if (step->verb == SCENARIO_PRESSURE &&
	    (conf_section_find(section, "max_order") != NULL) !=
		    (step->pressure == SCENARIO_PRESSURE_FRAGMENT))
		return conf_section_error(section, err,
					  "fragment needs max_order, the "
					  "others do not have it");
	return 0;
}

int scenario_read_step(struct scenario_step *step,
		       const struct conf_section *section,
		       struct conf_error *err)
{
	const struct verb *verb;
	int r;

	*step = (struct scenario_step){.section = section};
	r = find_verb(section, &step->verb, err);
	if (r)
		return r;
	verb = &verbs[step->verb];
	step->n = 1;
	step->count = step->verb == SCENARIO_FREE ? SCENARIO_COUNT_MAX : 1;
	for (size_t i = 0; i < section->n_entries; i++) {
		const struct key *key = find_key(verb, section->entries[i].key);

		if (!key)
			return refuse_key(verb, &section->entries[i], err);
		r = key->read(step, &section->entries[i], err);
		if (r)
			return r;
	}
	for (size_t i = 0; i < KEYS_MAX && verb->keys[i].name; i++) {
		if (verb->keys[i].required &&
		    !conf_section_find(section, verb->keys[i].name))
			return conf_section_error(section, err,
						  "needs the key %s",
						  verb->keys[i].name);
	}
	return check_together(step, err);
}
