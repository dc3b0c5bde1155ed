/* SPDX-License-Identifier: MIT */
#include "conf/ini.h"

#include <errno.h>
#include <ini.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "conf/files.h"
#include "conf/utf8.h"

#if defined(__GNUC__) && !defined(__clang__)
/* gcc 12 takes a store to an array element of unknown index for one that may
 * overwrite the only pointer to what keep() returned. */
#pragma GCC diagnostic ignored "-Wanalyzer-malloc-leak"
#endif

/*
 * libinih asks read_line() for one line at a time and calls on_entry() for each
 * key and for each continuation line. What it would silently accept or cut is
 * refused in read_line(), which also knows the line's number. An entry is
 * complete only when the next one begins, since its value may go on.
 */

/* A text that the file's sections and entries point at. */
struct conf_text {
	struct conf_text *next;
	char bytes[];
};

/* libinih's own line buffer is smaller than CONF_LINE_MAX_BYTES by default. */
#define INI_LINE_BYTES ((int)CONF_LINE_MAX_BYTES + 3)

/* Beside the flags of conf_ini_parse(): all is at line 0. */
#define WITHOUT_LINES 0x2u

struct parser {
	struct conf_ini *ini;
	struct conf_error *err;
	unsigned int flags;
	const char *text; /* what is not read yet */
	size_t left;
	unsigned int line;
	bool line_is_indented;
	struct strbuf value; /* of the entry being read */
	int r;               /* first failure; nothing is read after it */
};

static int refuse(struct parser *p, const char *format, ...) _printf_(2, 3);

static int refuse(struct parser *p, const char *format, ...)
{
	char place[400];
	int n = snprintf(p->err->text, sizeof(p->err->text), "%s: ",
			 conf_format_place(place, sizeof(place), p->ini->file,
					   p->line));
	va_list args;

	va_start(args, format);
	if (n >= 0 && (size_t)n < sizeof(p->err->text))
		(void)vsnprintf(p->err->text + n, sizeof(p->err->text) - n,
				format, args);
	va_end(args);
	p->r = CONF_E_INVALID;
	return p->r;
}

static struct conf_section *last_section(struct parser *p)
{
	if (p->ini->n_sections == 0)
		return NULL;
	return &p->ini->sections[p->ini->n_sections - 1];
}

static struct conf_entry *last_entry(struct parser *p)
{
	struct conf_section *section = last_section(p);

	if (!section || section->n_entries == 0)
		return NULL;
	return &section->entries[section->n_entries - 1];
}

/* Return: true while the last entry's value may go on. */
static bool value_is_open(struct parser *p)
{
	const struct conf_entry *entry = last_entry(p);

	return entry && !entry->value;
}

/* Return: a copy of @text that lives as long as @ini, or NULL. */
static const char *keep(struct conf_ini *ini, const char *text)
{
	size_t bytes = strlen(text) + 1;
	struct conf_text *copy = malloc(sizeof(*copy) + bytes);

	if (!copy)
		return NULL;
	memcpy(copy->bytes, text, bytes);
	copy->next = ini->texts;
	ini->texts = copy;
	return copy->bytes;
}

/* The value of the entry that was being read is complete. */
static void finish_value(struct parser *p)
{
	struct conf_entry *entry = last_entry(p);

	if (!entry || entry->value)
		return;
	if (p->value.len > CONF_VALUE_MAX_BYTES) {
		refuse(p, "%s: value is longer than %u bytes", entry->key,
		       CONF_VALUE_MAX_BYTES);
		return;
	}
	entry->value = strbuf_failed(&p->value)
			       ? NULL
			       : keep(p->ini, strbuf_string(&p->value));
	strbuf_reset(&p->value);
	if (!entry->value)
		p->r = -ENOMEM;
}

static void *grow_array(void *array, size_t n, size_t size)
{
	return is_power_of_2(n) || n == 0
		       ? realloc(array, (n ? 2 * n : 1) * size)
		       : array;
}

/* Return: a section at the end, or NULL when there is no memory. */
static struct conf_section *append_section(struct conf_ini *ini)
{
	struct conf_section *sections =
		grow_array(ini->sections, ini->n_sections, sizeof(*sections));

	if (!sections)
		return NULL;
	ini->sections = sections;
	sections[ini->n_sections] = (struct conf_section){.file = ini->file};
	return &sections[ini->n_sections++];
}

static int add_section(struct parser *p, const char *kind, const char *name)
{
	const struct conf_section *twin = conf_ini_find(p->ini, kind, name);
	struct conf_section *section;

	if (twin && !(p->flags & CONF_REPEAT_SECTIONS))
		return refuse(p,
			      "[%s%s%s]: section is already there, at line "
			      "%u; write its keys there",
			      kind, *name ? " " : "", name, twin->line);
	section = append_section(p->ini);
	if (!section)
		return p->r = -ENOMEM;
	section->line = p->line;
	section->kind = keep(p->ini, kind);
	section->name = keep(p->ini, name);
	if (!section->kind || !section->name)
		p->r = -ENOMEM;
	return p->r;
}

