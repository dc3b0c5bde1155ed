/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>

#include "backing/buffer.h"
#include "backing/memfd.h"
#include "base/err.h"

/*
 * The loop's half of a buffer's use: opened for a client, idle, recycled,
 * parked, opened again, dropped. reuse.c is the workers' half.
 */

int backing_open(struct backing *b, struct backing_buffer *bb,
		 uint32_t fd_flags, int *ret_fd)
{
	int fd = -1, r;

	assert(bb->state == BUFFER_READY || bb->state == BUFFER_LIVE ||
	       bb->state == BUFFER_PARKED);
	if (bb->state == BUFFER_PARKED && !memfd_lease_give(bb->watched.own))
		return BACKING_E_BROKEN;
	r = memfd_open_own(b->fd_directory, bb->watched.own,
			   fd_flags & O_ACCMODE, &fd);
	if (r && bb->state == BUFFER_PARKED &&
	    memfd_lease_take(bb->watched.own))
		return BACKING_E_BROKEN;
	if (r == -EMFILE || r == -ENFILE)
		return BACKING_E_FDS;
	else if (r)
		return err_trace(r);
	if (bb->state == BUFFER_PARKED) {
		b->n_parked--;
		b->parked_bytes -= bb->size_bytes;
	}
	bb->state = BUFFER_LIVE;
	buffer_arm(b, bb);
	*ret_fd = fd;
	return 0;
}

_unused_ static bool is_droppable_live(const struct backing *b,
				       const struct backing_buffer *bb)
{
	return bb->state == BUFFER_LIVE &&
	       lifetime_mode(b->lifetime) == BACKING_LIFETIME_EXPLICIT;
}

void backing_recycle(struct backing *b, struct backing_buffer *bb,
		     backing_recycled_fn done, void *ctx)
{
	assert(bb->state == BUFFER_IDLE || is_droppable_live(b, bb));
	list_remove(&bb->watched.due_link);
	bb->state = BUFFER_RECYCLING;
	bb->done = done;
	bb->ctx = ctx;
	bb->done_bytes = 0;
	bb->zeroed = false;
	bb->job.step = recycle_step;
	bb->job.quiet = true;
	workers_submit(b->workers, &bb->job);
}

static void submit_drop(struct backing *b, struct backing_buffer *bb)
{
	buffer_leave(b, bb);
	bb->state = BUFFER_DROPPING;
	bb->done_bytes = 0;
	bb->job.step = drop_step;
	bb->job.quiet = false; /* somebody may wait for its memory */
	b->n_dropping++;
	workers_submit(b->workers, &bb->job);
}

void backing_drop(struct backing *b, struct backing_buffer *bb)
{
	assert(bb->state != BUFFER_CREATING && bb->state != BUFFER_DROPPING);
	assert(bb->state != BUFFER_LIVE || is_droppable_live(b, bb));
	if (bb->state == BUFFER_RECYCLING) {
		bb->done = NULL;
		atomic_store(&bb->cancelled, true);
		b->n_dropping++;
	} else {
		submit_drop(b, bb);
	}
}

static void count_drop(struct backing *b, const struct backing_buffer *bb)
{
	b->dropped++;
	b->dropped_pinned +=
		bb->pinned || bb->recycled == BACKING_DROPPED_PINNED;
	b->dropped_holes += bb->recycled == BACKING_DROPPED_HOLES;
}

void buffer_recycled(struct backing *b, struct backing_buffer *bb)
{
	backing_recycled_fn done = bb->done;
	enum backing_recycled what = (enum backing_recycled)bb->recycled;

	bb->done = NULL;
	if (atomic_load(&bb->cancelled))
		b->n_dropping--; /* counted by backing_drop() */
	if (what == BACKING_PARKABLE && atomic_load(&bb->cancelled)) {
		submit_drop(b, bb);
		return;
	}
	if (what == BACKING_PARKABLE) {
		bb->state = BUFFER_PARKED;
		b->n_parked++;
		b->parked_bytes += bb->size_bytes;
		done(bb->ctx, bb, what);
		return;
	}
	count_drop(b, bb);
	buffer_leave(b, bb);
	if (done)
		done(bb->ctx, bb, what);
	backing_buffer_free(bb);
}

void buffer_dropped(struct backing *b, struct backing_buffer *bb)
{
	b->n_dropping--;
	count_drop(b, bb);
	backing_buffer_free(bb);
}
