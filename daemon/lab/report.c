/* SPDX-License-Identifier: MIT */
#include "lab/report.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS_MAX 16u

/* A row or a heading: its cells, separated by '|'. */
struct line {
	struct line *next;
	char *cells;
};

struct report_table {
	struct report_table *next;
	char *title;
	char *context_policy, *context_profile, *context_kind;
	uint64_t seed;
	struct line *headings;
	struct line *rows, **rows_end;
	struct line *notes, **notes_end;
};

struct report {
	char *name;
	char *title;
	struct report_table *tables, **tables_end;
	struct report_table *last;
	struct strbuf conclusion;
	bool failed;
};

static struct line *lines_free(struct line *line)
{
	while (line) {
		struct line *next = line->next;

		free(line->cells);
		free(line);
		line = next;
	}
	return NULL;
}

static struct report_table *table_free(struct report_table *table)
{
	if (!table)
		return NULL;
	free(table->title);
	free(table->context_policy);
	free(table->context_profile);
	free(table->context_kind);
	lines_free(table->headings);
	lines_free(table->rows);
	lines_free(table->notes);
	free(table);
	return NULL;
}
DEFINE_CLEANUP(struct report_table *, table_free);

int report_new(struct report **ret, const char *name, const char *title)
{
	_cleanup_(report_freep) struct report *report = NULL;

	report = calloc(1, sizeof(*report));
	if (!report)
		return -ENOMEM;
	report->tables_end = &report->tables;
	report->name = strdup(name);
	report->title = strdup(title);
	if (!report->name || !report->title)
		return -ENOMEM;
	*ret = TAKE_PTR(report);
	return 0;
}

struct report *report_free(struct report *report)
{
	if (!report)
		return NULL;
	while (report->tables) {
		struct report_table *next = report->tables->next;

		table_free(report->tables);
		report->tables = next;
	}
	free(report->name);
	free(report->title);
	strbuf_fini(&report->conclusion);
	free(report);
	return NULL;
}

/* Takes the text of @sb. Return: a line, or NULL when there is no memory. */
static struct line *line_of(struct strbuf *sb)
{
	struct line *line = calloc(1, sizeof(*line));
	char *cells = strbuf_steal(sb);

	if (!line || !cells) {
		free(line);
		free(cells);
		return NULL;
	}
	line->cells = cells;
	return line;
}

static struct line *new_line(const char *text)
{
	struct strbuf sb = STRBUF_INIT;
	struct line *line;

	strbuf_append_string(&sb, text);
	line = line_of(&sb);
	strbuf_fini(&sb);
	return line;
}

void report_table(struct report *report, const char *title,
		  const struct report_context *context, const char *columns)
{
	_cleanup_(table_freep) struct report_table *t = NULL;

	report->last = NULL;
	t = calloc(1, sizeof(*t));
	if (!t) {
		report->failed = true;
		return;
	}
	t->rows_end = &t->rows;
	t->notes_end = &t->notes;
	t->title = strdup(title);
	t->context_policy = strdup(context->policy);
	t->context_profile = strdup(context->profile);
	t->context_kind = strdup(context->kind);
	t->seed = context->seed;
	t->headings = new_line(columns);
	if (!t->title || !t->context_policy || !t->context_profile ||
	    !t->context_kind || !t->headings) {
		report->failed = true;
		return;
	}
	report->last = t;
	*report->tables_end = TAKE_PTR(t);
	report->tables_end = &report->last->next;
}

_unused_ static size_t count_cells(const char *cells)
{
	size_t n = 1;

	for (; *cells; cells++)
		n += *cells == '|';
	return n;
}

_printf_(3, 0) static void add_line(struct report *report, struct line ***end,
				    const char *format, va_list args)
{
	struct strbuf sb = STRBUF_INIT;
	struct line *line;

	strbuf_vappend(&sb, format, args);
	line = line_of(&sb);
	strbuf_fini(&sb);
	if (!line) {
		report->failed = true;
		return;
	}
	**end = line;
	*end = &line->next;
}

void report_row(struct report *report, const char *format, ...)
{
	struct report_table *t = report->last;
	va_list args;

	if (!t) /* its table had no memory */
		return;
	va_start(args, format);
	add_line(report, &t->rows_end, format, args);
	va_end(args);
}

void report_note(struct report *report, const char *format, ...)
{
	struct report_table *t = report->last;
	va_list args;

	if (!t)
		return;
	va_start(args, format);
	add_line(report, &t->notes_end, format, args);
	va_end(args);
}

void report_conclude(struct report *report, const char *format, ...)
{
	va_list args;

	if (report->conclusion.len)
		strbuf_append_char(&report->conclusion, ' ');
	va_start(args, format);
	strbuf_vappend(&report->conclusion, format, args);
	va_end(args);
}

const char *report_conclusion(const struct report *report)
{
	return strbuf_string(&report->conclusion);
}

/* The next cell of @cells. Return: false after the last. */
static bool next_cell(const char **cells, const char **ret, size_t *ret_len)
{
	if (!*cells)
		return false;
	*ret = *cells;
	*ret_len = strcspn(*cells, "|");
	*cells = (*cells)[*ret_len] ? *cells + *ret_len + 1 : NULL;
	return true;
}

/* Columns that a terminal shows, of UTF-8 text. */
static size_t text_width(const char *s, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += ((unsigned char)s[i] & 0xc0) != 0x80;
	return n;
}

static void widen(const char *cells, size_t *widths)
{
	const char *cell;
	size_t len;

	for (size_t i = 0; next_cell(&cells, &cell, &len); i++) {
		assert(i < COLUMNS_MAX);
		widths[i] = MAX(widths[i], text_width(cell, len));
	}
}

