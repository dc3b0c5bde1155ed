/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Experiment debugobjects-percpu: what a tracker's per-worker slots are worth.
 * Replays the objects of one recorded trace (docs/trace-format.md) through
 * base/objtrack with more and fewer slots, and times a transition.
 *
 * Units:     slots are batches of 16 records; *_bytes; *_ns.
 * Ownership: objtrack_trace_fini() frees a trace's events.
 * Threads:   none of its own; workers are numbers that a replay takes in turn.
 */

#include "conf/ini.h"
#include "lab/experiment.h"
#include "lab/live_daemon.h"

/* A buffer with its blocks comes, or goes. */
struct objtrack_event {
	uint64_t time_ns;
	uint32_t buffer;
	uint32_t n_objects;
	bool goes;
};

struct objtrack_trace {
	struct objtrack_event *events;
	size_t n_events;
	uint64_t n_buffers;
	uint64_t n_objects; /* that come, in all */
};

#define OBJTRACK_CURVE 6u

struct objtrack_params_of_run {
	uint64_t seed;
	unsigned int n_workers;
	unsigned int slots[OBJTRACK_CURVE]; /* rising; 4 and 8 among them */
};

struct objtrack_point {
	unsigned int slots;
	uint64_t backing_allocs; /* in the hot path */
	uint64_t backing_frees;
	uint64_t worker_bytes;
};

struct objtrack_result {
	struct objtrack_params_of_run params;
	uint64_t n_buffers, n_objects;
	struct objtrack_point point[OBJTRACK_CURVE];
	double on_ns;       /* per transition */
	double off_ns;      /* per call of a tracker that is off */
	double off_percent; /* of an alloc and free of one slab object */
	struct live_daemon_speed daemon[2]; /* off, on */
	char daemon_why_not[160];
};

extern const struct experiment experiment_objtrack;

/**
 * objtrack_trace_parse() - the buffers and blocks of a recorded trace
 * @text: NUL-terminated; cut up in place
 *
 * Return: 0, CONF_E_INVALID with @err, -ENOMEM.
 */
int objtrack_trace_parse(struct objtrack_trace *ret, const char *file,
			 char *text, struct conf_error *err) _must_check_;
void objtrack_trace_fini(struct objtrack_trace *trace);

/* Fills in the curve. Return: 0 or a negated errno. */
int objtrack_replay(const struct objtrack_trace *trace,
		    struct objtrack_result *result) _must_check_;

/* Fills in the times. Return: 0 or a negated errno. */
int objtrack_time(struct objtrack_result *result) _must_check_;

/* Tables and closing sentence from the figures, and from nothing else. */
void objtrack_report(const struct objtrack_result *result,
		     struct report *report);
