/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * INI files: read through libinih into sections and entries that know their
 * file and line, and value parsers whose errors say what is allowed.
 *
 *   [kind name]                 a section; its name may be empty
 *   key = value   # comment     a '#' or ';' after a blank begins a comment
 *     more of the value         an indented line continues the value
 *
 * Units:     sizes are bytes; K, M, G, T are binary.
 * Ownership: struct conf_ini owns all texts in it; struct conf_error is plain.
 * Threads:   one at a time (libinih keeps global settings).
 *
 * Input is untrusted: a NUL, a byte that is not UTF-8, a line longer than
 * CONF_LINE_MAX_BYTES, a duplicate key, text after a section's bracket, an
 * entry before any section are refused. Two sections of the same [kind name]
 * are refused as well, unless CONF_REPEAT_SECTIONS is given.
 */

#include "base/base.h"

#define CONF_LINE_MAX_BYTES  1000u
#define CONF_VALUE_MAX_BYTES 4096u /* with its continuation lines */
#define CONF_NAME_MAX_BYTES  48u   /* of a key, or of [kind name] */
#define CONF_FILE_MAX_BYTES  (1u << 20)

/* Outcome of everything here that is given untrusted text. */
enum {
	CONF_E_OK_,
	CONF_E_INVALID, /* conf_error says "file:line: key: what, what else" */
};

struct conf_error {
	char text[512];
};

struct conf_entry {
	const char *file;
	unsigned int line; /* 0: not of a file of lines */
	const char *key;
	const char *value; /* never NULL; blanks at both ends removed */
};

struct conf_section {
	const char *file;
	unsigned int line;
	const char *kind; /* first word: "heap" of [heap system] */
	const char *name; /* the rest: "system", or "" */
	struct conf_entry *entries;
	size_t n_entries;
};

struct conf_text; /* where they are kept */

struct conf_ini {
	const char *file;
	struct conf_section *sections; /* in the order of the file */
	size_t n_sections;
	struct conf_text *texts;
};

#define CONF_REPEAT_SECTIONS 0x1u /* [step] may come many times (scenarios) */

/**
 * conf_ini_parse() - parse a text
 * @file:       its name, for messages
 * @text:       @len bytes, no NUL needed at the end
 * @flags:      CONF_REPEAT_SECTIONS or 0
 *
 * Return: 0, CONF_E_INVALID with @err, -ENOMEM.
 */
int conf_ini_parse(struct conf_ini **ret, const char *file, const char *text,
		   size_t len, unsigned int flags, struct conf_error *err)
	_must_check_;

/* The same from a file of at most CONF_FILE_MAX_BYTES. A file that cannot be
 * read is CONF_E_INVALID as well: "file: cannot be opened: reason". */
int conf_ini_read(struct conf_ini **ret, const char *path, unsigned int flags,
		  struct conf_error *err) _must_check_;

/**
 * conf_ini_parse_setting() - parse one key, given on a command line
 * @file:       how messages name it; they tell no line
 * @setting:    "[kind name] key = value"
 *
 * Return: 0 and one section of one entry, CONF_E_INVALID with @err, -ENOMEM.
 */
int conf_ini_parse_setting(struct conf_ini **ret, const char *file,
			   const char *setting, struct conf_error *err)
	_must_check_;

/* Return: NULL, always. @ini may be NULL. */
struct conf_ini *conf_ini_free(struct conf_ini *ini);
DEFINE_CLEANUP(struct conf_ini *, conf_ini_free);

/* Return: the first section [kind name], or NULL. */
const struct conf_section *conf_ini_find(const struct conf_ini *ini,
					 const char *kind, const char *name);

/* Return: the entry, or NULL. */
const struct conf_entry *conf_section_find(const struct conf_section *section,
					   const char *key);

/* "file:line"; without a line (0) "file". Return: @buf. */
const char *conf_format_place(char *buf, size_t size, const char *file,
			      unsigned int line);
/* Fills @err with "file:line: key: text". Return: CONF_E_INVALID. */
int conf_entry_error(const struct conf_entry *entry, struct conf_error *err,
		     const char *format, ...) _printf_(3, 4);
/* Fills @err with "file:line: [kind name]: text". Return: CONF_E_INVALID. */
int conf_section_error(const struct conf_section *section,
		       struct conf_error *err, const char *format, ...)
	_printf_(3, 4);

/*
 * Values of entries. Each: 0, or CONF_E_INVALID with @err naming file, line,
 * key, the value and what is allowed; @ret is untouched then.
 */
int conf_entry_size(const struct conf_entry *entry, uint64_t min_bytes,
		    uint64_t max_bytes, uint64_t *ret, struct conf_error *err)
	_must_check_;
int conf_entry_u64(const struct conf_entry *entry, uint64_t min, uint64_t max,
		   uint64_t *ret, struct conf_error *err) _must_check_;
int conf_entry_bool(const struct conf_entry *entry, bool *ret,
		    struct conf_error *err) _must_check_;
/* @names: @n names; @ret receives the index. */
int conf_entry_enum(const struct conf_entry *entry, const char *const *names,
		    size_t n, unsigned int *ret, struct conf_error *err)
	_must_check_;
/* "75%" of @whole_bytes, or a size. */
int conf_entry_percent_or_size(const struct conf_entry *entry,
			       uint64_t whole_bytes, uint64_t *ret,
			       struct conf_error *err) _must_check_;

/* "N%" of 0 to 100, or a size as parse_size() takes it; @ret_percent tells
 * which. Return: 0, or -EINVAL or -ERANGE as base/parse.h. */
int conf_parse_percent_or_size(const char *text, uint64_t *ret_value,
			       bool *ret_percent) _must_check_;

/* A size as people write it: exact, with
 * the largest unit that divides it. Return: @buf. */
const char *conf_format_size(char *buf, size_t size, uint64_t bytes);
