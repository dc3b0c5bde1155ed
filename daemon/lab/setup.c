/* SPDX-License-Identifier: MIT */
#include "lab/setup.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "conf/files.h"
#include "lab/data.h"

/* What the keys of [node] come to. */
struct node_setup {
	struct node_params params;
	unsigned int numa_node;
	const struct conf_entry *snapshot;
	const struct conf_entry *profile;
};

typedef int (*node_key_fn)(struct node_setup *setup,
			   const struct conf_entry *entry,
			   struct conf_error *err);

static int _printf_(2, 3)
	invalid(struct conf_error *err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(err->text, sizeof(err->text), format, args);
	va_end(args);
	return CONF_E_INVALID;
}

static int set_size(struct node_setup *s, const struct conf_entry *entry,
		    struct conf_error *err)
{
	return conf_entry_size(entry, NODE_MIN_BYTES, GIB(1024),
			       &s->params.size_bytes, err);
}

static int set_page_size(struct node_setup *s, const struct conf_entry *entry,
			 struct conf_error *err)
{
	uint64_t bytes = 0;
	int r = conf_entry_size(entry, KIB(4), KIB(64), &bytes, err);

	s->params.page_size_bytes = (uint32_t)bytes;
	return r;
}

static int set_snapshot(struct node_setup *s, const struct conf_entry *entry,
			struct conf_error *err)
{
	(void)err;
	s->snapshot = entry;
	return 0;
}

static int set_profile(struct node_setup *s, const struct conf_entry *entry,
		       struct conf_error *err)
{
	(void)err;
	s->profile = entry;
	return 0;
}

static int set_occupants(struct node_setup *s, const struct conf_entry *entry,
			 struct conf_error *err)
{
	if (strlen(entry->value) >= sizeof(s->params.occupants))
		return conf_entry_error(entry, err, "longer than %u bytes",
					NODE_OCCUPANTS_MAX_BYTES - 1);
	(void)snprintf(s->params.occupants, sizeof(s->params.occupants), "%s",
		       entry->value);
	return 0;
}

static int set_swap(struct node_setup *s, const struct conf_entry *entry,
		    struct conf_error *err)
{
	static const char *const names[] = {
		[NODE_SWAP_NONE] = "none",
		[NODE_SWAP_ZRAM] = "zram",
		[NODE_SWAP_DISK] = "disk",
	};
	unsigned int i = 0;
	int r = conf_entry_enum(entry, names, ARRAY_SIZE(names), &i, err);

	s->params.swap = (enum node_swap)i;
	return r;
}

static int set_swap_size(struct node_setup *s, const struct conf_entry *entry,
			 struct conf_error *err)
{
	return conf_entry_size(entry, 0, GIB(4096), &s->params.swap_bytes, err);
}

static int set_min_free(struct node_setup *s, const struct conf_entry *entry,
			struct conf_error *err)
{
	uint64_t kbytes = 0;
	int r = conf_entry_u64(entry, 0, UINT64_C(1) << 30, &kbytes, err);

	s->params.min_free_bytes = KIB(kbytes);
	return r;
}

static int set_unsigned(unsigned int *ret, const struct conf_entry *entry,
			uint64_t max, struct conf_error *err)
{
	uint64_t value = 0;
	int r = conf_entry_u64(entry, 0, max, &value, err);

	*ret = (unsigned int)value;
	return r;
}

static int set_proactiveness(struct node_setup *s,
			     const struct conf_entry *entry,
			     struct conf_error *err)
{
	return set_unsigned(&s->params.compaction_proactiveness, entry, 100,
			    err);
}

static int set_boost_factor(struct node_setup *s,
			    const struct conf_entry *entry,
			    struct conf_error *err)
{
	unsigned int factor = 0;
	int r = set_unsigned(&factor, entry, 1000000, err);

	s->params.watermark_boost_factor = factor ? factor : NODE_NO_BOOST;
	return r;
}

static int set_unevictable(struct node_setup *s, const struct conf_entry *entry,
			   struct conf_error *err)
{
	bool allowed = true;
	int r = conf_entry_bool(entry, &allowed, err);

	s->params.compact_unevictable_denied = !allowed;
	return r;
}

static int set_cpus(struct node_setup *s, const struct conf_entry *entry,
		    struct conf_error *err)
{
	return set_unsigned(&s->params.n_cpus, entry, NODE_CPUS_MAX, err);
}

static int set_pcp_batch(struct node_setup *s, const struct conf_entry *entry,
			 struct conf_error *err)
{
	return set_unsigned(&s->params.pcp_batch, entry, 4096, err);
}

static int set_pcp_high(struct node_setup *s, const struct conf_entry *entry,
			struct conf_error *err)
{
	return set_unsigned(&s->params.pcp_high, entry, 1 << 20, err);
}

