/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Maps: the areas of /proc/<pid>/maps.
 *
 * Ownership: nothing is kept; arguments are borrowed.
 * Threads:   no state.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* O_LARGEFILE as the kernel has it: <fcntl.h> makes it 0 on 64-bit. */
#if defined(__aarch64__)
#define MAPS_O_LARGEFILE 0400000
#else
#define MAPS_O_LARGEFILE 0100000
#endif

struct maps_area {
	uint64_t start;
	uint64_t end;
	uint64_t offset_bytes;
	dev_t dev;
	ino_t ino;
	char perms[5];
	const char *path; /* "" when it has none */
};

/* Return: false to stop. */
typedef bool maps_visit(void *ctx, const struct maps_area *area);

/* Return: 0, or a negated errno when the file cannot be opened. */
int maps_walk(pid_t pid, maps_visit *visit, void *ctx);

/* Whether any part of [start, start + n_bytes) maps a buffer of a daemon. */
bool maps_has_buffer(pid_t pid, uint64_t start, uint64_t n_bytes);
