/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Origin: which daemon's socket a buffer came from, so that a process that
 * talks to two daemons hands none of one's buffers to the other.
 *
 * A buffer is remembered by (dev, ino) and by the number of the fd that it was
 * received as; no fd and no mapping is kept, for that would keep the buffer
 * alive. The table is therefore never longer than the highest fd, and an entry
 * ends when its number is given out again. A buffer that was moved to another
 * number, or received from another process, may be unknown: unknown ones are
 * handed over by whoever reconnects.
 *
 * Ownership: nothing is kept but numbers.
 * Threads:   any; the table is guarded by handles_lock().
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* An inode. */
struct origin_file {
	dev_t dev;
	ino_t ino;
};

/* Return: a number for the socket at @path, equal for equal paths. */
uint64_t origin_of_path(const char *path);

/* Remembers that @fd, which is of @file, came from @origin. */
void origin_note(uint64_t origin, int fd, struct origin_file file);

/* Return: true when @file came from another origin. */
bool origin_is_foreign(uint64_t origin, struct origin_file file);
