/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "conf/files.h"
#include "lab/cmd.h"
#include "lab/output.h"

/*
 * Results of several runs side by side: each file of `run --tsv`, or a source's
 * own table of the same columns, is a column; each condition, policy and set a
 * line. Where n begins again, another table of the same condition does, which
 * is a line of its own.
 */

#define MERGE_FILES_MAX 8u
#define MERGE_BYTES_MAX (64u << 20)

struct line {
	char condition[LAB_NAME_BYTES];
	char policy[LAB_NAME_BYTES];
	uint32_t set;
	uint32_t part; /* 2: the second table of that condition, and so on */
	struct lab_table cells[MERGE_FILES_MAX]; /* only rows are used */
};

struct merge {
	struct line *lines;
	size_t n_lines;
};

static struct line *find_line(struct merge *merge, const char *condition,
			      const char *policy, uint32_t set, uint32_t part)
{
	struct line *lines, *line;

	for (size_t i = 0; i < merge->n_lines; i++) {
		line = &merge->lines[i];
		if (line->set == set && line->part == part &&
		    !strcmp(line->condition, condition) &&
		    !strcmp(line->policy, policy))
			return line;
	}
	lines = reallocarray(merge->lines, merge->n_lines + 1, sizeof(*lines));
	if (!lines)
		return NULL;
	merge->lines = lines;
	line = &lines[merge->n_lines++];
	*line = (struct line){.set = set, .part = part};
	(void)snprintf(line->condition, sizeof(line->condition), "%s",
		       condition);
	(void)snprintf(line->policy, sizeof(line->policy), "%s", policy);
	return line;
}

/* Return: the line that row @n of a file belongs to, NULL: no memory. */
static struct line *line_for(struct merge *merge, unsigned int column,
			     const char *condition, const char *policy,
			     uint32_t set, uint32_t n)
{
	struct line *line = NULL;
	uint32_t part = 1;

	for (size_t i = 0; i < merge->n_lines; i++) {
		struct line *other = &merge->lines[i];

		if (other->cells[column].n_rows && other->set == set &&
		    !strcmp(other->condition, condition) &&
		    !strcmp(other->policy, policy)) {
			line = other; /* the last one that the file has */
			part = line->part;
		}
	}
	if (line &&
	    line->cells[column].rows[line->cells[column].n_rows - 1].n >= n)
		part++;
	return find_line(merge, condition, policy, set, part);
}

enum {
	COLUMN_CONDITION,
	COLUMN_POLICY,
	COLUMN_SET,
	COLUMN_N,
	COLUMN_LATENCY,
	COLUMN_8,
	COLUMN_4,
	COLUMN_0,
	COLUMNS
};

/* Return: the number of fields, at most COLUMNS; others are not looked at. */
static unsigned int split(char *text, char *fields[COLUMNS])
{
	unsigned int n = 0;

	while (n < COLUMNS) {
		char *end = text + strcspn(text, "\t");
		bool last = !*end;

		*end = '\0';
		fields[n++] = text;
		if (last)
			break;
		text = end + 1;
	}
	return n;
}

static int add_row(struct merge *merge, unsigned int column, char *text,
		   const char *file, unsigned int number)
{
	char *fields[COLUMNS];
	uint64_t values[COLUMNS] = {0};
	struct lab_row *row;
	struct line *line;

	if (split(text, fields) != COLUMNS)
		return lab_fail("%s:%u: not %u columns separated by tabs: "
				"condition policy set n latency_us order8 "
				"order4 order0",
				file, number, COLUMNS);
	for (unsigned int i = COLUMN_SET; i < COLUMNS; i++) {
		if (parse_u64(fields[i], &values[i]) ||
		    values[i] > UINT64_MAX / 1000 ||
		    (i != COLUMN_LATENCY && values[i] > UINT32_MAX))
			return lab_fail("%s:%u: column %u: \"%.32s\" is no "
					"number",
					file, number, i + 1, fields[i]);
	}
	line = line_for(merge, column, fields[COLUMN_CONDITION],
			fields[COLUMN_POLICY], (uint32_t)values[COLUMN_SET],
			(uint32_t)values[COLUMN_N]);
	row = line ? lab_table_add(&line->cells[column]) : NULL;
	if (!row)
		return lab_fail("%s", strerror(ENOMEM));
	row->n = (uint32_t)values[COLUMN_N];
	row->latency_ns = values[COLUMN_LATENCY] * 1000;
	row->composition[8] = (uint32_t)values[COLUMN_8];
	row->composition[4] = (uint32_t)values[COLUMN_4];
	row->composition[0] = (uint32_t)values[COLUMN_0];
	return LAB_EXIT_OK;
}