static bool looks_like_a_number(const char *s, size_t len)
{
	return len && ((s[0] >= '0' && s[0] <= '9') ||
		       (len > 1 && s[0] == '-' && s[1] >= '0' && s[1] <= '9'));
}

static void render_cells(const char *cells, const size_t *widths,
			 struct strbuf *sb)
{
	const char *cell;
	size_t len, owed = 0; /* blanks, written only if something follows */

	for (size_t i = 0; next_cell(&cells, &cell, &len); i++) {
		size_t pad = widths[i] - text_width(cell, len);
		bool right = i > 0 && looks_like_a_number(cell, len);

		owed += 2;
		if (len == 0) {
			owed += pad;
			continue;
		}
		owed += right ? pad : 0;
		strbuf_append(sb, "%*s%.*s", (int)owed, "", (int)len, cell);
		owed = right ? 0 : pad;
	}
	strbuf_append_char(sb, '\n');
}

static void render_table(const struct report_table *t, struct strbuf *sb)
{
	size_t widths[COLUMNS_MAX] = {0};

	widen(t->headings->cells, widths);
	for (const struct line *row = t->rows; row; row = row->next) {
		assert(count_cells(row->cells) <=
		       count_cells(t->headings->cells));
		widen(row->cells, widths);
	}
	strbuf_append(sb,
		      "\n%s\n[policy %s, seed %llu, profile %s, "
		      "dmaheap " DMAHEAP_VERSION "; %s]\n",
		      t->title, t->context_policy, (unsigned long long)t->seed,
		      t->context_profile, t->context_kind);
	render_cells(t->headings->cells, widths, sb);
	for (const struct line *row = t->rows; row; row = row->next)
		render_cells(row->cells, widths, sb);
	for (const struct line *note = t->notes; note; note = note->next)
		strbuf_append(sb, "%s\n", note->cells);
}

int report_render_text(const struct report *report, struct strbuf *sb)
{
	strbuf_append(sb, "%s: %s\n", report->name, report->title);
	for (const struct report_table *t = report->tables; t; t = t->next)
		render_table(t, sb);
	strbuf_append(sb, "\n%s\n", report_conclusion(report));
	return report->failed || strbuf_failed(sb) ||
			       strbuf_failed(&report->conclusion)
		       ? -ENOMEM
		       : 0;
}

static void json_string(const char *s, size_t len, struct strbuf *sb)
{
	strbuf_append_char(sb, '"');
	for (size_t i = 0; i < len; i++) {
		if (s[i] == '"' || s[i] == '\\')
			strbuf_append(sb, "\\%c", s[i]);
		else if ((unsigned char)s[i] < ' ')
			strbuf_append(sb, "\\u%04x", (unsigned int)s[i]);
		else
			strbuf_append_char(sb, s[i]);
	}
	strbuf_append_char(sb, '"');
}

static void json_member(const char *key, const char *value, struct strbuf *sb)
{
	strbuf_append(sb, "\"%s\":", key);
	json_string(value, strlen(value), sb);
}

static void json_cells(const char *cells, struct strbuf *sb)
{
	const char *cell;
	size_t len;

	strbuf_append_char(sb, '[');
	for (size_t i = 0; next_cell(&cells, &cell, &len); i++) {
		if (i)
			strbuf_append_char(sb, ',');
		json_string(cell, len, sb);
	}
	strbuf_append_char(sb, ']');
}

static void json_lines(const struct line *line, bool are_rows,
		       struct strbuf *sb)
{
	strbuf_append_char(sb, '[');
	for (; line; line = line->next) {
		if (are_rows)
			json_cells(line->cells, sb);
		else
			json_string(line->cells, strlen(line->cells), sb);
		if (line->next)
			strbuf_append_char(sb, ',');
	}
	strbuf_append_char(sb, ']');
}

static void json_table(const struct report_table *t, struct strbuf *sb)
{
	strbuf_append_char(sb, '{');
	json_member("title", t->title, sb);
	strbuf_append_char(sb, ',');
	json_member("policy", t->context_policy, sb);
	strbuf_append(sb, ",\"seed\":%llu,", (unsigned long long)t->seed);
	json_member("profile", t->context_profile, sb);
	strbuf_append_char(sb, ',');
	json_member("version", DMAHEAP_VERSION, sb);
	strbuf_append_char(sb, ',');
	json_member("kind", t->context_kind, sb);
	strbuf_append_string(sb, ",\"columns\":");
	json_cells(t->headings->cells, sb);
	strbuf_append_string(sb, ",\"rows\":");
	json_lines(t->rows, true, sb);
	strbuf_append_string(sb, ",\"notes\":");
	json_lines(t->notes, false, sb);
	strbuf_append_char(sb, '}');
}

int report_render_json(const struct report *report, struct strbuf *sb)
{
	strbuf_append_char(sb, '{');
	json_member("experiment", report->name, sb);
	strbuf_append_char(sb, ',');
	json_member("title", report->title, sb);
	strbuf_append_string(sb, ",\"tables\":[");
	for (const struct report_table *t = report->tables; t; t = t->next) {
		json_table(t, sb);
		if (t->next)
			strbuf_append_char(sb, ',');
	}
	strbuf_append_string(sb, "],");
	json_member("conclusion", report_conclusion(report), sb);
	strbuf_append_string(sb, "}\n");
	return report->failed || strbuf_failed(sb) ||
			       strbuf_failed(&report->conclusion)
		       ? -ENOMEM
		       : 0;
}
