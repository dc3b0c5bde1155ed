/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Trace: every event that changes the model, as lines of text in pipes that
 * clients read; docs/trace-format.md describes the lines, and dmaheap-lab
 * replays them.
 *
 * Units:     times are the node's, in nanoseconds.
 * Ownership: the writing end of a reader's pipe is the trace's, until the
 *            reader has closed his.
 * Threads:   the loop's.
 *
 * Events cost one comparison while nobody reads. A reader that is too slow
 * loses lines; a comment line then says how many.
 */

#include <sys/types.h>

#include "base/base.h"

#define TRACE_READERS_MAX 8u

struct buffer;
struct heap;
struct heap_request;
struct server;
struct trace;

/* Return: 0 or -ENOMEM. */
int trace_new(struct trace **ret, struct server *server) _must_check_;

/* Return: NULL, always. @trace may be NULL. */
struct trace *trace_free(struct trace *trace);
DEFINE_CLEANUP(struct trace *, trace_free);

/**
 * trace_open() - a new reader, who gets the node and its heaps first
 * @ret_fd: receives the reading end of its pipe, the caller's to close
 *
 * Return: 0, SERVER_E_BUSY (TRACE_READERS_MAX), SERVER_E_NO_FD, -ENOMEM.
 */
int trace_open(struct trace *trace, int *ret_fd) _must_check_;

/* @buffer: NULL: the allocation failed with @err (> 0). */
void trace_alloc(struct trace *trace, const struct heap *heap, uid_t uid,
		 const struct heap_request *request,
		 const struct buffer *buffer, int err);
void trace_take(struct trace *trace, const struct buffer *buffer);
void trace_release(struct trace *trace, const struct buffer *buffer);
/* @how: "park", "pool" or "node". */
void trace_finish(struct trace *trace, uint64_t id, const char *how);
void trace_policy(struct trace *trace, const struct heap *heap);
void trace_shrink(struct trace *trace, const struct heap *heap,
		  uint64_t to_bytes);
void trace_refill(struct trace *trace, const struct heap *heap);
/* @detail: "kind=..." and its keys. */
void trace_pressure(struct trace *trace, const char *detail);
