/* SPDX-License-Identifier: MIT */
#include "lab/policies.h"

#include <stdio.h>
#include <string.h>

bool lab_policies_find_own(const struct lab_policies *policies,
			   const char *name, struct policy *ret)
{
	for (size_t i = 0; policies && i < policies->n; i++) {
		if (!strcmp(policies->list[i].name, name)) {
			*ret = policies->list[i];
			return true;
		}
	}
	return false;
}

bool lab_policies_find(const struct lab_policies *policies, const char *name,
		       struct policy *ret)
{
	return lab_policies_find_own(policies, name, ret) ||
	       policy_shipped(ret, name);
}

static int set_key(const struct lab_policies *policies, struct policy *policy,
		   const struct conf_entry *entry, struct conf_error *err)
{
	struct policy_error why;

	if (!strcmp(entry->key, "policy") &&
	    lab_policies_find_own(policies, entry->value, policy))
		return 0;
	if (policy_set(policy, entry->key, entry->value, &why))
		return conf_entry_error(entry, err, "%s", why.text);
	return 0;
}

int lab_policies_set(const struct lab_policies *policies, struct policy *policy,
		     const struct conf_section *section,
		     bool (*is_key)(const char *key), struct conf_error *err)
{
	int r = 0;

	for (unsigned int rank = 0; rank < POLICY_KEY_RANKS; rank++) {
		for (size_t i = 0; i < section->n_entries && !r; i++) {
			const struct conf_entry *entry = &section->entries[i];

			if (policy_key_rank(entry->key) == rank &&
			    (!is_key || is_key(entry->key)))
				r = set_key(policies, policy, entry, err);
		}
	}
	return r;
}

/* Names end up as words of lists, in columns and before a star. */
static int check_name(const struct lab_policies *policies,
		      const struct conf_section *section,
		      struct conf_error *err)
{
	struct policy other;
	size_t len = strlen(section->name);

	if (!policy_name_is_valid(section->name))
		return conf_section_error(section, err,
					  "a policy needs a name of 1 to %u "
					  "letters, digits or . _ , -",
					  POLICY_NAME_BYTES - 1);
	/* As an argument it would be taken for a file. */
	if (len >= 5 && !strcmp(section->name + len - 5, ".conf"))
		return conf_section_error(section, err,
					  "a policy's name must not end in "
					  ".conf");
	if (lab_policies_find_own(policies, section->name, &other))
		return conf_section_error(section, err,
					  "a policy of that name is there "
					  "already");
	if (policies->n == LAB_POLICIES_MAX)
		return conf_section_error(section, err, "more than %u policies",
					  LAB_POLICIES_MAX);
	return 0;
}

static int read_section(struct lab_policies *policies,
			const struct conf_section *section,
			struct conf_error *err)
{
	struct policy policy = policy_default();
	int r = check_name(policies, section, err);

	if (!r)
		r = lab_policies_set(policies, &policy, section, NULL, err);
	if (r)
		return r;
	(void)snprintf(policy.name, sizeof(policy.name), "%s", section->name);
	policies->list[policies->n++] = policy;
	return 0;
}

int lab_policies_read(struct lab_policies *policies, const struct conf_ini *ini,
		      struct conf_error *err)
{
	int r = 0;

	for (size_t i = 0; i < ini->n_sections && !r; i++) {
		if (!strcmp(ini->sections[i].kind, "policy"))
			r = read_section(policies, &ini->sections[i], err);
	}
	return r;
}

int lab_policies_read_file(struct lab_policies *policies, const char *path,
			   struct conf_error *err)
{
	_cleanup_(conf_ini_freep) struct conf_ini *ini = NULL;
	int r = conf_ini_read(&ini, path, 0, err);

	if (r)
		return r;
	for (size_t i = 0; i < ini->n_sections; i++) {
		if (strcmp(ini->sections[i].kind, "policy") != 0)
			return conf_section_error(&ini->sections[i], err,
						  "a file of policies has only "
						  "sections "
						  "[policy NAME]");
	}
	if (ini->n_sections == 0) {
		(void)snprintf(err->text, sizeof(err->text),
			       "%.400s: has no section [policy NAME]", path);
		return CONF_E_INVALID;
	}
	return lab_policies_read(policies, ini, err);
}

int lab_policies_unknown(const char *name, const struct conf_section *section,
			 struct conf_error *err)
{
	char text[400];

	(void)snprintf(text, sizeof(text),
		       "\"%.64s\" is no policy; shipped are 840-high, 840-mid "
		       "(or 8,4,0), 800 (or 8,0,0), 940-high, 0-only; a "
		       "scenario may have sections [policy NAME], and --policy "
		       "takes a file of such (with a / or ending in .conf)",
		       name);
	if (section)
		return conf_section_error(section, err, "%s", text);
	(void)snprintf(err->text, sizeof(err->text), "--policy: %s", text);
	return CONF_E_INVALID;
}