static int set_numa_node(struct node_setup *s, const struct conf_entry *entry,
			 struct conf_error *err)
{
	return set_unsigned(&s->numa_node, entry, 1023, err);
}

static int set_node_seed(struct node_setup *s, const struct conf_entry *entry,
			 struct conf_error *err)
{
	return conf_entry_u64(entry, 0, UINT64_MAX, &s->params.seed, err);
}

static const struct {
	const char *key;
	node_key_fn set;
} node_keys[] = {
	{"size", set_size},
	{"page_size", set_page_size},
	{"snapshot", set_snapshot},
	{"profile", set_profile},
	{"occupants", set_occupants},
	{"swap", set_swap},
	{"swap_size", set_swap_size},
	{"min_free_kbytes", set_min_free},
	{"compaction_proactiveness", set_proactiveness},
	{"compact_unevictable_allowed", set_unevictable},
	{"watermark_boost_factor", set_boost_factor},
	{"cpus", set_cpus},
	{"pcp_batch", set_pcp_batch},
	{"pcp_high", set_pcp_high},
	{"numa_node", set_numa_node},
	{"seed", set_node_seed},
};

static node_key_fn find_node_key(const char *key)
{
	for (size_t i = 0; i < ARRAY_SIZE(node_keys); i++) {
		if (!strcmp(node_keys[i].key, key))
			return node_keys[i].set;
	}
	return NULL;
}

bool lab_is_node_key(const char *key)
{
	return find_node_key(key) != NULL;
}

static bool is_policy_key(const char *key)
{
	return !strcmp(key, "policy") || !strcmp(key, "orders") ||
	       !strncmp(key, "gfp.", 4) || !strncmp(key, "pool.", 5);
}

static int read_node_keys(struct node_setup *setup,
			  const struct conf_section *section, bool is_table,
			  struct conf_error *err)
{
	int r = 0;

	for (size_t i = 0; i < section->n_entries && !r; i++) {
		const struct conf_entry *entry = &section->entries[i];
		node_key_fn set = find_node_key(entry->key);

		if (set)
			r = set(setup, entry, err);
		else if (!is_table || !is_policy_key(entry->key))
			r = conf_entry_error(
				entry, err,
				"no such key; allowed are size, page_size, "
				"snapshot, profile, occupants, swap, "
				"swap_size, min_free_kbytes, "
				"compaction_proactiveness, "
				"compact_unevictable_allowed, "
				"watermark_boost_factor, cpus, pcp_batch, "
				"pcp_high, numa_node, seed%s",
				is_table ? ", and those of a policy" : "");
	}
	return r;
}

static int set_costs(struct cost_profile *costs,
		     const struct conf_section *section, struct conf_error *err)
{
	for (size_t i = 0; i < section->n_entries; i++) {
		const struct conf_entry *entry = &section->entries[i];
		int r = cost_profile_set(costs, entry->key, entry->value);

		if (r == -ENOENT)
			return conf_entry_error(entry, err, "no such cost");
		if (r)
			return conf_entry_error(entry, err,
						"\"%s\" is not a number of ns "
						"with at most three decimals",
						entry->value);
	}
	return 0;
}

int lab_profile(struct cost_profile *ret, const char *name, const char *beside,
		struct conf_error *err)
{
	_cleanup_(conf_ini_freep) struct conf_ini *ini = NULL;
	struct cost_profile costs = cost_profile_default();
	const struct conf_section *section;
	char path[LAB_PATH_BYTES];
	int r;

	if (!lab_find(path, "profiles", name, ".conf", beside))
		return invalid(err,
			       "%s: no such cost profile, neither "
			       "shipped nor a file",
			       name);
	r = conf_ini_read(&ini, path, 0, err);
	if (r)
		return r;
	section = conf_ini_find(ini, "cost", "");
	if (!section)
		return invalid(err, "%s: has no section [cost]", path);
	r = set_costs(&costs, section, err);
	if (r)
		return r;
	*ret = costs;
	return 0;
}

static int read_snapshot(struct snapshot **ret, const struct node_setup *setup,
			 const char *dir, struct conf_error *err)
{
	_cleanup_(conf_texts_finip) struct conf_texts texts = CONF_TEXTS_INIT;
	struct snapshot_options options = {
		.numa_node = setup->numa_node,
		.size_bytes = setup->params.size_bytes,
		.page_size_bytes = setup->params.page_size_bytes,
	};
	struct snapshot_error why = {0};
	int r;

	r = conf_read_snapshot_dir(dir, &texts, err);
	if (r)
		return r;
	r = snapshot_parse(ret,
			   &(struct snapshot_texts){
				   .buddyinfo = texts.buddyinfo,
				   .pagetypeinfo = texts.pagetypeinfo,
				   .zoneinfo = texts.zoneinfo,
				   .meminfo = texts.meminfo,
				   .vmstat = texts.vmstat,
			   },
			   &options, &why);
	if (r == SNAPSHOT_E_INVALID)
		return invalid(err, "%s/%s:%u: %s", dir, why.file, why.line,
			       why.text);
	return r;
}

