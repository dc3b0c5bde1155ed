/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Resolve: where a path of the program leads, as far as it is our business:
 * into the emulated /dev/dma_heap, or to a descriptor's entry in /proc.
 *
 * Symbolic links, "..", directory descriptors, the working directory and the
 * root directory are the caller's.
 *
 * Ownership: nothing is kept; arguments are borrowed.
 * Threads:   no state.
 */

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "run/node.h"

enum place {
	PLACE_ELSEWHERE,       /* not ours: the kernel answers */
	PLACE_DIRECTORY,       /* /dev/dma_heap itself */
	PLACE_HEAP,            /* heap is set */
	PLACE_MISSING,         /* no such heap */
	PLACE_NOT_A_DIRECTORY, /* a heap with something after it */
	PLACE_OUTSIDE,         /* through ours to elsewhere: outside is set */
	PLACE_FD,              /* /proc/<pid>/fd/<fd> */
	PLACE_FDINFO,          /* /proc/<pid>/fdinfo/<fd> */
};

struct resolved {
	enum place place;
	const struct node_heap *heap;
	pid_t pid; /* of the two last places */
	int fd;
	char outside[PATH_MAX]; /* by way of /proc/<tid>/root */
};

/**
 * resolve_is_interesting() - whether a path may lead to a place of ours
 *
 * From its text alone, so that all others cost next to nothing.
 */
bool resolve_is_interesting(const struct node *node, const char *path);

/**
 * resolve_is_link() - whether the path ends in a link with an interesting text
 *
 * One readlink() for a path that is none: this is what every open costs.
 */
bool resolve_is_link(const struct node *node, pid_t tid, int dirfd,
		     const char *path);

/**
 * resolve() - follow an interesting path
 * @tid:       the caller
 * @dirfd:     the caller's number, or AT_FDCWD
 * @no_follow: a symbolic link at the end is not followed
 */
void resolve(const struct node *node, pid_t tid, int dirfd, const char *path,
	     bool no_follow, struct resolved *ret);
