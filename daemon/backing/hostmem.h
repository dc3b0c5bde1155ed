/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Host memory: what the machine and each memory cgroup above this process
 * leave, read from /proc and the cgroup file systems, version 1 and 2.
 *
 * Units:     *_bytes.
 * Ownership: hostmem_init() allocates, hostmem_fini() frees.
 * Threads:   after hostmem_init() any thread may read.
 */

#include "base/base.h"

#define HOSTMEM_NO_LIMIT   UINT64_MAX
#define HOSTMEM_LEVELS_MAX 32u

struct hostmem_level {
	char *dir;  /* of the cgroup's files; NULL: the machine */
	char *name; /* the cgroup as this process sees it */
	bool v1;
	bool topmost; /* of those that can be seen */
};

struct hostmem {
	char *root; /* "" but in tests */
	unsigned int n_levels;
	struct hostmem_level level[HOSTMEM_LEVELS_MAX];
};

struct hostmem_reading {
	uint64_t limit_bytes; /* HOSTMEM_NO_LIMIT: the rest means nothing */
	uint64_t available_bytes;
	const char *key; /* the file, or its line, that holds the limit */
};

/**
 * hostmem_init() - find the machine and every memory cgroup above us
 * @root: prefix of all paths, "" for the host itself
 *
 * Cgroups that cannot be found or read are left out: the machine remains.
 * Return: 0, -ENOMEM, -ENOENT (no readable /proc/meminfo).
 */
int hostmem_init(struct hostmem *h, const char *root) _must_check_;
void hostmem_fini(struct hostmem *h);

/* Return: 0, or a negated errno when a file vanished or is not understood. */
int hostmem_read(const struct hostmem *h, unsigned int level,
		 struct hostmem_reading *ret) _must_check_;
