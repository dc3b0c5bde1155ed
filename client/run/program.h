/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Program: the child that installs the filter and becomes the user's program.
 *
 * Ownership: see each function.
 * Threads:   before the supervisor starts any.
 */

#include <signal.h>
#include <sys/types.h>

#include "run/filter.h"

struct program {
	pid_t pid;
	int socket; /* to the child; ends with its exec */
};

struct program_setup {
	char **argv;
	sigset_t signal_mask; /* the program's */
	struct filter_options filter;
};

/**
 * program_fork() - fork the child, which waits for program_start()
 *
 * It stays in the caller's session and process group.
 * Return: 0 or a negated errno.
 */
int program_fork(struct program *ret, const struct program_setup *setup);

/**
 * program_start() - let the child install its filter
 * @socket_path:  becomes the program's DMAHEAP_SOCKET; NULL: that stays
 * @ret_listener: receives the listener on success
 *
 * Return: 0; or the child's errno, negated: see filter_install().
 */
int program_start(struct program *program, const char *socket_path,
		  int *ret_listener);

/**
 * program_exec_error() - whether the exec failed
 *
 * Waits until it is known: somebody must serve the listener meanwhile.
 * Return: 0 (it runs), or the errno of execve().
 */
int program_exec_error(struct program *program);
