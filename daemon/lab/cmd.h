/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The verbs of dmaheap-lab, a file each. Every one takes its own arguments,
 * argv[0] being the verb.
 *
 * Ownership: nothing is kept.
 * Threads:   main thread.
 *
 * Return, each: the exit status: 0 done, 1 failed (message on stderr), 2 usage.
 */

#include "base/base.h"
#include "base/strbuf.h"

enum {
	LAB_EXIT_OK = 0,
	LAB_EXIT_FAILED = 1,
	LAB_EXIT_USAGE = 2,
};

int cmd_run(int argc, char **argv);
int cmd_sweep(int argc, char **argv);
int cmd_merge(int argc, char **argv);
int cmd_replay(int argc, char **argv);
int cmd_import(int argc, char **argv);
int cmd_calibrate(int argc, char **argv);

/* Prints "dmaheap-lab: text" and a new line to stderr. Return: LAB_EXIT_FAILED,
 * LAB_EXIT_USAGE. */
int lab_fail(const char *format, ...) _printf_(1, 2);
int lab_usage(const char *format, ...) _printf_(1, 2);

/* Writes the text to @path, NULL: standard output. Return: exit status. */
int lab_write(const char *path, const struct strbuf *text);
