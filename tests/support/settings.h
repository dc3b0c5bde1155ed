/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Settings of the whole host (sysctls, sysfs switches) that a test changes: put
 * back when the guard ends, and when the test program ends in any other way.
 *
 * Ownership: settings_guard() to settings_restore().
 * Threads:   one.
 */

#include <stdbool.h>
#include <sys/types.h>

#define SETTINGS_MAX 16

struct settings_guard {
	pid_t pid; /* the process that restores */
	int fd;    /* when it is closed */
};

/* Keeps what the files at @paths (up to NULL, at most SETTINGS_MAX) say now: a
 * number, or the word in brackets. */
void settings_guard(struct settings_guard *ret, const char *const *paths);

/* Puts everything back, in the order of the paths. */
void settings_restore(struct settings_guard *guard);

/* Return: whether @path took @text. */
bool settings_write(const char *path, const char *text);
