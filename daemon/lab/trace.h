/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Reading the trace format of docs/trace-format.md, line by line. The text is
 * untrusted: what is out of place is refused with file, line and reason.
 *
 * Units:     times are the node's nanoseconds.
 * Ownership: the reader borrows the text, which it cuts up in place; an event
 *            is valid until the next one is read.
 * Threads:   not locked.
 */

#include "base/base.h"
#include "conf/ini.h"

#define TRACE_KEYS_MAX 64u

struct trace_reader {
	const char *file;
	char *next; /* what is not read yet */
	unsigned int line;
	uint64_t last_ns;
};

/* A line: "TIME EVENT KEY=VALUE...", or the node's "node KEY=VALUE...". */
struct trace_event {
	uint64_t time_ns;
	const char *name;
	struct conf_entry keys[TRACE_KEYS_MAX];
	size_t n_keys;
	const char *file;
	unsigned int line;
};

/**
 * trace_open() - check the first line
 * @text: NUL-terminated, the caller's, changed while reading
 *
 * Return: 0, or CONF_E_INVALID with @err.
 */
int trace_open(struct trace_reader *ret, const char *file, char *text,
	       struct conf_error *err) _must_check_;

/* The line "node ...". Return: 0, or CONF_E_INVALID with @err. */
int trace_read_node(struct trace_reader *reader, struct trace_event *ret,
		    struct conf_error *err) _must_check_;

/* Return: 0, TRACE_E_END, or CONF_E_INVALID with @err. */
int trace_read(struct trace_reader *reader, struct trace_event *ret,
	       struct conf_error *err) _must_check_;

#define TRACE_E_END (CONF_E_INVALID + 1)

/* Return: the entry, or NULL. */
const struct conf_entry *trace_find(const struct trace_event *event,
				    const char *key);
/* The same where it must be there. Return: 0 or CONF_E_INVALID with @err. */
int trace_need(const struct trace_event *event, const char *key,
	       const struct conf_entry **ret, struct conf_error *err)
	_must_check_;
int trace_need_u64(const struct trace_event *event, const char *key,
		   uint64_t max, uint64_t *ret, struct conf_error *err)
	_must_check_;

/* Refuses keys that are not among @allowed (NULL at its end). */
int trace_only(const struct trace_event *event, const char *const *allowed,
	       struct conf_error *err) _must_check_;

/* "file:line: event: text". Return: CONF_E_INVALID. */
int trace_error(const struct trace_event *event, struct conf_error *err,
		const char *format, ...) _printf_(3, 4);
