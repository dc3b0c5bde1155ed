/* SPDX-License-Identifier: MIT */
#include "mm/snapshot_parse.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define PAGES_MAX      (UINT64_C(1) << 28)
#define PAGEBLOCK_LINE "Page block order"
#define MORE_THAN      100000u /* where the kernel stops counting */

int snapshot_refuse(struct snapshot_reader *r, const char *format, ...)
{
	va_list args;

	(void)snprintf(r->err->file, sizeof(r->err->file), "%s", r->file);
	r->err->line = r->line;
	va_start(args, format);
	(void)vsnprintf(r->err->text, sizeof(r->err->text), format, args);
	va_end(args);
	return SNAPSHOT_E_INVALID;
}

/* Return: 1 with the next line, 0 at the end, -1 after refusing. */
static int next_line(struct snapshot_reader *r)
{
	size_t len = strcspn(r->next, "\n");

	if (*r->next == '\0')
		return 0;
	r->line++;
	if (len >= sizeof(r->text)) {
		(void)snapshot_refuse(r, "the line is longer than %zu bytes",
				      sizeof(r->text) - 1);
		return -1;
	}
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)r->next[i];

		if (c != '\t' && c != '\r' && (c < 0x20 || c > 0x7e)) {
			(void)snapshot_refuse(r, "byte 0x%02x is not text", c);
			return -1;
		}
	}
	memcpy(r->text, r->next, len);
	r->text[len] = '\0';
	r->next += len + (r->next[len] == '\n');
	r->pos = r->text;
	return 1;
}

static void skip_blanks(struct snapshot_reader *r)
{
	while (*r->pos == ' ' || *r->pos == '\t' || *r->pos == '\r')
		r->pos++;
}

/* Skips @word if the line goes on with it. */
static bool skip_word(struct snapshot_reader *r, const char *word)
{
	size_t len = strlen(word);

	skip_blanks(r);
	if (strncmp(r->pos, word, len) != 0)
		return false;
	r->pos += len;
	return true;
}

/* A name up to a blank or comma. */
static bool get_word(struct snapshot_reader *r, char *buf, size_t size)
{
	size_t len;

	skip_blanks(r);
	len = strcspn(r->pos, " \t\r,:");
	if (len == 0 || len >= size)
		return false;
	memcpy(buf, r->pos, len);
	buf[len] = '\0';
	r->pos += len;
	return true;
}

/* Decimal digits. Return: 0 or SNAPSHOT_E_INVALID. */
static int get_number(struct snapshot_reader *r, uint64_t max, uint64_t *ret)
{
	uint64_t n = 0;

	skip_blanks(r);
	if (!isdigit((unsigned char)*r->pos))
		return snapshot_refuse(r,
				       *r->pos ? "a number is needed at "
						 "\"%.20s\""
					       : "a number is missing%.0s",
				       r->pos);
	for (; isdigit((unsigned char)*r->pos); r->pos++) {
		n = n * 10 + (uint64_t)(*r->pos - '0');
		if (n > max)
			return snapshot_refuse(r,
					       "a number is too large; "
					       "allowed: 0 to %llu",
					       (unsigned long long)max);
	}
	if (*r->pos && !strchr(" \t\r,:)", *r->pos))
		return snapshot_refuse(r, "\"%.20s\" is not a number", r->pos);
	*ret = n;
	return 0;
}

static int expect_end(struct snapshot_reader *r)
{
	skip_blanks(r);
	if (*r->pos)
		return snapshot_refuse(r, "unexpected \"%.20s\"", r->pos);
	return 0;
}

static struct snapshot_zone *find_zone(struct snapshot_work *w,
				       const char *name)
{
	for (unsigned int i = 0; i < w->snap->n_zones; i++)
		if (strcmp(w->snap->zone[i].name, name) == 0)
			return &w->snap->zone[i];
	return NULL;
}

/*
 * "Node N, zone NAME": *ret_name is empty for a node that is not wanted.
 * Return: 0 or SNAPSHOT_E_INVALID.
 */
