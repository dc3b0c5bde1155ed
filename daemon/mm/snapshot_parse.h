/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Readers of the single files of a snapshot. Each fills in what its file says
 * and refuses what is out of place.
 *
 * Units:     as snapshot.h.
 * Ownership: nothing is kept.
 * Threads:   no state.
 */

#include "mm/snapshot.h"

/* A text, read line by line. */
struct snapshot_reader {
	const char *file;
	const char *next;
	unsigned int line;
	char text[512];  /* the line, without its end */
	const char *pos; /* where in it scanning goes on */
	const struct snapshot_options *options;
	struct snapshot_error *err;
};

/* What files say about zones beside struct snapshot_zone. */
struct snapshot_work {
	struct snapshot *snap;
	bool more[SNAPSHOT_ZONES_MAX][SNAPSHOT_TYPES][SNAPSHOT_ORDERS];
	bool typed[SNAPSHOT_ZONES_MAX]; /* pagetypeinfo had its free counts */
	uint64_t buddyinfo[SNAPSHOT_ZONES_MAX][SNAPSHOT_ORDERS];
	uint64_t spanned[SNAPSHOT_ZONES_MAX];
	uint64_t present[SNAPSHOT_ZONES_MAX];
	uint64_t managed[SNAPSHOT_ZONES_MAX];
	bool has_managed[SNAPSHOT_ZONES_MAX];
	uint64_t pcp[SNAPSHOT_ZONES_MAX];
	bool has_pcp[SNAPSHOT_ZONES_MAX];
};

/* Each: 0 or SNAPSHOT_E_INVALID. */
int snapshot_read_buddyinfo(struct snapshot_reader *r, struct snapshot_work *w);
int snapshot_read_pagetypeinfo(struct snapshot_reader *r,
			       struct snapshot_work *w);
int snapshot_read_zoneinfo(struct snapshot_reader *r, struct snapshot_work *w);
int snapshot_read_meminfo(struct snapshot_reader *r, struct snapshot_work *w);
int snapshot_read_vmstat(struct snapshot_reader *r, struct snapshot_work *w);

/* Return: SNAPSHOT_E_INVALID, with file, line and text in the error. */
int snapshot_refuse(struct snapshot_reader *r, const char *format, ...)
	_printf_(2, 3);
