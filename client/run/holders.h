/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Holders: which buffers of any daemon a process has open or mapped.
 *
 * Processes that may not be looked into are passed over.
 *
 * Ownership: nothing is kept; arguments are borrowed.
 * Threads:   no state.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct holders_held {
	dev_t dev;
	ino_t ino;
	bool is_mapping;     /* else a descriptor */
	int fd;              /* of a descriptor */
	uint64_t size_bytes; /* of the file; of a mapping, what it shows */
	const char *link;    /* what /proc calls it */
};

typedef void holders_visit(void *ctx, pid_t pid,
			   const struct holders_held *held);

/* Every descriptor and every mapping of a buffer in @pid. */
void holders_of(pid_t pid, holders_visit *visit, void *ctx);

/*
 * The same for every process that descends from @ancestor, but @except and what
 * runs in the session of @ancestor (the private daemon).
 */
void holders_of_descendants(pid_t ancestor, pid_t except, holders_visit *visit,
			    void *ctx);
