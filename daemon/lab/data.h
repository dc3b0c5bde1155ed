/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Where the shipped scenarios, profiles and snapshots are: below
 * $DMAHEAP_DATA_DIR, else below "configs" or "share/dmaheap" in the nearest
 * directory above the program's own that has one (a build tree, an
 * installation).
 *
 * Ownership: results go to the caller's buffers.
 * Threads:   main thread.
 */

#include "base/base.h"

#define LAB_PATH_BYTES 4096u

/* Return: true if @name is a path: it has a '/' or ends in ".conf". */
bool lab_is_path(const char *name);

/**
 * lab_find() - a shipped file, or one beside the file that names it
 * @ret:    receives the path
 * @kind:   "scenarios", "profiles", "snapshots"
 * @name:   a path (lab_is_path()), relative to the directory of @beside, or
 *          the name of a shipped one
 * @suffix: added to a name; "" for directories
 * @beside: the file that names it; NULL: the working directory
 *
 * Return: true if it exists.
 */
bool lab_find(char ret[LAB_PATH_BYTES], const char *kind, const char *name,
	      const char *suffix, const char *beside);

/*
 * Calls @fn with the name of each shipped file of @kind, sorted, its @suffix
 * cut off. Return: how many; 0 as well when there is no such directory.
 */
unsigned int lab_list(const char *kind, const char *suffix,
		      void (*fn)(void *ctx, const char *name), void *ctx);
