/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Command: runs a program as a shell would and keeps what it said.
 *
 * Units:     *_ms.
 * Ownership: command_end() frees the texts; between start and end the process
 *            is this module's to reap.
 * Threads:   one.
 */

#include <stdbool.h>
#include <sys/types.h>

#define COMMAND_ARGS_MAX 32

struct command {
	pid_t pid;
	int status; /* as of waitpid() */
	char *out;  /* what it wrote to standard output */
	char *err;
	int out_fd;
	int err_fd;
};

/* @argv ends with NULL; @env may be NULL: NAME=VALUE to add. */
void command_start(struct command *command, const char *const *argv,
		   const char *const *env);

/* Waits until its standard output holds @text. Return: whether it came. */
bool command_wait_for(struct command *command, const char *text);

/* Waits for its end, at most 60 s; then it is killed. Reads all output. */
void command_wait(struct command *command);

/* start and wait */
void command_run(struct command *command, const char *const *argv,
		 const char *const *env);

/* Frees the texts. */
void command_end(struct command *command);

/* Ends the test as skipped if @line says that seccomp is not to be had. */
void skip_without_seccomp(const char *line);
