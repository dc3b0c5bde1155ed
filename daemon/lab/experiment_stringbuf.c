/* SPDX-License-Identifier: MIT */
#include "lab/experiment_stringbuf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/slab_class.h"
#include "base/strbuf.h"
#include "lab/median.h"

/* tests/data/stringbuf.tsv */
#define SOURCE_CLASSES_NS    1491
#define SOURCE_PLAIN_NS      423
#define SOURCE_PLAIN_REALLOC 1000
#define SOURCE_PLAIN_COPIED  500000

#define ROUNDS_MAX 15u

/* The growth of strbuf when it is not exact. */
#define FIRST_CAP 64u

/* A memory that counts what a string does with it. */
struct counted {
	enum stringbuf_memory kind;
	struct slab_classes *classes;
	uint64_t n_resized;
	uint64_t bytes_copied;
};

static void *resize_plain(void *old, size_t old_bytes, size_t new_bytes)
{
	void *p = malloc(new_bytes);

	if (p && old) {
		memcpy(p, old, MIN(old_bytes, new_bytes));
		free(old);
	}
	return p;
}

static void release(struct counted *c, void *old, size_t old_bytes)
{
	if (c->kind == STRINGBUF_CLASSES)
		(void)slab_classes_resize(c->classes, old, old_bytes, 0);
	else
		free(old);
}

static void *counted_resize(void *ctx, void *old, size_t old_bytes,
			    size_t new_bytes)
{
	struct counted *c = ctx;
	uintptr_t before = (uintptr_t)old;
	void *p;

	if (new_bytes == 0) {
		release(c, old, old_bytes);
		return NULL;
	}
	c->n_resized++;
	if (c->kind == STRINGBUF_GLIBC)
		p = realloc(old, new_bytes);
	else if (c->kind == STRINGBUF_CLASSES)
		p = slab_classes_resize(c->classes, old, old_bytes, new_bytes);
	else
		p = resize_plain(old, old_bytes, new_bytes);
	if (before && (uintptr_t)p != before)
		c->bytes_copied += MIN(old_bytes, new_bytes);
	return p;
}

static size_t next_cap(size_t cap, size_t need, bool exact)
{
	if (exact)
		return need;
	return MAX(cap < FIRST_CAP ? FIRST_CAP : cap + cap / 2, need);
}

/* Each builds one string of @n bytes. Return: false when memory ran out. */

static bool build_append(struct counted *c, bool exact, unsigned int n)
{
	const struct strbuf_memory memory = {counted_resize, c, exact};
	struct strbuf sb = {.memory = &memory};
	bool ok;

	for (unsigned int i = 0; i < n; i++)
		strbuf_append(&sb, "%c", 'x');
	ok = !strbuf_failed(&sb);
	strbuf_fini(&sb);
	return ok;
}

static bool build_no_copy(struct counted *c, bool exact, unsigned int n)
{
	size_t cap = 0;
	char *s = NULL;

	for (size_t len = 0; len < n; len++) {
		if (len + 2 > cap) {
			size_t new_cap = next_cap(cap, len + 2, exact);
			char *p = counted_resize(c, NULL, 0, new_cap);

			if (s)
				release(c, s, cap);
			s = p;
			if (!s)
				return false;
			cap = new_cap;
		}
		s[len] = 'x';
	}
	release(c, s, cap);
	return true;
}

static bool build_realloc(struct counted *c, bool exact, unsigned int n)
{
	size_t cap = 0;
	char *s = NULL;

	for (size_t len = 0; len < n; len++) {
		if (len + 2 > cap) {
			size_t new_cap = next_cap(cap, len + 2, exact);
			char *p = counted_resize(c, s, cap, new_cap);

			if (!p) {
				release(c, s, cap);
				return false;
			}
			s = p;
			cap = new_cap;
		}
		s[len] = 'x';
	}
	release(c, s, cap);
	return true;
}

static bool (*const builders[])(struct counted *, bool, unsigned int) = {
	[STRINGBUF_APPEND] = build_append,
	[STRINGBUF_NO_COPY] = build_no_copy,
	[STRINGBUF_REALLOC] = build_realloc,
};

static double median_per_append(uint64_t *ns,
				const struct stringbuf_params *params)
{
	double appends = (double)params->n_strings * params->n_appends;

	return (double)median_u64(ns, params->n_rounds) / appends;
}

/* Every loop's times, round by round. */
struct times {
	uint64_t sprintf_ns[ROUNDS_MAX];
	uint64_t ns[STRINGBUF_MEMORIES][2][STRINGBUF_LOOPS][ROUNDS_MAX];
};

