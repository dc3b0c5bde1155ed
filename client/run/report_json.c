/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run/report.h"
#include "run/report_private.h"
#include "run/util.h"

static const char *name_of(const char *const *names, size_t n, unsigned int i)
{
	return i < n ? names[i] : "unknown";
}

static const char *source_name(unsigned int source)
{
	static const char *const names[] = {"node", "pool", "parked", "mixed",
					    "adopted"};

	return name_of(names, ARRAY_SIZE(names), source);
}

static const char *backing_name(unsigned int backing)
{
	static const char *const names[] = {"auto", "plain", "collapse",
					    "folio", "hugetlb"};

	return name_of(names, ARRAY_SIZE(names), backing);
}

/* A name may hold any bytes; JSON wants UTF-8. */
static json_t *text(const char *s)
{
	json_t *json = json_string(s);
	char copy[1024];
	size_t i;

	if (json)
		return json;
	for (i = 0; s[i] && i < sizeof(copy) - 1; i++)
		copy[i] = (unsigned char)s[i] < 0x80 ? s[i] : '?';
	copy[i] = '\0';
	return json_string(copy);
}

static json_t *composition(const struct dmaheap_alloc_report *answer)
{
	json_t *json = json_object();
	char key[16];

	for (unsigned int order = DMAHEAP_ORDER_COUNT; order-- > 0;) {
		(void)snprintf(key, sizeof(key), "%u", order);
		/* The orders of the usual policies stand even at zero. */
		if (answer->blocks[order] || order == 8 || order == 4 ||
		    order == 0)
			json_object_set_new(json, key,
					    json_integer(
						    answer->blocks[order]));
	}
	return json;
}

static json_t *measured(const struct dmaheap_alloc_report *a)
{
	return json_pack("{sI sI sI sI sI}", "total",
			 (json_int_t)a->measured_total_ns, "queue",
			 (json_int_t)a->measured_queue_ns, "node",
			 (json_int_t)a->measured_node_ns, "populate",
			 (json_int_t)a->measured_populate_ns, "waited_stall",
			 (json_int_t)a->waited_stall_ns);
}

static void add_answer(json_t *json, const struct dmaheap_alloc_report *a)
{
	char reason[sizeof(a->backing_reason) + 1];

	(void)snprintf(reason, sizeof(reason), "%.*s",
		       (int)sizeof(a->backing_reason), a->backing_reason);
	json_object_set_new(json, "id", json_integer((json_int_t)a->id));
	json_object_set_new(json, "size",
			    json_integer((json_int_t)a->size_bytes));
	json_object_set_new(json, "composition", composition(a));
	json_object_set_new(json, "source", text(source_name(a->source)));
	json_object_set_new(json, "backing",
			    json_pack("{ss ss so}", "asked",
				      backing_name(a->backing_asked), "got",
				      backing_name(a->backing_got), "reason",
				      text(reason)));
	json_object_set_new(json, "measured_ns", measured(a));
	json_object_set_new(json, "modelled_ns",
			    json_pack("{sI sI}", "node",
				      (json_int_t)a->modelled_node_ns, "stall",
				      (json_int_t)a->modelled_stall_ns));
}

static json_t *allocation(const struct record *record)
{
	json_t *json =
		json_pack("{sI si si so so sI}", "at_ns",
			  (json_int_t)record->at_ns, "pid", (int)record->pid,
			  "tid", (int)record->tid, "comm", text(record->comm),
			  "heap", text(record->heap), "asked_bytes",
			  (json_int_t)record->len_bytes);

	if (record->err)
		json_object_set_new(json, "error",
				    text(strerrorname_np(record->err)));
	if (record->why)
		json_object_set_new(json, "why", text(record->why));
	if (record->name[0])
		json_object_set_new(json, "name", text(record->name));
	if (record->has_answer)
		add_answer(json, &record->answer);
	return json;
}

static json_t *leak_entry(const struct report *report, const struct leak *leak)
{
	const struct record *record = &report->record[leak->record];

	return json_pack("{sI sI so si si so si si ss}", "id",
			 (json_int_t)record->answer.id, "size",
			 (json_int_t)record->answer.size_bytes, "name",
			 text(record->name), "allocated_by_pid",
			 (int)record->pid, "held_by_pid", (int)leak->pid,
			 "held_by_comm", text(leak->comm), "fds",
			 (int)leak->n_fds, "mappings", (int)leak->n_mappings,
			 "why",
			 leak->by_survivor ? "held by a surviving process"
					   : "never closed by the program");
}

