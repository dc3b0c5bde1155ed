/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What the verbs of dmaheapctl share: how a verb is described, how it reaches
 * the daemon, and how it fails.
 *
 * Units:     *_bytes, *_ns.
 * Ownership: ctl_connect() keeps the handle in struct ctl; main() closes it.
 * Threads:   one.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <dmaheap/dmaheap.h>

#define _must_check_   __attribute__((warn_unused_result))
#define _printf_(f, a) __attribute__((format(printf, f, a)))

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* Exit statuses. */
enum {
	CTL_OK = 0,
	CTL_FAILED = 1,
	CTL_USAGE = 2,
};

enum option_kind {
	OPTION_SWITCH,  /* bool */
	OPTION_TEXT,    /* const char * */
	OPTION_SIZE,    /* uint64_t: a number with K, M, G or T */
	OPTION_NUMBER,  /* uint64_t */
	OPTION_MS,      /* uint64_t: a number, with ms or s */
	OPTION_DECIMAL, /* double, not negative */
};

struct option {
	const char *name; /* "--heap" */
	enum option_kind kind;
	const char *argument; /* "NAME"; NULL for a switch */
	void *value;          /* of the kind's type, the default in it */
	bool *given;          /* NULL, or set when the option is there */
	bool may_stand_alone; /* the value may be left out */
	const char *help;
};

struct ctl {
	const struct verb *verb;
	const char *socket_path; /* NULL: search */
	bool json;
	bool colour; /* standard output is a terminal that wants it */
	struct dmaheap *dh;
};

struct verb {
	const char *name;
	const char *arguments;        /* for the usage line; "" for none */
	const char *summary;          /* one line */
	const char *details;          /* NULL, or more lines for --help */
	const struct option *options; /* ends with a name of NULL; or NULL */
	unsigned int n_arguments_min;
	unsigned int n_arguments_max;
	bool passes_rest; /* what follows "--" is a command */
	/* @argv are the positional arguments. Return: an exit status. */
	int (*run)(struct ctl *ctl, int argc, char **argv);
};

/* All verbs; ends with NULL. */
extern const struct verb *const verbs[];

/* What followed "--": ends with NULL; empty when there was none. */
extern char **ctl_rest;

/* Prints "dmaheapctl: ..." on standard error. Return: CTL_FAILED. */
int ctl_fail(const char *format, ...) _printf_(1, 2);

/* The same with a hint at --help. Return: CTL_USAGE. */
int ctl_misuse(const struct ctl *ctl, const char *format, ...) _printf_(2, 3);

/**
 * ctl_connect() - connect @ctl->dh unless it is
 *
 * Return: CTL_OK, or CTL_FAILED after a message.
 */
int ctl_connect(struct ctl *ctl) _must_check_;

/**
 * ctl_call() - dmaheap_call() with a message on failure
 *
 * Return: CTL_OK, or CTL_FAILED after "WHAT: reason".
 */
int ctl_call(struct ctl *ctl, const char *what, struct dmaheap_message *msg)
	_must_check_;

/**
 * ctl_stats() - connect and copy the stats segment
 * @ret: receives an allocated copy, for free()
 *
 * Return: CTL_OK, or CTL_FAILED after a message.
 */
int ctl_stats(struct ctl *ctl, struct dmaheap_stats **ret) _must_check_;

/* ctl_stats() without connecting and messages. Return: 0 or a negated errno. */
int ctl_copy_stats(struct ctl *ctl, struct dmaheap_stats **ret) _must_check_;

/**
 * ctl_text() - fetch a text that comes in parts (NODE, POLICY)
 * @msg:         the request, whose payload is @req; filled in again per part
 * @offset_at:   where in the payload the offset lies; NULL: one part only
 * @ret:         receives the text with a NUL, for free()
 *
 * Return: CTL_OK, or CTL_FAILED after a message.
 */
int ctl_text(struct ctl *ctl, const char *what, struct dmaheap_message *msg,
	     uint64_t *offset_at, char **ret) _must_check_;

/* ctl_text() for a text of the node. */
int ctl_node_text(struct ctl *ctl, enum dmaheap_node_text which, char **ret)
	_must_check_;

/* Return: @text with everything unprintable replaced, in a static buffer. */
const char *ctl_printable(const char *text);
