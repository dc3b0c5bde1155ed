/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Fill: puts zeroed memory of a chosen kind into a memfd, piece by piece.
 *
 * plain     write() of zeros: order 0, no mapping
 * collapse  one page written into each 2 MiB, then MADV_COLLAPSE, which puts a
 *           zeroed 2 MiB folio in their place; the rest as plain
 * folio     mapped at an address whose alignment selects the folio order (see
 *           shmem_get_folio() and thp_vma_suitable_order() in the kernel)
 * hugetlb   mapped; reserved pages
 *
 * Zeroing for the next use goes by write() as well, so the daemon never touches
 * a mapping of a buffer and cannot be made to fault by a client's holes.
 *
 * Units:     *_bytes; offsets and lengths are multiples of the page size.
 * Ownership: descriptors are borrowed.
 * Threads:   a worker, with its own window.
 */

#include "backing/backing.h"
#include "backing/window.h"

#define FILL_CHUNK_BYTES MIB(4) /* a step: what others may have to wait for */
#define FILL_HUGE_BYTES  MIB(2)

struct fill_piece {
	uint64_t offset_bytes;
	uint64_t len_bytes;   /* <= FILL_CHUNK_BYTES */
	uint64_t block_bytes; /* size of the blocks it is part of */
};

/**
 * fill_piece() - populate a piece of an empty memfd
 * @kind:       not BACKING_AUTO
 * @ret_lesser: set to true if smaller folios than asked for had to do; else
 *              untouched
 *
 * Return: 0, or a negated errno. No memory is -ENOMEM, whatever the kernel
 * calls it: EFAULT and ENOSPC with vm.overcommit_memory = 2.
 */
int fill_piece(struct window *w, int fd, enum backing_kind kind,
	       const struct fill_piece *piece, bool *ret_lesser) _must_check_;

/* Return: 0 or a negated errno, as fill_piece(). */
int fill_zero(struct window *w, int fd, enum backing_kind kind,
	      uint64_t offset_bytes, uint64_t len_bytes) _must_check_;

/**
 * fill_collapse() - make 2 MiB folios of the whole 2 MiB ranges of a piece
 *
 * Return: 0, -EAGAIN (a page is held by something else), or another negated
 * errno when the kernel could not (nothing is lost then).
 */
int fill_collapse(struct window *w, int fd, uint64_t offset_bytes,
		  uint64_t len_bytes) _must_check_;

/**
 * fill_count_huge() - bytes of a piece that are mapped as 2 MiB folios
 *
 * Return: 0, -ENOTSUP where the kernel cannot tell (before 6.7), -errno.
 */
int fill_count_huge(struct window *w, int fd, uint64_t offset_bytes,
		    uint64_t len_bytes, uint64_t *ret_bytes) _must_check_;
