/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Runs dmaheapctl against it_daemon and looks at what it says.
 *
 * Ownership: outputs lie in static buffers until the next run; JSON values are
 *            the caller's.
 * Threads:   one.
 */

#include <stdbool.h>
#include <sys/types.h>

#include <jansson.h>

#define CTL_WORDS_MAX 32

struct ctl_result {
	int status; /* exit status; 128 and the signal's number if killed */
	char out[1 << 20];
	char err[8192];
};

extern struct ctl_result ctl_result;

/* Runs it with the blank-separated words of @line; 'quoted words' are one.
 * Return: the exit status; the rest is in ctl_result. */
int ctl(const char *line);

/* The same with --json, status 0 asserted. Return: what it printed. */
json_t *ctl_json(const char *line);

/* Starts it and leaves it running; its standard output comes out of @ret_fd.
 * Return: its pid. */
pid_t ctl_start(const char *line, int *ret_fd);

/* Sends @signal and waits. Return: as ctl(). */
int ctl_end(pid_t pid, int signal);

/* Asserts that @object has just the blank-separated @keys. */
#define CTL_KEYS(object, keys) ctl_check_keys((object), (keys), __LINE__)
void ctl_check_keys(const json_t *object, const char *keys, int line);

/* The text or number at @key; "" and 0 when there is none. */
const char *ctl_text_at(const json_t *object, const char *key);
json_int_t ctl_number_at(const json_t *object, const char *key);

/* Whether @part is in the last run's standard output or error. */
bool ctl_said(const char *part);
bool ctl_complained(const char *part);
