/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What the files of the object tracker share. Nobody else includes this.
 *
 * Units:     as in base/objtrack.h.
 * Ownership: records belong to the tracker's pool.
 * Threads:   a record is read and written under its shard's lock; sites may be
 *            numbered and rendered by any thread.
 */

#include "base/objtrack.h"
#include "base/strbuf.h"

struct objtrack_step {
	uint16_t site; /* number; 0: not known */
	uint8_t worker;
	uint8_t op;
};

struct tracked {
	struct record link; /* in the bucket */
	uint64_t key;
	uint8_t kind;
	uint8_t state;
	uint8_t n_steps; /* ever, at most 255; the last OBJTRACK_HISTORY kept */
	uint8_t reserved;
	struct objtrack_step step[OBJTRACK_HISTORY];
};
_Static_assert(sizeof(struct tracked) == OBJTRACK_RECORD_BYTES,
	       "what a record costs is documented");

/* Return: the number of @site, given to it now if it had none; 0 when there are
 * too many sites. */
uint16_t objtrack_site_number(struct objtrack_site *site);

/* "free in f() at file.c:12 by worker 0" */
void objtrack_render_step(struct strbuf *sb, struct objtrack_step step);

/* The steps of an object, oldest first. */
void objtrack_render_history(struct strbuf *sb, const struct tracked *t);
