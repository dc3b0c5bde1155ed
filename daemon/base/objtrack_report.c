/* SPDX-License-Identifier: MIT */
#include "base/objtrack_internal.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define SITES_MAX 1024u

static struct {
	pthread_mutex_t lock;
	const struct objtrack_site *site[SITES_MAX];
	uint16_t n; /* the first is number 1 */
} sites = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const char *const misuse_names[] = {
	[OBJTRACK_DOUBLE_INIT] = "double init",
	[OBJTRACK_UNKNOWN_OBJECT] = "use of an unknown object",
	[OBJTRACK_DOUBLE_FREE] = "double free",
	[OBJTRACK_USE_AFTER_FREE] = "use after free",
	[OBJTRACK_USE_AFTER_DESTROY] = "use after destroy",
	[OBJTRACK_FREE_OF_ACTIVE] = "free of an active object",
	[OBJTRACK_WRONG_STATE] = "wrong state",
	[OBJTRACK_LEAK] = "leak",
	[OBJTRACK_OUT_OF_MEMORY] = "out of memory, tracking is off now",
};

static const char *const op_names[] = {
	[OBJTRACK_OP_INIT] = "init",
	[OBJTRACK_OP_ACTIVATE] = "activate",
	[OBJTRACK_OP_USE] = "use",
	[OBJTRACK_OP_DEACTIVATE] = "deactivate",
	[OBJTRACK_OP_DESTROY] = "destroy",
	[OBJTRACK_OP_FREE] = "free",
};

const char *objtrack_misuse_name(enum objtrack_misuse misuse)
{
	return misuse_names[misuse];
}

static uint16_t register_site(struct objtrack_site *site)
{
	uint16_t number;

	pthread_mutex_lock(&sites.lock);
	number = atomic_load(&site->number);
	if (number == 0 && sites.n < SITES_MAX) {
		sites.site[sites.n++] = site;
		number = sites.n;
		atomic_store(&site->number, number);
	}
	pthread_mutex_unlock(&sites.lock);
	return number;
}

uint16_t objtrack_site_number(struct objtrack_site *site)
{
	uint16_t number =
		atomic_load_explicit(&site->number, memory_order_relaxed);

	return number ? number : register_site(site);
}

void objtrack_render_step(struct strbuf *sb, struct objtrack_step step)
{
	const struct objtrack_site *site;
	const char *base;

	strbuf_append_string(sb, op_names[step.op]);
	if (step.site == 0) {
		strbuf_append(sb, " by worker %u", step.worker);
		return;
	}
	pthread_mutex_lock(&sites.lock);
	site = sites.site[step.site - 1];
	pthread_mutex_unlock(&sites.lock);
	base = strrchr(site->file, '/');
	strbuf_append(sb, " in %s() at %s:%d by worker %u", site->function,
		      base ? base + 1 : site->file, site->line, step.worker);
}

void objtrack_render_history(struct strbuf *sb, const struct tracked *t)
{
	unsigned int n = MIN(t->n_steps, OBJTRACK_HISTORY);

	if (n == 0)
		strbuf_append_string(sb, "never seen before");
	if (t->n_steps > n)
		strbuf_append(sb, "%u earlier steps, ", t->n_steps - n);
	for (unsigned int i = t->n_steps - n; i < t->n_steps; i++) {
		objtrack_render_step(sb, t->step[i % OBJTRACK_HISTORY]);
		if (i + 1u < t->n_steps)
			strbuf_append_string(sb, ", ");
	}
}