/* @line is "[kind name]"; cut up in place. */
static int parse_section(struct parser *p, char *line)
{
	char *start = line + 1, *end, *name;
	size_t len;

	finish_value(p);
	if (p->r)
		return p->r;
	end = strchr(start, ']');
	if (!end)
		return refuse(p, "section: no ']'");
	if (end[1 + strspn(end + 1, " \t")] != '\0')
		return refuse(p, "section: text after ']'; an entry needs a "
				 "line of its own");
	start += strspn(start, " \t");
	while (end > start && strchr(" \t", end[-1]))
		end--;
	*end = '\0';
	len = (size_t)(end - start);
	if (len == 0 || len > CONF_NAME_MAX_BYTES)
		return refuse(p, "section: name must have 1 to %u bytes",
			      CONF_NAME_MAX_BYTES);
	name = start + strcspn(start, " \t");
	if (*name)
		*name++ = '\0';
	return add_section(p, start, name + strspn(name, " \t"));
}

static int add_entry(struct parser *p, const char *key)
{
	struct conf_section *section = last_section(p);
	const struct conf_entry *twin;
	struct conf_entry *entries;

	if (!section)
		return refuse(p, "%s: before any [section]", key);
	twin = conf_section_find(section, key);
	if (twin)
		return refuse(p, "%s: key is already there, at line %u", key,
			      twin->line);
	entries = grow_array(section->entries, section->n_entries,
			     sizeof(*entries));
	if (!entries)
		return p->r = -ENOMEM;
	section->entries = entries;
	entries[section->n_entries] = (struct conf_entry){
		.file = p->ini->file,
		.line = p->line,
		.key = keep(p->ini, key),
	};
	if (!entries[section->n_entries].key)
		return p->r = -ENOMEM;
	section->n_entries++;
	return 0;
}

/* Called by libinih. Return: nonzero to go on. */
static int on_entry(void *user, const char *section_name, const char *key,
		    const char *value)
{
	struct parser *p = user;

	(void)section_name; /* cut to 49 bytes: parse_section() has the whole */
	if (p->r)
		return 0;
	if (p->line_is_indented && value_is_open(p)) {
		if (p->value.len && *value)
			strbuf_append_char(&p->value, ' ');
	} else {
		finish_value(p);
		if (p->r || add_entry(p, key))
			return 0;
	}
	strbuf_append_string(&p->value, value);
	return 1;
}

/* A comment begins at the start of a line or after a blank. */
static void cut_comment(char *line)
{
	for (char *c = line; *c; c++) {
		if ((*c == '#' || *c == ';') &&
		    (c == line || c[-1] == ' ' || c[-1] == '\t')) {
			*c = '\0';
			break;
		}
	}
	for (size_t n = strlen(line); n && strchr(" \t\r", line[n - 1]); n--)
		line[n - 1] = '\0';
}

/* Return: true if @len bytes may be a line of an INI file. */
static bool check_bytes(struct parser *p, const char *line, size_t len)
{
	size_t good = utf8_valid_prefix(line, len);

	if (len > CONF_LINE_MAX_BYTES)
		refuse(p, "line is longer than %u bytes", CONF_LINE_MAX_BYTES);
	else if (good < len)
		refuse(p, "byte %zu of the line is not UTF-8 text", good + 1);
	else if (utf8_find_control(line, len) < len)
		refuse(p, "byte %zu of the line is a control character",
		       utf8_find_control(line, len) + 1);
	return p->r == 0;
}

static void check_entry_line(struct parser *p, const char *line)
{
	const char *equals = strchr(line, '=');
	size_t len = equals ? (size_t)(equals - line) : 0;

	if (!equals) {
		refuse(p, "not of the form \"key = value\"");
		return;
	}
	while (len && strchr(" \t", line[len - 1]))
		len--;
	if (len == 0 || len > CONF_NAME_MAX_BYTES)
		refuse(p, "key must have 1 to %u bytes", CONF_NAME_MAX_BYTES);
	else if (strcspn(line, " \t:") < len)
		refuse(p, "key must not contain blanks or ':'");
}

/* What libinih gets of a line: nothing of a comment or a section. */
static void digest_line(struct parser *p, char *line)
{
	const char *first;

	cut_comment(line);
	first = line + strspn(line, " \t");
	p->line_is_indented = first != line && *first;
	if (*first == '[' && p->line_is_indented) {
		/* libinih takes it for more of a value: nobody means that. */
		refuse(p, "section: must begin at the start of its line");
	} else if (*first == '[') {
		if (parse_section(p, line) == 0)
			strcpy(line, "[s]"); /* ends a continuation */
	} else if (*first && !(p->line_is_indented && value_is_open(p))) {
		check_entry_line(p, first);
	}
}

