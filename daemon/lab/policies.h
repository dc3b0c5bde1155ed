/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Policies of one's own: the sections [policy NAME] of a scenario or of a file,
 * with the keys of the daemon's configuration (docs/config.md).
 *
 * Units:     as heap/policy.h.
 * Ownership: a plain value.
 * Threads:   no state.
 */

#include "base/base.h"
#include "conf/ini.h"
#include "heap/policy.h"

#define LAB_POLICIES_MAX 16u

struct lab_policies {
	struct policy list[LAB_POLICIES_MAX]; /* in the order of the text */
	size_t n;
};

/**
 * lab_policies_read() - add every [policy NAME] of @ini; others are skipped
 *
 * A section's "policy" may name one that was added before, or a shipped one.
 *
 * Return: 0, or CONF_E_INVALID with @err.
 */
int lab_policies_read(struct lab_policies *policies, const struct conf_ini *ini,
		      struct conf_error *err) _must_check_;

/* The same from a file that has at least one such section and no others.
 * Return: 0, CONF_E_INVALID with @err, -ENOMEM. */
int lab_policies_read_file(struct lab_policies *policies, const char *path,
			   struct conf_error *err) _must_check_;

/* Return: true if @name is among @policies, which may be NULL. */
bool lab_policies_find_own(const struct lab_policies *policies,
			   const char *name, struct policy *ret);
/* The same, or shipped. */
bool lab_policies_find(const struct lab_policies *policies, const char *name,
		       struct policy *ret);

/**
 * lab_policies_set() - the keys of a section, in the order of policy_key_rank()
 * @is_key: which of them; NULL: all
 *
 * Return: 0, or CONF_E_INVALID with @err.
 */
int lab_policies_set(const struct lab_policies *policies, struct policy *policy,
		     const struct conf_section *section,
		     bool (*is_key)(const char *key), struct conf_error *err)
	_must_check_;

/* Says that @name is no policy; @section is where it stands, NULL: the command
 * line. Return: CONF_E_INVALID. */
int lab_policies_unknown(const char *name, const struct conf_section *section,
			 struct conf_error *err);
