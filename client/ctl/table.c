/* SPDX-License-Identifier: MIT */
#include "ctl/table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define BOLD  "\033[1m"
#define RED   "\033[31m"
#define PLAIN "\033[0m"

struct cell {
	char *text;
	bool marked; /* of a first cell: the row is a warning */
};

struct table {
	const char *const *headings;
	size_t n_columns;
	struct cell *cells; /* row by row */
	size_t n_cells;
	size_t capacity;
	bool incomplete;
};

struct table *table_new(const char *const *headings)
{
	struct table *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->headings = headings;
	while (headings[t->n_columns])
		t->n_columns++;
	return t;
}

static bool grow(struct table *t)
{
	size_t capacity = t->capacity ? 2 * t->capacity : 64;
	struct cell *more = realloc(t->cells, capacity * sizeof(*more));

	if (!more)
		return false;
	t->cells = more;
	t->capacity = capacity;
	return true;
}

void table_cell(struct table *t, const char *format, ...)
{
	char *text = NULL;
	va_list args;
	int n;

	if (!t)
		return;
	va_start(args, format);
	n = vasprintf(&text, format, args);
	va_end(args);
	if (n < 0 || (t->n_cells == t->capacity && !grow(t))) {
		if (n >= 0)
			free(text);
		t->incomplete = true;
		return;
	}
	/* What another process named may hold anything. */
	for (char *p = text; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = '?';
	t->cells[t->n_cells++] = (struct cell){.text = text};
}

void table_mark_row(struct table *t)
{
	size_t row;

	if (!t || t->n_cells == 0)
		return;
	row = (t->n_cells - 1) / t->n_columns;
	t->cells[row * t->n_columns].marked = true;
}

static const char *heading(const struct table *t, size_t column)
{
	return t->headings[column] + (t->headings[column][0] == '>');
}

static size_t width(const struct table *t, size_t column)
{
	size_t w = strlen(heading(t, column));

	for (size_t i = column; i < t->n_cells; i += t->n_columns)
		if (strlen(t->cells[i].text) > w)
			w = strlen(t->cells[i].text);
	return w;
}

static void print_cell(const struct table *t, size_t column, const char *text)
{
	const char *gap = column > 0 ? "  " : "";
	int w = (int)width(t, column);

	if (t->headings[column][0] == '>')
		printf("%s%*s", gap, w, text);
	else if (column + 1 == t->n_columns)
		printf("%s%s", gap, text); /* no blanks at the end */
	else
		printf("%s%-*s", gap, w, text);
}

void table_print(const struct table *t, const struct ctl *ctl)
{
	if (!t) {
		ctl_fail("out of memory");
		return;
	}
	if (ctl->colour)
		fputs(BOLD, stdout);
	for (size_t c = 0; c < t->n_columns; c++)
		print_cell(t, c, heading(t, c));
	puts(ctl->colour ? PLAIN : "");
	for (size_t row = 0; row + t->n_columns <= t->n_cells;
	     row += t->n_columns) {
		bool red = ctl->colour && t->cells[row].marked;

		if (red)
			fputs(RED, stdout);
		for (size_t c = 0; c < t->n_columns; c++)
			print_cell(t, c, t->cells[row + c].text);
		puts(red ? PLAIN : "");
	}
	if (t->incomplete)
		ctl_fail("out of memory: the table is incomplete");
}

struct table *table_free(struct table *t)
{
	if (!t)
		return NULL;
	for (size_t i = 0; i < t->n_cells; i++)
		free(t->cells[i].text);
	free(t->cells);
	free(t);
	return NULL;
}