static json_t *totals(const struct report *report)
{
	json_int_t n = 0, failed = 0, bytes = 0, stall = 0, waited = 0;

	for (size_t i = 0; i < report->n_records; i++) {
		const struct record *record = &report->record[i];

		if (record->err)
			failed++;
		else
			n++;
		if (!record->has_answer)
			continue;
		bytes += (json_int_t)record->answer.size_bytes;
		stall += (json_int_t)record->answer.modelled_stall_ns;
		waited += (json_int_t)record->answer.waited_stall_ns;
	}
	return json_pack("{sI sI sI sI sI sI}", "allocations", n, "failures",
			 failed, "bytes", bytes, "modelled_stall_ns", stall,
			 "waited_stall_ns", waited, "not_recorded",
			 (json_int_t)report->n_dropped);
}

static json_t *program(const struct report *report, int wait_status)
{
	json_t *argv = json_array();

	for (char *const *arg = report->setup.argv; *arg; arg++)
		json_array_append_new(argv, text(*arg));
	if (WIFSIGNALED(wait_status))
		return json_pack("{so si}", "argv", argv, "signal",
				 WTERMSIG(wait_status));
	return json_pack("{so si}", "argv", argv, "exit_status",
			 WEXITSTATUS(wait_status));
}

static json_t *whole(const struct report *report, int wait_status)
{
	json_t *allocations = json_array(), *leaks = json_array();

	for (size_t i = 0; i < report->n_records; i++)
		json_array_append_new(allocations,
				      allocation(&report->record[i]));
	for (size_t i = 0; i < report->n_leaks; i++)
		json_array_append_new(leaks,
				      leak_entry(report, &report->leak[i]));
	return json_pack("{ss so sI s{sb so} sb so so sb so}", "version",
			 DMAHEAP_VERSION, "program",
			 program(report, wait_status), "start_realtime_ns",
			 (json_int_t)report->start_realtime_ns, "daemon",
			 "private", (int)report->setup.private_daemon, "socket",
			 report->setup.socket_path
				 ? text(report->setup.socket_path)
				 : json_null(),
			 "strict", (int)report->setup.strict, "totals",
			 totals(report), "leaks", leaks, "exit_seen",
			 (int)report->exit_seen, "allocations", allocations);
}

/* A pipe or a terminal is written to; anything else is replaced at once. */
static bool is_replaceable(const char *path)
{
	struct stat st;

	return stat(path, &st) || S_ISREG(st.st_mode);
}

/* Beside the file, so that it can be renamed; or what cannot be replaced. */
static int temporary_path(char ret[PATH_MAX], const char *path)
{
	int n = is_replaceable(path)
			? snprintf(ret, PATH_MAX, "%s.%d", path, (int)getpid())
			: snprintf(ret, PATH_MAX, "%s", path);

	return n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

int report_check(const char *path)
{
	_cleanup_(fd_closep) int fd = -1;
	char temporary[PATH_MAX];
	struct stat st;
	int r = temporary_path(temporary, path);

	if (r)
		return r;
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return -EISDIR;
	/* To open a pipe would wait for its reader. */
	if (strcmp(temporary, path) == 0)
		return access(path, W_OK) ? -errno : 0;
	fd = open(temporary, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0 || unlink(temporary))
		return -errno;
	return 0;
}

static int write_to(const char *path, const json_t *json)
{
	_cleanup_(fd_closep) int fd =
		open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

	if (fd < 0)
		return -errno;
	if (json_dumpfd(json, fd, JSON_INDENT(1)) || write(fd, "\n", 1) != 1)
		return -EIO;
	return 0;
}

int report_write(struct report *report, const char *path, int wait_status)
{
	char temporary[PATH_MAX];
	json_t *json;
	int r = temporary_path(temporary, path);

	if (r)
		return r;
	(void)pthread_mutex_lock(&report->lock);
	json = whole(report, wait_status);
	(void)pthread_mutex_unlock(&report->lock);
	if (!json)
		return -ENOMEM;
	r = write_to(temporary, json);
	json_decref(json);
	if (r == 0 && strcmp(temporary, path) && rename(temporary, path))
		r = -errno;
	if (r && strcmp(temporary, path))
		(void)unlink(temporary);
	return r;
}