static int get_zone(struct snapshot_reader *r, char *ret_name, size_t size)
{
	uint64_t node;

	if (!skip_word(r, "Node"))
		return snapshot_refuse(r, "\"Node\" is needed at \"%.20s\"",
				       r->pos);
	if (get_number(r, 1023, &node))
		return SNAPSHOT_E_INVALID;
	if (!skip_word(r, ",") || !skip_word(r, "zone") ||
	    !get_word(r, ret_name, size))
		return snapshot_refuse(r, "\"Node N, zone NAME\" is needed");
	if (node != r->options->numa_node) {
		if (!r->options->numa_node_given)
			return snapshot_refuse(r,
					       "NUMA node %llu: several nodes; "
					       "name the one "
					       "to model",
					       (unsigned long long)node);
		ret_name[0] = '\0';
	}
	return 0;
}

static int get_counts(struct snapshot_reader *r, uint64_t *counts)
{
	for (unsigned int o = 0; o < SNAPSHOT_ORDERS; o++) {
		if (get_number(r, PAGES_MAX >> o, &counts[o]))
			return SNAPSHOT_E_INVALID;
	}
	return expect_end(r);
}

static int add_zone(struct snapshot_reader *r, struct snapshot_work *w,
		    const char *name)
{
	static const char *const unusable[] = {"Movable", "HighMem", "Device"};
	unsigned int n = w->snap->n_zones;

	for (size_t i = 0; i < ARRAY_SIZE(unusable); i++)
		if (strcmp(name, unusable[i]) == 0)
			return snapshot_refuse(r,
					       "zone %s is not modelled; "
					       "remove "
					       "its line",
					       name);
	if (find_zone(w, name))
		return snapshot_refuse(r, "zone %s is there twice", name);
	if (n == SNAPSHOT_ZONES_MAX)
		return snapshot_refuse(r, "more than %u zones",
				       SNAPSHOT_ZONES_MAX);
	(void)snprintf(w->snap->zone[n].name, sizeof(w->snap->zone[n].name),
		       "%s", name);
	w->snap->n_zones++;
	return 0;
}

int snapshot_read_buddyinfo(struct snapshot_reader *r, struct snapshot_work *w)
{
	char name[16];
	int more;

	while ((more = next_line(r)) > 0) {
		uint64_t ignored[SNAPSHOT_ORDERS];

		skip_blanks(r);
		if (*r->pos == '\0')
			continue;
		if (get_zone(r, name, sizeof(name)))
			return SNAPSHOT_E_INVALID;
		if (name[0] && add_zone(r, w, name))
			return SNAPSHOT_E_INVALID;
		if (get_counts(r, name[0] ? w->buddyinfo[w->snap->n_zones - 1]
					  : ignored))
			return SNAPSHOT_E_INVALID;
	}
	if (more < 0)
		return SNAPSHOT_E_INVALID;
	if (w->snap->n_zones == 0) {
		r->line = 0;
		return snapshot_refuse(r, "no zone of NUMA node %u",
				       r->options->numa_node);
	}
	return 0;
}

/* The model's type; what it leaves out counts as the nearest. */
static int parse_type(const char *name)
{
	static const struct {
		const char *name;
		int type;
	} types[] = {
		{"Unmovable", 0},  {"Movable", 1}, {"Reclaimable", 2},
		{"HighAtomic", 0}, {"CMA", 1},     {"Isolate", 1},
	};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (strcmp(types[i].name, name) == 0)
			return types[i].type;
	return -1;
}

/* "zone X, type Y c0 .. c10", some of them ">100000". */
static int read_type_counts(struct snapshot_reader *r, struct snapshot_work *w,
			    struct snapshot_zone *zone)
{
	uint64_t index = (uint64_t)(zone - w->snap->zone);
	char name[16];
	int type;

	if (!get_word(r, name, sizeof(name)) || (type = parse_type(name)) < 0)
		return snapshot_refuse(r, "unknown migrate type");
	for (unsigned int o = 0; o < SNAPSHOT_ORDERS; o++) {
		uint64_t n;

		if (skip_word(r, ">"))
			w->more[index][type][o] = true;
		if (get_number(r, PAGES_MAX >> o, &n))
			return SNAPSHOT_E_INVALID;
		zone->free[type][o] += n;
	}
	w->typed[index] = true;
	return expect_end(r);
}

