/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Workers: threads that do what the loop must not: map, fill, zero and free
 * memory. They run at SCHED_IDLE, so they take only time that nobody else
 * wants. One more thread than asked for, the express, takes small jobs only:
 * a page-sized request does not wait for a step of a large one. It runs at
 * ordinary priority, since its steps are over in microseconds and on a busy
 * host an idle thread would keep small requests waiting for its turn.
 *
 * A small job that is quiet (nobody waits for its end) does not cost the loop a
 * wake-up on either side: it is begun with the next jobs, WORKERS_QUIET_JOBS of
 * them or a nap of the express later (a fifth of a millisecond while there are
 * jobs, else one), and its end is told a millisecond or two later, unless
 * workers_take_done() is called before. Those that somebody waits for
 * come first, but every other step is a quiet one's: it is they that give
 * memory back.
 *
 * A busy host leaves SCHED_IDLE next to no time. When no step has ended for two
 * periods though work waits, a rescue thread of ordinary priority (nice
 * WORKERS_RESCUE_NICE) does the large jobs, a step in each period, until the
 * others get time again.
 *
 * Units:     *_ns, *_ms.
 * Ownership: jobs are the submitter's; between workers_submit() and
 *            workers_take_done() only the worker that runs a job touches it.
 * Threads:   submit and take_done from one thread, the loop's. step() runs on a
 *            worker.
 */

#include "backing/queue.h"
#include "backing/window.h"

#define WORKERS_MAX         16u
#define WORKERS_QUIET_JOBS  256u
#define WORKERS_PERIOD_MS   5u
#define WORKERS_RESCUE_NICE 5

struct workers;

/* What a step may use of the thread that runs it. */
struct worker {
	struct window window;
};

/**
 * workers_new() - start the threads
 * @n: 1..WORKERS_MAX, express and rescue not counted
 *
 * Return: 0, -EINVAL (@n), -ENOMEM, -EMFILE, -EAGAIN (no more threads).
 */
int workers_new(struct workers **ret, unsigned int n) _must_check_;

/* Finishes every job that was submitted, then ends the threads and frees.
 * @ret_done: NULL, or receives the jobs that were not taken yet.
 * Return: NULL, always. @w may be NULL. */
struct workers *workers_stop(struct workers *w, struct job **ret_done);

/* Readable while workers_take_done() has something that is not quiet, or that
 * has been ready for a millisecond. It stays the workers'. */
int workers_event_fd(const struct workers *w);

/* Never waits for a worker: neither takes a lock that they hold. */
void workers_submit(struct workers *w, struct job *job);

/* Somebody waits for @n quiet jobs after all (0: not any more): until nothing
 * is pending they are begun at once, and told as soon as @n have ended or no
 * more is there to begin. */
void workers_hurry(struct workers *w, unsigned int n);

/* Call it when the fd was readable, before workers_take_done(). */
void workers_clear_event(struct workers *w);

/* Return: the jobs that are done, linked by job::next in the order in which
 * they ended, or NULL. */
struct job *workers_take_done(struct workers *w);

/* Jobs submitted and not done. */
size_t workers_n_pending(const struct workers *w);
