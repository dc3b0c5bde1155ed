/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Options: the command line of dmaheap-run.
 *
 * Ownership: every string is the command line's own.
 * Threads:   pure, but for messages on standard error.
 */

#include <dmaheap/protocol.h>
#include <stdbool.h>

struct options {
	const char *socket_path; /* NULL: the search of the library */
	bool private_daemon;     /* asked for; else only when none is there */
	const char *config_path; /* of the private daemon; NULL: defaults */
	const char *policy;
	const char *node; /* a snapshot's directory or shipped name */
	bool has_inject;
	struct dmaheap_inject_req inject;
	bool strict;
	const char *report_path;
	bool fail_on_leak;
	char **argv; /* the program and its arguments */
};

/**
 * options_parse() - read the command line
 *
 * Return: -1 to go on; else the exit status: 0 (help or version printed), 2
 * (usage, told on standard error).
 */
int options_parse(struct options *ret, int argc, char **argv);

/**
 * options_parse_inject() - "stall=80ms,fail-nth=3,..."
 * @ret_why: receives on failure what is wrong and what is allowed
 */
bool options_parse_inject(const char *spec, struct dmaheap_inject_req *ret,
			  char ret_why[256]);
