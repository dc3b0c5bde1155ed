/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Stats segment: the memfd of dmaheap/stats.h, its sequence locks, and the
 * read-only descriptors that clients get.
 *
 * Units:     as dmaheap/stats.h.
 * Ownership: segment_new() gives the caller the only reference; descriptors
 *            that were handed out outlive it.
 * Threads:   one writer, the loop's thread; readers are other processes.
 */

#include <dmaheap/stats.h>

#include "base/base.h"

struct segment;

/**
 * segment_new() - create the segment, zero but for its header
 *
 * Nobody but the caller can write it or change its size, whatever descriptor
 * he has (F_SEAL_FUTURE_WRITE).
 *
 * Return: 0, -ENOMEM, or what memfd_create(), ftruncate(), mmap() or fcntl()
 * gave.
 */
int segment_new(struct segment **ret) _must_check_;

/* Return: NULL, always. @segment may be NULL. */
struct segment *segment_free(struct segment *segment);
DEFINE_CLEANUP(struct segment *, segment_free);

/* The mapping. Write a section between segment_begin() and segment_end(). */
struct dmaheap_stats *segment_stats(struct segment *segment);

/* @seq: the section's first member. */
void segment_begin(uint64_t *seq);
void segment_end(uint64_t *seq);

/**
 * segment_open() - a read-only descriptor
 * @ret_fd: receives it, the caller's to close
 *
 * Return: 0, -EMFILE, or what open() gave.
 */
int segment_open(const struct segment *segment, int *ret_fd) _must_check_;

/* Appends a finished allocation to the ring; @event->n is set here. */
void segment_add_event(struct segment *segment,
		       const struct dmaheap_stats_event *event);