/* Finds the snapshot that the keys or the command line name, if any. */
static int setup_snapshot(struct snapshot **ret, const struct node_setup *setup,
			  const char *file,
			  const struct lab_overrides *overrides,
			  struct conf_error *err)
{
	char dir[LAB_PATH_BYTES];

	if (overrides->node_dir) {
		if (!lab_find(dir, "snapshots", overrides->node_dir, "", NULL))
			(void)snprintf(dir, sizeof(dir), "%s",
				       overrides->node_dir);
		return read_snapshot(ret, setup, dir, err);
	}
	if (!setup->snapshot)
		return 0;
	if (!lab_find(dir, "snapshots", setup->snapshot->value, "", file))
		return conf_entry_error(setup->snapshot, err,
					"\"%s\" is neither a shipped snapshot "
					"nor a directory (with a /)",
					setup->snapshot->value);
	return read_snapshot(ret, setup, dir, err);
}

static int setup_costs(struct node_setup *setup, const char *file,
		       const struct lab_overrides *overrides,
		       char ret_profile[LAB_NAME_BYTES], struct conf_error *err)
{
	const char *name = setup->profile ? setup->profile->value : NULL;

	if (overrides->profile) {
		name = overrides->profile;
		file = NULL; /* relative to the working directory */
	}
	(void)snprintf(ret_profile, LAB_NAME_BYTES, "%s",
		       name ? name : "built-in");
	setup->params.costs = cost_profile_default();
	return name ? lab_profile(&setup->params.costs, name, file, err) : 0;
}

static int setup_node(struct node **ret, struct node_setup *setup,
		      const char *file, const struct lab_overrides *overrides,
		      char ret_profile[LAB_NAME_BYTES], struct conf_error *err)
{
	_cleanup_(snapshot_freep) struct snapshot *snapshot = NULL;
	struct node_error why = {{0}};
	int r;

	if (overrides->has_seed)
		setup->params.seed = overrides->seed;
	r = setup_costs(setup, file, overrides, ret_profile, err);
	if (!r)
		r = setup_snapshot(&snapshot, setup, file, overrides, err);
	if (r)
		return r;
	setup->params.snapshot = snapshot;
	if (!snapshot && setup->params.size_bytes == 0)
		return invalid(err, "%s: [node]: needs size or snapshot", file);
	r = node_new(ret, &setup->params, &why);
	if (r == NODE_E_INVALID)
		return invalid(err, "%s: [node]: %s", file, why.text);
	return r ? err_fold(r) : 0;
}

int lab_node_new(struct node **ret, const struct scenario *scenario,
		 const struct scenario_table *table, const char *file,
		 const struct lab_overrides *overrides,
		 char ret_profile[LAB_NAME_BYTES], struct conf_error *err)
{
	struct node_setup setup = {.params = {.seed = scenario->seed}};
	int r = 0;

	if (scenario->node)
		r = read_node_keys(&setup, scenario->node, false, err);
	if (!r)
		r = read_node_keys(&setup, table->section, true, err);
	if (r)
		return r;
	return setup_node(ret, &setup, file, overrides, ret_profile, err);
}

int lab_node_from_section(struct node **ret, const struct conf_section *section,
			  const struct lab_overrides *overrides,
			  char ret_profile[LAB_NAME_BYTES],
			  struct conf_error *err)
{
	struct node_setup setup = {0};
	int r = read_node_keys(&setup, section, false, err);

	if (r)
		return r;
	return setup_node(ret, &setup, section->file, overrides, ret_profile,
			  err);
}

/* A table's key "policy" is its list of policies. */
static bool is_change_of_policy(const char *key)
{
	return is_policy_key(key) && strcmp(key, "policy") != 0;
}

int lab_policy(struct policy *ret, const char *name,
	       const struct scenario *scenario,
	       const struct scenario_table *table,
	       const struct lab_overrides *overrides, struct conf_error *err)
{
	struct lab_policies of_scenario = {.n = 0};
	const struct conf_section *section = table->section;
	struct policy policy;
	int r = lab_policies_read(&of_scenario, scenario->ini, err);

	if (r)
		return r;
	if (!lab_policies_find_own(overrides->own, name, &policy) &&
	    !lab_policies_find(&of_scenario, name, &policy))
		return lab_policies_unknown(name,
					    overrides->n_policies ? NULL
								  : section,
					    err);
	r = lab_policies_set(&of_scenario, &policy, section,
			     is_change_of_policy, err);
	if (!r)
		*ret = policy;
	return r;
}
