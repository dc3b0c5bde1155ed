/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Report: what the run allocated, by whom, how long it stalled, and what was
 * never given back; written as JSON (--report) and judged (--fail-on leak).
 *
 * Units:     *_bytes, *_ns.
 * Ownership: everything passed in is copied.
 * Threads:   report_alloc(), report_name(), report_exit() from any thread. A
 *            NULL report is allowed everywhere and does nothing.
 */

#include <dmaheap/protocol.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

struct report;

struct report_setup {
	char *const *argv;       /* the program and its arguments; borrowed */
	const char *socket_path; /* borrowed; NULL: none */
	bool private_daemon;
	bool strict;
};

/* Return: NULL when out of memory. */
struct report *report_new(const struct report_setup *setup);
struct report *report_free(struct report *report);

/**
 * report_alloc() - one ALLOC has been answered
 * @err:     0, or the errno that the program got
 * @why:     the daemon's sentence, or ""
 * @answer:  the daemon's report; NULL when it gave no buffer
 * @st:      of the buffer; NULL likewise
 */
void report_alloc(struct report *report, pid_t tid, const char *heap,
		  uint64_t len_bytes, int err, const char *why,
		  const struct dmaheap_alloc_report *answer,
		  const struct stat *st);

void report_name(struct report *report, const struct stat *st,
		 const char *name);

/**
 * report_exit() - the program is about to exit: look who holds what
 * @last_thread: exit_group(); exit() only counts in the last thread
 */
void report_exit(struct report *report, pid_t program_pid, bool whole_process);

/* The program has exited: look what surviving processes hold. */
void report_survivors(struct report *report, pid_t program_pid);

/* Buffers of this run that were held at the program's exit. */
size_t report_n_leaks(struct report *report);

/**
 * report_check() - whether report_write() will be able to
 *
 * Nothing is left there. Return: 0 or a negated errno.
 */
int report_check(const char *path);

/**
 * report_write() - write the file
 * @wait_status: the program's, as of waitpid()
 *
 * It appears whole or not at all. Return: 0 or a negated errno.
 */
int report_write(struct report *report, const char *path, int wait_status);

/* One line a leak on standard error, at most ten. */
void report_print_leaks(struct report *report);
