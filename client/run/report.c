/* SPDX-License-Identifier: MIT */
#include "run/report.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "run/holders.h"
#include "run/report_private.h"
#include "run/target.h"
#include "run/util.h"

static uint64_t now_ns(clockid_t clock)
{
	struct timespec t;

	(void)clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

struct report *report_new(const struct report_setup *setup)
{
	struct report *report = calloc(1, sizeof(*report));

	if (!report)
		return NULL;
	(void)pthread_mutex_init(&report->lock, NULL);
	report->setup = *setup;
	report->start_ns = now_ns(CLOCK_MONOTONIC);
	report->start_realtime_ns = now_ns(CLOCK_REALTIME);
	return report;
}

struct report *report_free(struct report *report)
{
	if (!report)
		return NULL;
	for (size_t i = 0; i < report->n_records; i++)
		free(report->record[i].why);
	free(report->record);
	free(report->leak);
	(void)pthread_mutex_destroy(&report->lock);
	free(report);
	return NULL;
}

/* Return: a new record at the end, or NULL: full or out of memory. */
static struct record *add_record(struct report *report)
{
	size_t capacity = report->record_capacity;

	if (report->n_records == capacity) {
		struct record *grown;

		capacity = capacity ? capacity * 2 : 64;
		grown = capacity > REPORT_RECORDS_MAX
				? NULL
				: realloc(report->record,
					  capacity * sizeof(*grown));
		if (!grown) {
			report->n_dropped++;
			return NULL;
		}
		report->record = grown;
		report->record_capacity = capacity;
	}
	memset(&report->record[report->n_records], 0, sizeof(struct record));
	return &report->record[report->n_records++];
}

void report_alloc(struct report *report, pid_t tid, const char *heap,
		  uint64_t len_bytes, int err, const char *why,
		  const struct dmaheap_alloc_report *answer,
		  const struct stat *st)
{
	struct record record = {.tid = tid, .len_bytes = len_bytes, .err = err};
	struct record *slot;

	if (!report)
		return;
	record.at_ns = now_ns(CLOCK_MONOTONIC) - report->start_ns;
	record.pid = target_tgid(tid);
	target_comm(tid, record.comm, sizeof(record.comm));
	(void)snprintf(record.heap, sizeof(record.heap), "%s", heap);
	record.why = err && why[0] ? strdup(why) : NULL;
	if (answer && st) {
		record.has_answer = true;
		record.answer = *answer;
		record.dev = st->st_dev;
		record.ino = st->st_ino;
	}

	(void)pthread_mutex_lock(&report->lock);
	slot = add_record(report);
	if (slot)
		*slot = record;
	else
		free(record.why);
	(void)pthread_mutex_unlock(&report->lock);
}

/* The latest buffer at an inode; the lock is held. NULL: not of this run. */
static struct record *find_record(struct report *report, dev_t dev, ino_t ino)
{
	for (size_t i = report->n_records; i-- > 0;)
		if (report->record[i].has_answer &&
		    report->record[i].ino == ino &&
		    report->record[i].dev == dev)
			return &report->record[i];
	return NULL;
}

void report_name(struct report *report, const struct stat *st, const char *name)
{
	struct record *record;

	if (!report)
		return;
	(void)pthread_mutex_lock(&report->lock);
	record = find_record(report, st->st_dev, st->st_ino);
	if (record)
		(void)snprintf(record->name, sizeof(record->name), "%s", name);
	(void)pthread_mutex_unlock(&report->lock);
}

struct leak_search {
	struct report *report;
	bool by_survivor;
};

/* One leak a buffer and process, however many fds and mappings it has there. */
static void add_leak(void *ctx, pid_t pid, const struct holders_held *held)
{
	struct leak_search *search = ctx;
	struct report *report = search->report;
	const struct record *record;
	struct leak *leak, *grown;
	size_t index;

	record = find_record(report, held->dev, held->ino);
	if (!record)
		return;
	index = (size_t)(record - report->record);
	for (size_t i = 0; i < report->n_leaks; i++) {
		leak = &report->leak[i];
		if (leak->record == index && leak->pid == pid) {
			leak->n_fds += held->is_mapping ? 0 : 1;
			leak->n_mappings += held->is_mapping ? 1 : 0;
			return;
		}
	}
	grown = realloc(report->leak, (report->n_leaks + 1) * sizeof(*grown));
	if (!grown)
		return;
	report->leak = grown;
	leak = &report->leak[report->n_leaks++];
	*leak = (struct leak){
		.record = index,
		.pid = pid,
		.by_survivor = search->by_survivor,
		.n_fds = held->is_mapping ? 0 : 1,
		.n_mappings = held->is_mapping ? 1 : 0,
	};
	target_comm(pid, leak->comm, sizeof(leak->comm));
}

void report_exit(struct report *report, pid_t program_pid, bool whole_process)
{
	struct leak_search search = {.report = report};
	long n_threads;

	if (!report)
		return;
	if (!whole_process &&
	    (target_status(program_pid, "Threads", &n_threads) ||
	     n_threads != 1))
		return;
	(void)pthread_mutex_lock(&report->lock);
	if (!report->exit_seen)
		holders_of(program_pid, add_leak, &search);
	report->exit_seen = true;
	(void)pthread_mutex_unlock(&report->lock);
}

void report_survivors(struct report *report, pid_t program_pid)
{
	struct leak_search search = {.report = report, .by_survivor = true};

	if (!report)
		return;
	(void)pthread_mutex_lock(&report->lock);
	holders_of_descendants(getpid(), program_pid, add_leak, &search);
	(void)pthread_mutex_unlock(&report->lock);
}

size_t report_n_leaks(struct report *report)
{
	size_t n;

	if (!report)
		return 0;
	(void)pthread_mutex_lock(&report->lock);
	n = report->n_leaks;
	(void)pthread_mutex_unlock(&report->lock);
	return n;
}

#define LEAK_LINES_MAX 10u

void report_print_leaks(struct report *report)
{
	if (!report)
		return;
	for (size_t i = 0; i < report->n_leaks; i++) {
		const struct leak *leak = &report->leak[i];
		const struct record *record = &report->record[leak->record];

		if (i == LEAK_LINES_MAX) {
			run_message("... and %zu more",
				    report->n_leaks - LEAK_LINES_MAX);
			return;
		}
		run_message("leak: buffer %llu%s%s of %llu bytes, allocated by "
			    "process %d (%s), %s process %d (%s): %u "
			    "descriptors, %u mappings",
			    (unsigned long long)record->answer.id,
			    record->name[0] ? " " : "", record->name,
			    (unsigned long long)record->answer.size_bytes,
			    (int)record->pid, record->comm,
			    leak->by_survivor ? "still held by surviving"
					      : "never closed by",
			    (int)leak->pid, leak->comm, leak->n_fds,
			    leak->n_mappings);
	}
}
