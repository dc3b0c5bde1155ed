/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Workdir: the private directory of one run: the emulated directory, and the
 * private daemon's socket and files.
 *
 * It is made where devices 0:0 can be made, which a tmpfs allows to everybody
 * and an overlay to nobody; if there is no such place, anywhere.
 *
 * Ownership: a path; workdir_remove() when its user has emptied it.
 * Threads:   no state.
 */

#include <stdbool.h>

#define WORKDIR_PATH_BYTES 72u /* a socket's path has to fit behind it */

struct workdir {
	char path[WORKDIR_PATH_BYTES];
	bool has_devices;
};

/* Return: 0, or a negated errno: no place was writable. */
int workdir_make(struct workdir *ret);

void workdir_remove(const struct workdir *workdir);
