/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Live: the buffers that processes of the run hold now, found in /proc.
 *
 * Units:     *_bytes.
 * Ownership: live_collect() fills the caller's struct; live_free() empties it.
 * Threads:   no state.
 */

#include <dmaheap/protocol.h>
#include <stddef.h>
#include <sys/types.h>

struct live_buffer {
	dev_t dev;
	ino_t ino;
	uint64_t size_bytes;
	unsigned int flags;        /* of one of its descriptors */
	unsigned int n_references; /* descriptors and mappings */
	char heap[DMAHEAP_NAME_MAX_BYTES];
};

struct live {
	struct live_buffer *buffer; /* the newest first */
	size_t n;
};

/* The run is what descends from this process. Short of memory: fewer. */
void live_collect(struct live *ret);

void live_free(struct live *live);