/* One round of one loop. */
static int measure_cell(const struct stringbuf_params *params,
			struct counted *c, bool exact, enum stringbuf_loop loop,
			struct stringbuf_cell *ret, uint64_t *ret_ns)
{
	double n_strings = (double)params->n_strings * params->n_rounds;
	uint64_t start = clock_thread_cpu_ns();

	for (unsigned int i = 0; i < params->n_strings; i++)
		if (!builders[loop](c, exact, params->n_appends))
			return -ENOMEM;
	*ret_ns = clock_thread_cpu_ns() - start;
	ret->reallocations += (double)c->n_resized / n_strings;
	ret->bytes_copied += (double)c->bytes_copied / n_strings;
	return 0;
}

static uint64_t measure_sprintf(const struct stringbuf_params *params,
				char *buf)
{
	uint64_t start = clock_thread_cpu_ns();

	for (unsigned int i = 0; i < params->n_strings; i++)
		for (size_t len = 0; len < params->n_appends; len++)
			(void)snprintf(buf + len, params->n_appends + 1 - len,
				       "%c", 'x');
	return clock_thread_cpu_ns() - start;
}

static int measure_round(const struct stringbuf_params *params,
			 struct slab_classes *classes, char *buf,
			 unsigned int round, struct times *times,
			 struct stringbuf_result *result)
{
	times->sprintf_ns[round] = measure_sprintf(params, buf);
	for (unsigned int i = 0; i < STRINGBUF_MEMORIES * 2 * STRINGBUF_LOOPS;
	     i++) {
		unsigned int memory = i / (2 * STRINGBUF_LOOPS);
		unsigned int exact = i / STRINGBUF_LOOPS % 2;
		unsigned int loop = i % STRINGBUF_LOOPS;
		struct counted c = {.kind = memory, .classes = classes};
		int r = measure_cell(params, &c, exact, loop,
				     &result->cell[memory][exact][loop],
				     &times->ns[memory][exact][loop][round]);

		if (r)
			return r;
	}
	return 0;
}

static void take_medians(struct times *times, struct stringbuf_result *result)
{
	const struct stringbuf_params *params = &result->params;

	result->sprintf_ns = median_per_append(times->sprintf_ns, params);
	for (unsigned int m = 0; m < STRINGBUF_MEMORIES; m++)
		for (unsigned int e = 0; e < 2; e++)
			for (unsigned int l = 0; l < STRINGBUF_LOOPS; l++)
				result->cell[m][e][l].ns_per_append =
					median_per_append(times->ns[m][e][l],
							  params);
}

/* All loops in each round, so that what else the machine does strikes all. */
int stringbuf_measure(const struct stringbuf_params *params,
		      struct stringbuf_result *ret)
{
	_cleanup_(slab_classes_freep) struct slab_classes *classes = NULL;
	const struct slab_params slab = {.debug = SLAB_DEBUG_OFF};
	struct stringbuf_result result = {.params = *params};
	struct times times;
	char *buf;
	int r;

	assert(params->n_rounds > 0 && params->n_rounds <= ROUNDS_MAX);

	r = slab_classes_new(&classes, &slab);
	if (r)
		return r;
	buf = malloc(params->n_appends + 1);
	if (!buf)
		return -ENOMEM;
	for (unsigned int round = 0; r == 0 && round < params->n_rounds;
	     round++)
		r = measure_round(params, classes, buf, round, &times, &result);
	free(buf);
	if (r)
		return r;
	take_medians(&times, &result);
	*ret = result;
	return 0;
}

static const char *const memory_names[] = {
	[STRINGBUF_GLIBC] = "glibc realloc",
	[STRINGBUF_CLASSES] = "slab size classes",
	[STRINGBUF_PLAIN] = "no size classes",
};

static const char *const loop_names[] = {
	[STRINGBUF_APPEND] = "append",
	[STRINGBUF_NO_COPY] = "reallocation without copying",
	[STRINGBUF_REALLOC] = "plain krealloc",
};

static void report_cell(const struct stringbuf_result *r, unsigned int memory,
			unsigned int exact, unsigned int loop,
			struct report *report)
{
	const struct stringbuf_cell *c = &r->cell[memory][exact][loop];
	char source[64] = "";

