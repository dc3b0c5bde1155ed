/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "backing/buffer.h"
#include "backing/fill.h"
#include "backing/hugetlb.h"
#include "backing/memfd.h"
#include "backing/thp.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"

/*
 * A buffer in the making: the first step makes the memfd and reserves its
 * bytes, each further one fills a chunk, the last one checks that all is there.
 * Whatever fails undoes everything, so a buffer is whole or was never there.
 */

static const char TOO_SMALL[] = "smaller than 2 MiB";
static const char TAKEN[] = "the free hugetlb pages were taken meanwhile";
static const char SMALLER_FOLIOS[] = "part of it came in smaller folios";
static const char NO_HUGE[] = "no free 2 MiB block for part of it";

/* A switch may have been changed since it worked. */
static const char *why_lesser(void)
{
	const struct thp_hindrance *h = thp_collapse_hindrance();

	return h ? h->what : NO_HUGE;
}

/* The kind for this buffer, and why not the one in force. */
static enum backing_kind choose_kind(const struct backing *b,
				     const struct making *m,
				     const char **ret_reason)
{
	enum backing_kind kind = b->in_force;
	uint64_t bytes = m->spec.len_bytes;
	const char *why;

	*ret_reason = "";
	if (kind == BACKING_HUGETLB) {
		why = m->no_hugetlb ? TAKEN : hugetlb_refusal(bytes);
		if (!why)
			return kind;
		*ret_reason = why;
		kind = b->collapse_works ? BACKING_COLLAPSE : BACKING_PLAIN;
	}
	if (kind == BACKING_COLLAPSE && bytes < FILL_HUGE_BYTES) {
		if (!**ret_reason)
			*ret_reason = TOO_SMALL;
		kind = BACKING_PLAIN;
	}
	return kind;
}

/* The sentence for an errno of memfd_make(). */
static int explain(const struct making *m, int err,
		   char error[BACKING_ERROR_BYTES])
{
	struct rlimit limit = {0};

	switch (err) {
	case -EMFILE:
	case -ENFILE:
		(void)getrlimit(RLIMIT_NOFILE, &limit);
		snprintf(error, BACKING_ERROR_BYTES,
			 "no free file descriptor: one is needed per buffer, "
			 "RLIMIT_NOFILE of the daemon is %" PRIu64,
			 (uint64_t)limit.rlim_cur);
		return BACKING_E_FDS;
	case -EFBIG:
		(void)getrlimit(RLIMIT_FSIZE, &limit);
		snprintf(error, BACKING_ERROR_BYTES,
			 "%" PRIu64 " bytes asked, RLIMIT_FSIZE of the daemon "
			 "is %" PRIu64,
			 m->spec.len_bytes, (uint64_t)limit.rlim_cur);
		return BACKING_E_FILE_SIZE;
	case -ENOMEM:
		snprintf(error, BACKING_ERROR_BYTES,
			 "the kernel refused memory for %" PRIu64
			 " bytes (vm.overcommit_memory, or none free)",
			 m->spec.len_bytes);
		return BACKING_E_BUDGET;
	default:
		snprintf(error, BACKING_ERROR_BYTES,
			 "making the buffer failed: %s", strerror(-err));
		return err;
	}
}

static enum budget_source budget_source(const struct backing_buffer *bb)
{
	return bb->kind == BACKING_HUGETLB ? BUDGET_HUGETLB : BUDGET_HOST;
}

/* What the kernel's counters say of this buffer's orders; of the whole host, so
 * another's failure may be taken for ours. */
static uint64_t count_fallbacks(const struct backing_buffer *bb,
				const struct making *m)
{
	uint64_t n = 0;

	if (bb->kind != BACKING_FOLIO)
		return 0;
	for (unsigned int i = 0; i < m->spec.n_runs; i++) {
		uint64_t block = (uint64_t)m->spec.page_size_bytes
				 << m->runs[i].order;
		unsigned int order = 0;

		while (order < THP_ORDER_MAX && thp_bytes(order) < block)
			order++;
		if (order > 0)
			n += thp_counter(order, "shmem_fallback");
	}
	return n;
}

static int start(struct backing_buffer *bb, struct making *m, char *error)
{
	char name[BACKING_HEAP_NAME_BYTES + 40];
	int r;

	m->started = true;
	m->queue_ns = clock_now_ns() - m->submitted_ns;
	bb->kind = (uint8_t)choose_kind(bb->backing, m, &m->reason);
	snprintf(name, sizeof(name), "dmaheap:%s:%" PRIu64, m->heap,
		 m->spec.id);
	r = memfd_make(name, bb->size_bytes, bb->kind == BACKING_HUGETLB,
		       &bb->watched.own);
	if (r)
		return explain(m, r, error);
	r = budget_reserve(bb->backing->budget, budget_source(bb),
			   bb->size_bytes, error);
	m->reserved = r == 0;
	m->fallbacks_before = count_fallbacks(bb, m);
	return r;
}

/* The next piece: all of one chunk, and for folios all of one run. */
static void next_piece(const struct backing_buffer *bb, const struct making *m,
		       struct fill_piece *ret)
{
	uint64_t end = 0, block = 0;

