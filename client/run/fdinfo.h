/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Fdinfo: what /proc/<pid>/fdinfo/<fd> says of a buffer, in the kernel's lines
 * for a dma-buf.
 *
 * Ownership: the returned fd is the caller's.
 * Threads:   no state.
 */

#include <sys/types.h>

#include "run/names.h"
#include "run/node.h"

/**
 * fdinfo_open() - a file with the text
 *
 * The count is of the descriptors and mappings of that process alone.
 * Return: an fd open for reading, or a negated errno.
 */
int fdinfo_open(struct names *names, pid_t pid, int fd,
		const struct node_object *buffer);

/**
 * fdinfo_open_maps() - /proc/<pid>/maps with the buffers called as dma-bufs are
 *
 * A copy of this moment. Return: an fd open for reading, or a negated errno:
 * -ENOENT when no buffer is mapped there.
 */
int fdinfo_open_maps(struct names *names, pid_t pid);

/* The heap's name in a buffer's link text "/memfd:dmaheap:HEAP:ID (deleted)".
 */
void fdinfo_heap_name(const char *link, char ret[DMAHEAP_NAME_MAX_BYTES]);
