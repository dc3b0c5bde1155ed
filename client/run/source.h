/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Source: where buffers come from: the daemon, through libdmaheap.
 *
 * Requests of one library handle are answered in turn, and an allocation may
 * stall for as long as the model says. So each request in flight has a handle
 * of its own, from a pool that grows to a limit; beyond it requests wait.
 *
 * Units:     *_bytes.
 * Ownership: returned fds are the caller's.
 * Threads:   any thread may call anything but source_free().
 */

#include <dmaheap/dmaheap.h>

#include <stdbool.h>

struct source;

/**
 * source_new() - connect to the daemon
 * @socket_path: NULL: the library's search
 * @max_handles: requests in flight at once; the daemon's limit of connections
 *               per uid bounds them too
 *
 * Return: 0, or the library's error.
 */
int source_new(struct source **ret, const char *socket_path,
	       unsigned int max_handles);

/* Return: the daemon's socket; NULL when it has none. The source's. */
const char *source_socket_path(const struct source *source);

/* Return: NULL, always. @source may be NULL; nobody may still use it. */
struct source *source_free(struct source *source);

/**
 * source_heaps() - the daemon's heap names, then their aliases
 * @ret_names: receives at most @capacity names
 *
 * Return: how many, or the library's error.
 */
int source_heaps(struct source *source,
		 char (*ret_names)[DMAHEAP_NAME_MAX_BYTES], size_t capacity);

/**
 * source_alloc() - one buffer
 * @ret_report: receives the daemon's report on success
 * @ret_why:    receives its sentence on failure, or ""
 *
 * When the daemon is gone one message goes to standard error, and another when
 * it is back.
 *
 * Return: the fd (close-on-exec here), or the library's error.
 */
int source_alloc(struct source *source, const char *heap, uint64_t len_bytes,
		 uint32_t fd_flags, struct dmaheap_alloc_report *ret_report,
		 char ret_why[DMAHEAP_ERROR_TEXT_MAX_BYTES]);

/* The daemon's process, for a pidfd; 0 when it is not visible from here; or the
 * library's error. */
int source_daemon_pid(struct source *source);

/*
 * The daemon's process has ended: says so, and from now on an allocation tries
 * to connect at once instead of waiting for the daemon to come back.
 */
void source_daemon_died(struct source *source);

/* @fd is borrowed. Return: 0, or the library's error. */
int source_set_name(struct source *source, int fd, const char *name);
