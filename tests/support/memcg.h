/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A memory cgroup for one process of a test, where they can be made.
 *
 * Units:     *_bytes.
 * Ownership: memcg_create() to memcg_destroy().
 * Threads:   one.
 */

#include <stdbool.h>
#include <stdint.h>

struct memcg {
	char dir[256];
	char name[64];       /* below the hierarchy's root, with its slash */
	char procs_env[320]; /* NAME=VALUE for memcg_wrap */
	bool v1;
};

/* Words before a program that put it into the cgroup named in its environment;
 * ends with NULL. */
extern char *const memcg_wrap[];

/* @limit_bytes 0: none. Return: NULL, or why none can be made here. */
const char *memcg_create(struct memcg *cg, uint64_t limit_bytes);

/* Moves the calling process into it. Return: whether that worked. */
bool memcg_join(const struct memcg *cg);

/* Its processes must have ended. */
void memcg_destroy(struct memcg *cg);

/* Return: bytes of shared memory (memfds) that are charged to it. */
uint64_t memcg_shmem_bytes(const struct memcg *cg);

/* Return: processes that it killed for lack of memory. */
uint64_t memcg_oom_kills(const struct memcg *cg);
