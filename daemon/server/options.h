/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * dmaheapd's command line.
 *
 * Ownership: strings point into argv.
 * Threads:   start-up.
 */

#include "base/base.h"
#include "server/config.h"

enum options_loop {
	OPTIONS_LOOP_AUTO,
	OPTIONS_LOOP_URING,
	OPTIONS_LOOP_EPOLL,
};

/* What the command line asks the program to do. */
enum options_action {
	OPTIONS_RUN,
	OPTIONS_CHECK_CONFIG,
	OPTIONS_PROBE,
	OPTIONS_HELP,
	OPTIONS_VERSION,
};

struct options {
	enum options_action action;
	const char *config_path; /* NULL: the default file, if it exists */
	struct config_settings settings;
	const char *socket_path; /* NULL: the search */
	enum options_loop loop;
	int ready_fd; /* -1: none */
	bool json;
};

#ifndef DMAHEAP_SYSCONF_DIR
#define DMAHEAP_SYSCONF_DIR "/etc"
#endif
#define OPTIONS_DEFAULT_CONFIG DMAHEAP_SYSCONF_DIR "/dmaheap/dmaheapd.conf"

/**
 * options_parse() - read the command line
 * @ret:   filled on success; untouched on failure
 * @error: receives what is wrong
 *
 * Return: 0, -EINVAL.
 */
int options_parse(int argc, char **argv, struct options *ret, char *error,
		  size_t error_bytes) _must_check_;

/* The text of --help. */
extern const char options_usage[];
