/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Names: what DMA_BUF_SET_NAME called the buffers of this run, so that readlink
 * and fdinfo can show it. The daemon keeps the name for everybody else.
 *
 * Bounded: the name that was set longest ago is forgotten when there are
 * NAMES_MAX; the buffer then reads as one without a name.
 *
 * Ownership: names_new() gives the only reference; names_free() ends it.
 * Threads:   any.
 */

#include <dmaheap/protocol.h>
#include <stdbool.h>
#include <sys/types.h>

#define NAMES_MAX 16384u

struct names;

/* Return: NULL when out of memory. */
struct names *names_new(void);
struct names *names_free(struct names *names);

void names_set(struct names *names, dev_t dev, ino_t ino, const char *name);

/* A new buffer at this inode begins without a name. */
void names_forget(struct names *names, dev_t dev, ino_t ino);

/* Return: whether one was set, "" included; @ret_name is "" otherwise. */
bool names_get(struct names *names, dev_t dev, ino_t ino,
	       char ret_name[DMAHEAP_NAME_MAX_BYTES]);