	ret->offset_bytes = bb->done_bytes;
	ret->len_bytes = MIN(bb->size_bytes - bb->done_bytes, FILL_CHUNK_BYTES);
	ret->block_bytes = FILL_HUGE_BYTES;
	if (bb->kind != BACKING_FOLIO)
		return;
	for (unsigned int i = 0; end <= bb->done_bytes; i++) {
		block = (uint64_t)m->spec.page_size_bytes << m->runs[i].order;
		end += block * m->runs[i].n_blocks;
	}
	ret->len_bytes = MIN(ret->len_bytes, end - bb->done_bytes);
	ret->block_bytes = block;
}

static int fill(struct backing_buffer *bb, struct making *m,
		struct worker *worker, char *error)
{
	struct budget *budget = bb->backing->budget;
	struct fill_piece piece;
	bool lesser = false;
	int r;

	next_piece(bb, m, &piece);
	r = budget_chunk_begin(budget, budget_source(bb), piece.len_bytes,
			       error);
	if (r)
		return r;
	r = fill_piece(&worker->window, bb->watched.own,
		       (enum backing_kind)bb->kind, &piece, &lesser);
	budget_chunk_end(budget, piece.len_bytes, r == 0);
	if (r)
		return explain(m, r, error);
	bb->done_bytes += piece.len_bytes;
	if (lesser && !bb->lesser)
		m->reason = why_lesser();
	bb->lesser |= lesser;
	m->any_huge |= !lesser && piece.len_bytes >= FILL_HUGE_BYTES;
	return 0;
}

static void set_identity(struct backing_buffer *bb, const struct making *m)
{
	struct backing_identity id = {
		.id = m->spec.id,
		.uid = m->spec.uid,
		.size_bytes = bb->size_bytes,
		.page_size_bytes = m->spec.page_size_bytes,
	};

	memcpy(id.heap, m->heap, sizeof(id.heap));
	for (unsigned int i = 0; i < m->spec.n_runs; i++)
		id.blocks[m->runs[i].order] += m->runs[i].n_blocks;
	/* Without it (hugetlb, or a kernel that lacks it) only a restart of the
	 * daemon suffers: it cannot adopt the buffer. And nobody shall while
	 * this one lives. */
	if (memfd_claim(bb->watched.own) == 0)
		(void)memfd_write_identity(bb->watched.own, &id);
}

static int finish(struct backing_buffer *bb, struct making *m, char *error)
{
	struct stat st;
	uint64_t n_fallbacks, there_bytes;
	int r = memfd_trim(bb->watched.own, bb->size_bytes, &st);

	if (r)
		return explain(m, r, error);
	there_bytes = (uint64_t)st.st_blocks * 512;
	if (there_bytes != bb->size_bytes) {
		snprintf(error, BACKING_ERROR_BYTES,
			 "the kernel filled %" PRIu64
			 " bytes instead of %" PRIu64,
			 there_bytes, bb->size_bytes);
		return err_raise(-EIO);
	}
	n_fallbacks = count_fallbacks(bb, m) - m->fallbacks_before;
	if (n_fallbacks) {
		atomic_fetch_add(&bb->backing->folio_fallbacks, n_fallbacks);
		m->reason = SMALLER_FOLIOS;
	}
	if (bb->kind == BACKING_COLLAPSE && !m->any_huge)
		bb->kind = BACKING_PLAIN;
	bb->dev = st.st_dev;
	bb->ino = st.st_ino;
	set_identity(bb, m);
	m->wd = lifetime_watch(bb->backing->lifetime, bb->watched.own);
	return 0;
}

static void undo(struct backing_buffer *bb, struct making *m)
{
	struct budget *budget = bb->backing->budget;

	if (bb->watched.own >= 0)
		(void)memfd_punch(bb->watched.own, 0, bb->size_bytes);
	bb->watched.own = fd_close(bb->watched.own);
	budget_sub_resident(budget, bb->done_bytes);
	if (m->reserved)
		budget_unreserve(budget, bb->size_bytes - bb->done_bytes);
	m->reserved = false;
	m->started = false;
	bb->done_bytes = 0;
}

enum job_result make_step(struct job *job, struct worker *worker)
{
	struct backing_buffer *bb =
		container_of(job, struct backing_buffer, job);
	struct making *m = bb->making;
	uint64_t begin_ns = clock_now_ns();
	char error[BACKING_ERROR_BYTES] = "";
	int r = 0;

	if (atomic_load(&bb->cancelled))
		r = -ECANCELED;
	else if (!m->started)
		r = start(bb, m, error);
	if (!r)
		r = fill(bb, m, worker, error);
	if (!r && bb->done_bytes == bb->size_bytes)
		r = finish(bb, m, error);
	if (r)
		undo(bb, m);
	if (r == BACKING_E_BUDGET && bb->kind == BACKING_HUGETLB &&
	    !m->no_hugetlb) {
		m->no_hugetlb = true;
		return JOB_MORE;
	}
	m->r = r;
	if (r)
		making_set_error(m, error);
	m->populate_ns += clock_now_ns() - begin_ns;
	return r || bb->done_bytes == bb->size_bytes ? JOB_DONE : JOB_MORE;
}