	if (exact && loop == STRINGBUF_APPEND && memory == STRINGBUF_CLASSES)
		(void)snprintf(source, sizeof(source), "%d ns (slab or slub)",
			       SOURCE_CLASSES_NS);
	else if (exact && loop == STRINGBUF_APPEND && memory == STRINGBUF_PLAIN)
		(void)snprintf(source, sizeof(source), "%d ns, %d, %d (slob)",
			       SOURCE_PLAIN_NS, SOURCE_PLAIN_REALLOC,
			       SOURCE_PLAIN_COPIED);
	report_row(report, "%s|%s|%s|%.1f|%.0f|%.0f|%s", memory_names[memory],
		   exact ? "exact" : "geometric", loop_names[loop],
		   c->ns_per_append, c->reallocations, c->bytes_copied, source);
}

/* Times within a tenth of each other do not tell. */
static const char *verdict(double with_copying, double without)
{
	if (with_copying < without / 1.1)
		return "wins";
	return with_copying > without * 1.1 ? "loses"
					    : "neither wins nor loses";
}

static void conclude(const struct stringbuf_result *r, struct report *report)
{
	const struct stringbuf_cell(*cells)[2][STRINGBUF_LOOPS] = r->cell;
	double classes =
		cells[STRINGBUF_CLASSES][1][STRINGBUF_APPEND].ns_per_append;
	const struct stringbuf_cell *plain =
		&cells[STRINGBUF_PLAIN][1][STRINGBUF_APPEND];
	double copying =
		cells[STRINGBUF_PLAIN][1][STRINGBUF_REALLOC].ns_per_append -
		cells[STRINGBUF_PLAIN][1][STRINGBUF_NO_COPY].ns_per_append;
	double staying =
		cells[STRINGBUF_CLASSES][1][STRINGBUF_REALLOC].ns_per_append;
	const struct stringbuf_cell *geometric =
		&cells[STRINGBUF_GLIBC][0][STRINGBUF_APPEND];

	copying = MAX(copying, 0.0);
	report_conclude(
		report,
		"Exact growth: an append takes %.0f ns with size classes and "
		"%.0f ns without, where the string moves %.0f times and %.0f "
		"bytes are copied; here copying every time %s (in the source "
		"it won, %d against %d ns).",
		classes, plain->ns_per_append, plain->reallocations,
		plain->bytes_copied, verdict(plain->ns_per_append, classes),
		SOURCE_PLAIN_NS, SOURCE_CLASSES_NS);
	report_conclude(
		report,
		"The copying itself is %.1f ns of an append, a resize that "
		"finds it may stay %.1f ns: copying every time can win "
		"wherever the allocator's own work per call costs more than "
		"the copy saves, %s.",
		copying, staying,
		staying > copying ? "as it does here"
				  : "which it does not here");
	report_conclude(
		report,
		"Geometric growth ends the question: %.0f reallocations per "
		"string instead of %.0f, %.0f ns per append, of which bare "
		"sprintf is %.0f.",
		geometric->reallocations, plain->reallocations,
		geometric->ns_per_append, r->sprintf_ns);
}

void stringbuf_report(const struct stringbuf_result *r, struct report *report)
{
	const struct report_context context = {
		.policy = "none",
		.seed = r->params.seed,
		.profile = "this host",
		.kind = "ns of CPU time measured, reallocations and bytes "
			"counted",
	};
	char title[128];

	(void)snprintf(title, sizeof(title),
		       "%u strings, each built by %u one-byte appends; median "
		       "of %u interleaved rounds",
		       r->params.n_strings, r->params.n_appends,
		       r->params.n_rounds);
	report_table(report, title, &context,
		     "memory|growth|loop|ns per append|reallocations per "
		     "string|bytes copied per string|source");
	report_row(report, "a fixed array|none|bare sprintf|%.1f|0|0|",
		   r->sprintf_ns);
	for (unsigned int memory = 0; memory < STRINGBUF_MEMORIES; memory++)
		for (unsigned int exact = 0; exact < 2; exact++)
			for (unsigned int loop = 0; loop < STRINGBUF_LOOPS;
			     loop++)
				report_cell(r, memory, exact, loop, report);
	conclude(r, report);
}

static int run(const struct experiment_options *options, struct report *report,
	       struct strbuf *why)
{
	const struct stringbuf_params params = {.seed = options->seed,
						.n_strings = 200,
						.n_appends = 1000,
						.n_rounds = 5};
	struct stringbuf_result result;
	int r = stringbuf_measure(&params, &result);

	if (r) {
		strbuf_append(why, "no memory");
		return r;
	}
	stringbuf_report(&result, report);
	return 0;
}

const struct experiment experiment_stringbuf = {
	.name = "stringbuf",
	.title = "a growing string that needs no error checks in between "
		 "(2007)",
	.run = run,
};