/* "Number of blocks type Unmovable Movable ...". */
static int read_block_header(struct snapshot_reader *r, int *columns,
			     unsigned int *ret_n)
{
	char name[16];
	unsigned int n = 0;

	while (get_word(r, name, sizeof(name))) {
		int type = parse_type(name);

		if (type < 0 || n == 8)
			return snapshot_refuse(r, "unknown migrate type \"%s\"",
					       name);
		columns[n++] = type;
	}
	*ret_n = n;
	return expect_end(r);
}

static int read_block_counts(struct snapshot_reader *r,
			     struct snapshot_zone *zone, const int *columns,
			     unsigned int n_columns)
{
	for (unsigned int i = 0; i < n_columns; i++) {
		uint64_t n;

		if (get_number(r, PAGES_MAX >> 9, &n))
			return SNAPSHOT_E_INVALID;
		zone->pageblocks[columns[i]] += n;
	}
	zone->has_types = true;
	return expect_end(r);
}

int snapshot_read_pagetypeinfo(struct snapshot_reader *r,
			       struct snapshot_work *w)
{
	int columns[8], more;
	unsigned int n_columns = 0;
	char name[16];

	while ((more = next_line(r)) > 0) {
		struct snapshot_zone *zone;
		uint64_t order;

		if (skip_word(r, PAGEBLOCK_LINE ":")) {
			if (get_number(r, 64, &order))
				return SNAPSHOT_E_INVALID;
			if (order != 9)
				return snapshot_refuse(
					r,
					"pageblocks of order %llu; modelled "
					"are those of order 9",
					(unsigned long long)order);
			continue;
		}
		if (skip_word(r, "Number of blocks type")) {
			if (read_block_header(r, columns, &n_columns))
				return SNAPSHOT_E_INVALID;
			continue;
		}
		skip_blanks(r);
		if (strncmp(r->pos, "Node", 4) != 0) {
			if (*r->pos == '\0' ||
			    strncmp(r->pos, "Pages per", 9) == 0 ||
			    strncmp(r->pos, "Free pages", 10) == 0)
				continue;
			return snapshot_refuse(r, "unexpected \"%.20s\"",
					       r->pos);
		}
		if (get_zone(r, name, sizeof(name)))
			return SNAPSHOT_E_INVALID;
		if (!name[0])
			continue;
		zone = find_zone(w, name);
		if (!zone)
			return snapshot_refuse(r, "zone %s is not in buddyinfo",
					       name);
		if (skip_word(r, ",")) {
			if (!skip_word(r, "type"))
				return snapshot_refuse(r,
						       "\"type\" is needed at "
						       "\"%.20s\"",
						       r->pos);
			if (read_type_counts(r, w, zone))
				return SNAPSHOT_E_INVALID;
		} else if (read_block_counts(r, zone, columns, n_columns)) {
			return SNAPSHOT_E_INVALID;
		}
	}
	return more < 0 ? SNAPSHOT_E_INVALID : 0;
}

int snapshot_read_zoneinfo(struct snapshot_reader *r, struct snapshot_work *w)
{
	struct snapshot_zone *zone = NULL;
	char name[16];
	int more;

	while ((more = next_line(r)) > 0) {
		uint64_t index;

		skip_blanks(r);
		if (strncmp(r->pos, "Node", 4) == 0) {
			if (get_zone(r, name, sizeof(name)))
				return SNAPSHOT_E_INVALID;
			/* empty zones are not in buddyinfo */
			zone = name[0] ? find_zone(w, name) : NULL;
			continue;
		}
		if (!zone)
			continue;
		index = (uint64_t)(zone - w->snap->zone);
		if (skip_word(r, "count: ")) {
			uint64_t n;

			if (get_number(r, PAGES_MAX, &n))
				return SNAPSHOT_E_INVALID;
			w->pcp[index] += n;
			w->has_pcp[index] = true;
		}
		if (skip_word(r, "spanned ") &&
		    get_number(r, PAGES_MAX, &w->spanned[index]))
			return SNAPSHOT_E_INVALID;
		if (skip_word(r, "present ") &&
		    get_number(r, PAGES_MAX, &w->present[index]))
			return SNAPSHOT_E_INVALID;
		if (skip_word(r, "managed ")) {
			if (get_number(r, PAGES_MAX, &w->managed[index]))
				return SNAPSHOT_E_INVALID;
			w->has_managed[index] = true;
		}
	}
	return more < 0 ? SNAPSHOT_E_INVALID : 0;
}