static int read_file(struct merge *merge, unsigned int column, const char *file)
{
	unsigned int number = 0;
	char *text = NULL;
	int r = conf_read_file(file, MERGE_BYTES_MAX, &text, NULL);

	if (r)
		return lab_fail("%s: cannot be read: %s", file, strerror(-r));
	for (char *at = text; *at && !r;) {
		size_t len = strcspn(at, "\n");
		char *next = at + len + (at[len] == '\n');

		at[len] = '\0';
		number++;
		if (*at && *at != '#')
			r = add_row(merge, column, at, file, number);
		at = next;
	}
	free(text);
	return r;
}

/* A file without the line has nothing there, which is not 0. */
static void merge_cell(const struct lab_summary *sum, struct strbuf *out)
{
	if (sum->n == 0) {
		strbuf_append_string(out, "\t-\t-\t-\t-\t-\t-\t-");
		return;
	}
	strbuf_append(out,
		      "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64
		      "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64,
		      sum->n, ns_to_us(sum->median_ns), ns_to_us(sum->min_ns),
		      ns_to_us(sum->max_ns), sum->blocks[8], sum->blocks[4],
		      sum->blocks[0]);
}

static int merge_render(const struct merge *merge, char **files,
			unsigned int n_files, struct strbuf *out)
{
	for (unsigned int i = 0; i < n_files; i++)
		strbuf_append(out, "# file %u: %s\n", i + 1, files[i]);
	strbuf_append(out, "# condition\tpolicy\tset");
	for (unsigned int i = 1; i <= n_files; i++)
		strbuf_append(out,
			      "\tn.%u\tmedian_us.%u\tmin_us.%u\tmax_us.%u"
			      "\torder8.%u\torder4.%u\torder0.%u",
			      i, i, i, i, i, i, i);
	strbuf_append_char(out, '\n');
	for (size_t i = 0; i < merge->n_lines; i++) {
		const struct line *line = &merge->lines[i];

		strbuf_append(out, "%s", line->condition);
		if (line->part > 1)
			strbuf_append(out, "#%" PRIu32, line->part);
		strbuf_append(out, "\t%s\t%" PRIu32, line->policy, line->set);
		for (unsigned int f = 0; f < n_files; f++) {
			struct lab_summary sum;
			int r = lab_summarise(&line->cells[f], 0, &sum);

			if (r)
				return r;
			merge_cell(&sum, out);
		}
		strbuf_append_char(out, '\n');
	}
	return strbuf_failed(out) ? -ENOMEM : 0;
}

static void merge_fini(struct merge *merge)
{
	for (size_t i = 0; i < merge->n_lines; i++) {
		for (unsigned int f = 0; f < MERGE_FILES_MAX; f++)
			lab_table_fini(&merge->lines[i].cells[f]);
	}
	free(merge->lines);
}

int cmd_merge(int argc, char **argv)
{
	_cleanup_(strbuf_finip) struct strbuf out = STRBUF_INIT;
	unsigned int n_files = (unsigned int)argc - 1;
	struct merge merge = {0};
	int r = LAB_EXIT_OK;

	if (argc < 2 || n_files > MERGE_FILES_MAX)
		return lab_usage("merge needs 1 to %u files", MERGE_FILES_MAX);
	for (unsigned int i = 0; i < n_files && !r; i++)
		r = read_file(&merge, i, argv[i + 1]);
	if (!r && merge_render(&merge, argv + 1, n_files, &out))
		r = lab_fail("%s", strerror(ENOMEM));
	merge_fini(&merge);
	return r ? r : lab_write(NULL, &out);
}
