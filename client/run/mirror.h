/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Mirror: the files by which the kernel tells of heaps and buffers elsewhere
 * than under /dev, where the host has none of its own:
 *
 *   /sys/kernel/dmabuf/buffers/<ino>/{exporter_name,size}
 *   /sys/kernel/debug/dma_buf/bufinfo
 *   /sys/class/dma_heap/<heap>/{uevent,dev}
 *   /proc/devices (the host's, with one line more)
 *
 * They are kept as real files in the workdir and written afresh when somebody
 * looks. The buffers are those that a process of the run has open or mapped at
 * that moment; one that is in flight in a socket is missing.
 *
 * Ownership: mirror_new() gives the only reference; mirror_free() removes the
 *            files.
 * Threads:   any; looks are answered one after the other.
 */

#include <limits.h>
#include <stdbool.h>

#include "run/names.h"
#include "run/node.h"
#include "run/workdir.h"

struct mirror;

/* Everything is borrowed. Return: NULL when out of memory. */
struct mirror *mirror_new(const struct workdir *workdir,
			  const struct node *node, struct names *names);
struct mirror *mirror_free(struct mirror *mirror);

/* Removes the files for good; looks find nothing any more. May be NULL. */
void mirror_close(struct mirror *mirror);

/* Whether a path may be one of ours; from its text alone. */
bool mirror_is_interesting(const char *path);

/**
 * mirror_look() - find the file behind a path
 * @path:     absolute
 * @ret_path: receives the real file's path
 *
 * Return: whether the path is ours to answer; the file may be missing, which is
 * then the answer.
 */
bool mirror_look(struct mirror *mirror, const char *path,
		 char ret_path[PATH_MAX]);
