/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Holders: which processes hold or map a buffer, found by inode over /proc as
 * far as this user may look.
 *
 * Ownership: holders_find() gives the only reference; holders_free() ends it.
 * Threads:   one.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <dmaheap/protocol.h>

struct holder {
	pid_t pid;
	char comm[16];
	unsigned int n_fds;
	unsigned int n_mappings;
};

struct holders;

/**
 * holders_find() - search /proc for holders of @records
 * @records: sorted in any way; kept by reference
 *
 * The daemon's own fds are not counted: it is @daemon_pid.
 *
 * Return: NULL when out of memory or without /proc.
 */
struct holders *holders_find(const struct dmaheap_buffer_record *records,
			     size_t n, pid_t daemon_pid);

/* Return: the @i-th holder of record @record, or NULL after the last. */
const struct holder *holders_get(const struct holders *h, size_t record,
				 size_t i);

/* Return: how many processes could not be looked into. */
unsigned int holders_hidden(const struct holders *h);

/* Return: NULL, always. @h may be NULL. */
struct holders *holders_free(struct holders *h);