/* Values of meminfo, in pages. */
struct meminfo {
	uint64_t total, free, available, buffers, cached, active_file;
	uint64_t inactive_file, mlocked, dirty, writeback, anon, shmem, slab;
};

static void digest_meminfo(struct snapshot *snap, const struct meminfo *m)
{
	const uint64_t none = SNAPSHOT_UNKNOWN;
	uint64_t dirty = (m->dirty == none ? 0 : m->dirty) +
			 (m->writeback == none ? 0 : m->writeback);
	uint64_t mlocked = m->mlocked == none ? 0 : m->mlocked;
	uint64_t cache = (m->cached == none ? 0 : m->cached) +
			 (m->buffers == none ? 0 : m->buffers);
	uint64_t shmem = m->shmem == none ? 0 : MIN(m->shmem, cache);
	uint64_t file = cache - shmem;

	/* no shared memory named, but nothing counts as available beyond what
	 * is free: a root in memory (ramfs), which stays where it is */
	if (m->shmem == none && m->available != none && m->free != none &&
	    m->available <= m->free)
		file = 0;
	snap->total_pages = m->total;
	snap->active_pages = m->active_file;
	if (m->inactive_file != none)
		file = m->inactive_file +
		       (m->active_file == none ? 0 : m->active_file);
	if (m->active_file != none)
		file -= MIN(file, m->active_file);
	dirty = MIN(dirty, file);
	snap->dirty_pages = dirty;
	snap->file_pages = file - dirty;
	snap->mlocked_pages = mlocked;
	snap->anon_pages = m->anon == none
				   ? none
				   : m->anon - MIN(m->anon, mlocked) + shmem;
	snap->slab_pages = m->slab;
}

int snapshot_read_meminfo(struct snapshot_reader *r, struct snapshot_work *w)
{
	struct meminfo m;
	const struct {
		const char *name;
		uint64_t *value;
	} fields[] = {
		{"MemTotal", &m.total},
		{"MemFree", &m.free},
		{"MemAvailable", &m.available},
		{"Buffers", &m.buffers},
		{"Cached", &m.cached},
		{"Active(file)", &m.active_file},
		{"Inactive(file)", &m.inactive_file},
		{"Mlocked", &m.mlocked},
		{"Dirty", &m.dirty},
		{"Writeback", &m.writeback},
		{"AnonPages", &m.anon},
		{"Shmem", &m.shmem},
		{"SReclaimable", &m.slab},
	};
	uint64_t page_kb = w->snap->page_size_bytes / 1024, kb;
	char name[40];
	int more;

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		*fields[i].value = SNAPSHOT_UNKNOWN;
	while ((more = next_line(r)) > 0) {
		skip_blanks(r);
		if (*r->pos == '\0')
			continue;
		if (!get_word(r, name, sizeof(name)) || !skip_word(r, ":"))
			return snapshot_refuse(r, "\"Name: value\" is needed");
		if (get_number(r, UINT64_C(1) << 42, &kb))
			return SNAPSHOT_E_INVALID;
		for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
			if (strcmp(fields[i].name, name) == 0)
				*fields[i].value = kb / page_kb;
	}
	if (more < 0)
		return SNAPSHOT_E_INVALID;
	digest_meminfo(w->snap, &m);
	return 0;
}

int snapshot_read_vmstat(struct snapshot_reader *r, struct snapshot_work *w)
{
	char name[64];
	uint64_t value;
	int more;

	/* counters begin at 0 in a new node: of the old ones only this matters
	 */
	while ((more = next_line(r)) > 0) {
		skip_blanks(r);
		if (*r->pos == '\0')
			continue;
		if (!get_word(r, name, sizeof(name)))
			return snapshot_refuse(r, "\"name value\" is needed");
		if (get_number(r, UINT64_MAX / 10 - 1, &value))
			return SNAPSHOT_E_INVALID;
		if (strcmp(name, "compact_stall") == 0 && value > 0)
			w->snap->has_compacted = true;
	}
	return more < 0 ? SNAPSHOT_E_INVALID : 0;
}
