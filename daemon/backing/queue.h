/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Queue: who is served next. Users take turns, within a user its clients take
 * turns, and a client's jobs go in order; a job of many steps goes back to the
 * head of its client's jobs after each, so nobody waits for more than one step
 * of each other user.
 *
 * Units:     n_jobs counts jobs.
 * Ownership: the queue links jobs, it does not own them. Its bookkeeping is a
 *            fixed number of lanes and flows; jobs that find none left share
 *            one flow, which is less fair and never fails.
 * Threads:   not locked; workers.c does.
 */

#include <sys/types.h>

#include "base/base.h"
#include "base/list.h"

struct worker;

enum job_result {
	JOB_DONE,
	JOB_MORE, /* call step() again when it is this job's turn */
};

struct job {
	/* A piece of work, short enough for others to wait for. */
	enum job_result (*step)(struct job *job, struct worker *worker);
	uint64_t client;
	uid_t uid;
	bool small; /* all of it takes less than a step */
	bool quiet; /* nobody waits for it: see workers.h */
	union {
		struct list_node link; /* queue_flow::jobs */
		struct job *next;      /* workers::inbox or workers::done */
	};
};

struct queue_flow {
	uint64_t client;
	struct list_node jobs;
	struct list_node link; /* queue_lane::flows or queue::free_flows */
};

struct queue_lane {
	uid_t uid;
	struct list_node flows;
	struct list_node link; /* queue::lanes or queue::free_lanes */
};

#define QUEUE_LANES 64u  /* users that wait at once and are told apart */
#define QUEUE_FLOWS 256u /* clients likewise */

struct queue {
	struct list_node lanes;
	size_t n_jobs;
	struct list_node free_lanes;
	struct list_node free_flows;
	/* The last of each is for all that find no other. */
	struct queue_lane lane[QUEUE_LANES + 1];
	struct queue_flow flow[QUEUE_FLOWS + 1];
};

void queue_init(struct queue *q);

/* Asserts that the queue is empty. */
void queue_fini(struct queue *q);

/* Adds behind the other jobs of the same client. */
void queue_push(struct queue *q, struct job *job);

/* Puts a job that queue_pop() gave back before the others of its client. */
void queue_push_back(struct queue *q, struct job *job);

/* Return: the job whose turn it is, or NULL. */
struct job *queue_pop(struct queue *q);