/* Called by libinih, as fgets(). */
static char *read_line(char *buf, int size _unused_, void *stream)
{
	struct parser *p = stream;
	const char *end;
	size_t len;

	if (p->r || p->left == 0)
		return NULL;
	end = memchr(p->text, '\n', p->left);
	len = end ? (size_t)(end - p->text) : p->left;
	if (!(p->flags & WITHOUT_LINES))
		p->line++;
	if (len && p->text[len - 1] == '\r')
		len--;
	if (!check_bytes(p, p->text, len))
		return NULL;

	assert((size_t)size > len + 2);
	memcpy(buf, p->text, len);
	buf[len] = '\0';
	len = end ? (size_t)(end - p->text) + 1 : p->left;
	p->text += len;
	p->left -= len;
	digest_line(p, buf);
	strcat(buf, "\n");
	return p->r ? NULL : buf;
}

static void set_up_libinih(void)
{
	ini_max_line = INI_LINE_BYTES;
	ini_allow_inline_comments = false; /* read_line() removes them */
	ini_allow_multiline = true;
	ini_use_stack = true;
}

int conf_ini_parse(struct conf_ini **ret, const char *file, const char *text,
		   size_t len, unsigned int flags, struct conf_error *err)
{
	_cleanup_(conf_ini_freep) struct conf_ini *ini = NULL;
	struct parser p = {.err = err,
			   .flags = flags,
			   .text = text,
			   .left = len};
	int r;

	ini = calloc(1, sizeof(*ini));
	if (!ini)
		return -ENOMEM;
	ini->file = keep(ini, file);
	if (!ini->file)
		return -ENOMEM;
	p.ini = ini;
	if (len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) {
		p.text += 3; /* a byte order mark */
		p.left -= 3;
	}

	set_up_libinih();
	r = ini_parse_stream(read_line, &p, on_entry, &p);
	if (p.r == 0)
		finish_value(&p);
	strbuf_fini(&p.value);
	if (p.r)
		return p.r;
	else if (r == -2)
		return -ENOMEM;
	else if (r) /* libinih saw something that read_line() did not */
		return refuse(&p, "not of the form \"key = value\"");
	*ret = TAKE_PTR(ini);
	return 0;
}

int conf_ini_read(struct conf_ini **ret, const char *path, unsigned int flags,
		  struct conf_error *err)
{
	char *text = NULL;
	size_t len;
	int r;

	r = conf_read_file(path, CONF_FILE_MAX_BYTES, &text, &len);
	if (r == -ENOMEM)
		return r;
	if (r) {
		conf_file_error(path, r, CONF_FILE_MAX_BYTES, err);
		return CONF_E_INVALID;
	}
	r = conf_ini_parse(ret, path, text, len, flags, err);
	free(text);
	return r;
}

/* Return: true if @setting may be cut in two lines behind its section. */
static bool has_section(const char *setting)
{
	return setting[0] == '[' && strchr(setting, ']') &&
	       !strchr(setting, '\n');
}

static bool is_one_entry(const struct conf_ini *ini)
{
	return ini->n_sections == 1 && ini->sections[0].n_entries == 1;
}

static int setting_error(const char *file, struct conf_error *err)
{
	(void)snprintf(err->text, sizeof(err->text),
		       "%s: not of the form \"[section] key = value\"", file);
	return CONF_E_INVALID;
}

int conf_ini_parse_setting(struct conf_ini **ret, const char *file,
			   const char *setting, struct conf_error *err)
{
	_cleanup_(strbuf_finip) struct strbuf lines = STRBUF_INIT;
	_cleanup_(conf_ini_freep) struct conf_ini *ini = NULL;
	const char *entry;
	int r;

	if (!has_section(setting))
		return setting_error(file, err);
	entry = strchr(setting, ']') + 1;
	strbuf_append(&lines, "%.*s\n%s", (int)(entry - setting), setting,
		      entry + strspn(entry, " \t"));
	if (strbuf_failed(&lines))
		return -ENOMEM;
	r = conf_ini_parse(&ini, file, strbuf_string(&lines), lines.len,
			   WITHOUT_LINES, err);
	if (r)
		return r;
	if (!is_one_entry(ini))
		return setting_error(file, err);
	*ret = TAKE_PTR(ini);
	return 0;
}

struct conf_ini *conf_ini_free(struct conf_ini *ini)
{
	if (!ini)
		return NULL;
	while (ini->texts) {
		struct conf_text *next = ini->texts->next;

		free(ini->texts);
		ini->texts = next;
	}
	for (size_t i = 0; i < ini->n_sections; i++)
		free(ini->sections[i].entries);
	free(ini->sections);
	free(ini);
	return NULL;
}

const struct conf_section *conf_ini_find(const struct conf_ini *ini,
					 const char *kind, const char *name)
{
	for (size_t i = 0; i < ini->n_sections; i++) {
		const struct conf_section *s = &ini->sections[i];

		if (!strcmp(s->kind, kind) && !strcmp(s->name, name))
			return s;
	}
	return NULL;
}

const struct conf_entry *conf_section_find(const struct conf_section *section,
					   const char *key)
{
	for (size_t i = 0; i < section->n_entries; i++)
		if (!strcmp(section->entries[i].key, key))
			return &section->entries[i];
	return NULL;
}
