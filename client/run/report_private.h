/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What report.c collects and report_json.c writes.
 *
 * Units:     *_ns since the start of the run, but start_realtime_ns.
 * Ownership: the report owns its arrays and each record its sentence.
 * Threads:   everything is under the lock.
 */

#include <pthread.h>

#include "run/report.h"

#define REPORT_RECORDS_MAX (1u << 20)

/* One ALLOC. */
struct record {
	uint64_t at_ns; /* when it was answered */
	pid_t pid;
	pid_t tid;
	char comm[16];
	char heap[DMAHEAP_NAME_MAX_BYTES];
	char name[DMAHEAP_NAME_MAX_BYTES];
	uint64_t len_bytes;
	int err;
	char *why; /* NULL: nothing was said */
	bool has_answer;
	dev_t dev;
	ino_t ino;
	struct dmaheap_alloc_report answer;
};

/* One buffer that one process still had. */
struct leak {
	size_t record;
	pid_t pid;
	char comm[16];
	bool by_survivor; /* else by the program itself, as it exited */
	unsigned int n_fds;
	unsigned int n_mappings;
};

struct report {
	pthread_mutex_t lock;
	struct report_setup setup;
	uint64_t start_ns;
	uint64_t start_realtime_ns;
	bool exit_seen; /* false: the program was killed */
	struct record *record;
	size_t n_records;
	size_t record_capacity;
	size_t n_dropped; /* beyond the limit */
	struct leak *leak;
	size_t n_leaks;
};
