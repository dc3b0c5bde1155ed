/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <sys/stat.h>

#include "backing/buffer.h"
#include "backing/fill.h"
#include "backing/memfd.h"
#include "base/fd.h"

/*
 * What happens to a buffer that nobody refers to: it is verified and zeroed for
 * its next use, or its memory is given back. A verification that fails turns
 * the one into the other within the same job.
 */

/* One punch may take long for small pages: 64 MiB of them some 3 ms. */
#define DROP_CHUNK_BYTES MIB(64)

/*
 * Is a page held by something that the lease does not see: a pipe, an io_uring
 * buffer, O_DIRECT? The kernel cannot split a folio of which a page is held,
 * and punching a part of a folio means splitting it: if that frees nothing, it
 * is held. Tells of folios only; a single page that is held simply leaves the
 * file. (shmem_undo_range(), truncate_inode_partial_folio())
 */
static bool is_pinned(const struct backing_buffer *bb, uint64_t offset_bytes)
{
	struct stat before, after;

	return fstat(bb->watched.own, &before) == 0 &&
	       memfd_punch(bb->watched.own, offset_bytes, KIB(4)) == 0 &&
	       fstat(bb->watched.own, &after) == 0 &&
	       before.st_blocks == after.st_blocks;
}

/* What is held is lost to the host until its holder ends: tell of it. */
static void look_for_pins(struct backing_buffer *bb, uint64_t len_bytes)
{
	uint64_t stride = bb->kind == BACKING_FOLIO ? KIB(64) : FILL_HUGE_BYTES;

	for (uint64_t i = 0; i + stride <= len_bytes; i += stride)
		bb->pinned |= is_pinned(bb, bb->done_bytes + i);
}

enum job_result drop_step(struct job *job, struct worker *worker _unused_)
{
	struct backing_buffer *bb =
		container_of(job, struct backing_buffer, job);
	uint64_t len = MIN(bb->size_bytes - bb->done_bytes, DROP_CHUNK_BYTES);

	if (bb->done_bytes == 0)
		bb->probe = (bb->kind == BACKING_COLLAPSE ||
			     bb->kind == BACKING_FOLIO) &&
			    memfd_is_whole(bb->watched.own, bb->size_bytes);
	if (bb->probe)
		look_for_pins(bb, len);
	/* It cannot fail for a sealed memfd; if it did, close frees as well. */
	(void)memfd_punch(bb->watched.own, bb->done_bytes, len);
	bb->done_bytes += len;
	if (bb->done_bytes < bb->size_bytes)
		return JOB_MORE;
	bb->watched.own = fd_close(bb->watched.own);
	budget_sub_resident(bb->backing->budget, bb->size_bytes);
	return JOB_DONE;
}

static enum job_result turn_into_drop(struct backing_buffer *bb,
				      enum backing_recycled why,
				      struct worker *worker)
{
	bb->recycled = (uint8_t)why;
	bb->done_bytes = 0;
	bb->job.step = drop_step;
	return drop_step(&bb->job, worker);
}

/* Only a buffer that is not of 2 MiB folios yet gains by it. */
static bool wants_collapse(const struct backing_buffer *bb)
{
	return bb->backing->in_force == BACKING_COLLAPSE &&
	       bb->size_bytes >= FILL_HUGE_BYTES &&
	       (bb->kind == BACKING_PLAIN || bb->lesser);
}

/* Zeroes the next chunk, or collapses it in a second round. */
static int recycle_chunk(struct backing_buffer *bb, struct worker *worker)
{
	uint64_t len = MIN(bb->size_bytes - bb->done_bytes, FILL_CHUNK_BYTES);
	int r;

	if (!bb->zeroed)
		r = fill_zero(&worker->window, bb->watched.own,
			      (enum backing_kind)bb->kind, bb->done_bytes, len);
	else
		r = fill_collapse(&worker->window, bb->watched.own,
				  bb->done_bytes, len);
	if (bb->zeroed && r && r != -EAGAIN) {
		/* No free 2 MiB block now: it stays as it is, and good. */
		bb->done_bytes = bb->size_bytes;
		return 0;
	}
	if (r)
		return r;
	bb->done_bytes += len;
	if (bb->done_bytes < bb->size_bytes)
		return 0;
	if (bb->zeroed) {
		bb->kind = BACKING_COLLAPSE;
		bb->lesser = false;
	} else if (wants_collapse(bb)) {
		bb->zeroed = true;
		bb->done_bytes = 0;
	}
	return 0;
}

enum job_result recycle_step(struct job *job, struct worker *worker)
{
	struct backing_buffer *bb =
		container_of(job, struct backing_buffer, job);
	int r;

	if (atomic_load(&bb->cancelled) || !bb->backing->recycle)
		return turn_into_drop(bb, BACKING_DROPPED_NEVER, worker);
	/* Holes cost nothing to look for, and filling them would. */
	if (bb->done_bytes == 0 && !bb->zeroed &&
	    !memfd_is_whole(bb->watched.own, bb->size_bytes))
		return turn_into_drop(bb, BACKING_DROPPED_HOLES, worker);
	r = recycle_chunk(bb, worker);
	if (r == -EAGAIN)
		return turn_into_drop(bb, BACKING_DROPPED_PINNED, worker);
	else if (r)
		return turn_into_drop(bb, BACKING_DROPPED_ERROR, worker);
	if (bb->done_bytes < bb->size_bytes)
		return JOB_MORE;
	if (!memfd_lease_is_whole(bb->watched.own))
		return turn_into_drop(bb, BACKING_DROPPED_OPEN, worker);
	bb->recycled = BACKING_PARKABLE;
	return JOB_DONE;
}
