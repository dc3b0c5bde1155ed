/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The table of keys with fixed names: where each lives in struct config, what
 * it may be, its default, and whether it can change while the daemon runs.
 * Private to config.c and config_keys.c.
 *
 * Units:     as struct config.
 * Ownership: constant data.
 * Threads:   no state.
 */

#include "server/config.h"

enum config_type {
	CONFIG_TYPE_BOOL,
	CONFIG_TYPE_U64,
	CONFIG_TYPE_SIZE,         /* bytes */
	CONFIG_TYPE_SIZE_OR_AUTO, /* auto: 0 */
	CONFIG_TYPE_SHARE,
	CONFIG_TYPE_OCTAL,
	CONFIG_TYPE_ENUM,
	CONFIG_TYPE_TEXT,
};

struct config_key {
	const char *section;
	const char *name;
	enum config_type type;
	size_t offset;
	const char *default_text;
	uint64_t min, max;        /* U64, SIZE, OCTAL */
	const char *const *names; /* ENUM: ends with NULL */
	bool live;                /* a reload changes it */
};

/* The table, ending with a key whose name is NULL. */
extern const struct config_key config_keys[];

/* Return: the key, or NULL. */
const struct config_key *config_key_find(const char *section, const char *name);

/* Return: true if the table has keys of [section]. */
bool config_section_exists(const char *section);

/* Parses @entry's value into @config. Return: 0 or CONF_E_INVALID. */
int config_key_set(const struct config_key *key, struct config *config,
		   const struct conf_entry *entry, struct conf_error *err)
	_must_check_;

/* Parses a share such as "75%" or "256M". Return: 0 or CONF_E_INVALID. */
int config_parse_share(const struct conf_entry *entry, struct config_share *ret,
		       struct conf_error *err) _must_check_;

bool config_key_equal(const struct config_key *key, const struct config *a,
		      const struct config *b);
void config_key_copy(const struct config_key *key, struct config *to,
		     const struct config *from);
void config_key_render(const struct config_key *key,
		       const struct config *config, struct strbuf *out);
