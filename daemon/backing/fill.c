/* SPDX-License-Identifier: MIT */
#include "backing/fill.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ioctl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* since 5.14 */
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* since 5.14 */
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* since 6.1 */
#endif

/* Of <linux/fs.h> since 6.7. */
struct pagemap_scan {
	uint64_t size;
	uint64_t flags;
	uint64_t start;
	uint64_t end;
	uint64_t walk_end;
	uint64_t vec;
	uint64_t vec_len;
	uint64_t max_pages;
	uint64_t category_inverted;
	uint64_t category_mask;
	uint64_t category_anyof_mask;
	uint64_t return_mask;
};
struct pagemap_region {
	uint64_t start;
	uint64_t end;
	uint64_t categories;
};
#define PAGEMAP_SCAN_IOCTL   _IOWR('f', 16, struct pagemap_scan)
#define PAGEMAP_PAGE_IS_HUGE (1u << 6)

/* Copied from again and again: what is so small stays in the first cache and
 * leaves the second to the buffer. */
#define ZEROS_BYTES KIB(4)
#define ZEROS_MAX   64u /* pieces of a write */
static const char zeros[ZEROS_BYTES];

/* One errno for "no memory": the kernel has several. */
static int memory_errno(int err)
{
	switch (err) {
	case EFAULT: /* overcommit refused the page */
	case ENOSPC: /* likewise, of a write */
		return -ENOMEM;
	default:
		return -err;
	}
}

/* Return: as writev(); fewer than @len_bytes if they are many. */
static ssize_t write_some_zeros(int fd, uint64_t offset_bytes,
				uint64_t len_bytes)
{
	struct iovec iov[ZEROS_MAX];
	unsigned int n = 0;

	for (; len_bytes > 0 && n < ZEROS_MAX; n++) {
		iov[n].iov_base = (void *)(uintptr_t)zeros;
		iov[n].iov_len = MIN(len_bytes, ZEROS_BYTES);
		len_bytes -= iov[n].iov_len;
	}
	return pwritev(fd, iov, (int)n, (off_t)offset_bytes);
}

static int write_zeros(int fd, uint64_t offset_bytes, uint64_t len_bytes)
{
	ssize_t n;

	while (len_bytes > 0) {
		n = write_some_zeros(fd, offset_bytes, len_bytes);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return err_raise(n < 0 ? memory_errno(errno) : -ENOMEM);
		offset_bytes += (uint64_t)n;
		len_bytes -= (uint64_t)n;
	}
	return 0;
}

/* madvise() over a mapping of the piece. */
static int advise(void *addr, uint64_t len_bytes, int advice)
{
	while (madvise(addr, len_bytes, advice) < 0)
		if (errno != EINTR)
			return memory_errno(errno);
	return 0;
}

int fill_collapse(struct window *w, int fd, uint64_t offset_bytes,
		  uint64_t len_bytes)
{
	uint64_t start = align_up(offset_bytes, FILL_HUGE_BYTES);
	uint64_t end = align_down(offset_bytes + len_bytes, FILL_HUGE_BYTES);
	void *p;
	int r;

	if (start >= end)
		return 0;
	r = window_map(w, fd, start, end - start, FILL_HUGE_BYTES, &p);
	if (r)
		return err_trace(r);
	/* Where the switch for 2 MiB is at "advise" it is refused otherwise. */
	(void)madvise(p, end - start, MADV_HUGEPAGE);
	/* Never rounded up past the end: that would allocate beyond it. */
	r = advise(p, end - start, MADV_COLLAPSE);
	window_unmap(w, p, end - start);
	return r;
}

static int fill_collapsed(struct window *w, int fd,
			  const struct fill_piece *piece, bool *ret_lesser)
{
	uint64_t end = piece->offset_bytes + piece->len_bytes;
	uint64_t huge = align_up(piece->offset_bytes, FILL_HUGE_BYTES);
	int r = 0;

	/* A range without any page is refused: one page opens it. */
	for (uint64_t o = huge; o + FILL_HUGE_BYTES <= end && !r;
	     o += FILL_HUGE_BYTES)
		r = write_zeros(fd, o, KIB(4));
	if (r)
		return err_trace(r);
	r = fill_collapse(w, fd, piece->offset_bytes, piece->len_bytes);
	if (r) {
		*ret_lesser = true;
		return write_zeros(fd, piece->offset_bytes, piece->len_bytes);
	}
	huge = MIN(huge, end);
	r = write_zeros(fd, piece->offset_bytes, huge - piece->offset_bytes);
	end = MAX(align_down(end, FILL_HUGE_BYTES), huge);
	return r ? r
		 : write_zeros(fd, end,
			       piece->offset_bytes + piece->len_bytes - end);
}

/* Populates through a mapping whose alignment selects the order. */
static int fill_mapped(struct window *w, int fd, const struct fill_piece *piece,
		       int advice)
{
	void *p;
	int r = window_map(w, fd, piece->offset_bytes, piece->len_bytes,
			   piece->block_bytes, &p);

	if (r)
		return err_trace(r);
	if (advice)
		r = advise(p, piece->len_bytes, advice);
	if (!r)
		r = advise(p, piece->len_bytes, MADV_POPULATE_WRITE);
	window_unmap(w, p, piece->len_bytes);
	return r;
}

int fill_piece(struct window *w, int fd, enum backing_kind kind,
	       const struct fill_piece *piece, bool *ret_lesser)
{
	switch (kind) {
	case BACKING_COLLAPSE:
		return fill_collapsed(w, fd, piece, ret_lesser);
	case BACKING_FOLIO:
		if (piece->block_bytes > KIB(4))
			return fill_mapped(w, fd, piece, MADV_HUGEPAGE);
		return write_zeros(fd, piece->offset_bytes, piece->len_bytes);
	case BACKING_HUGETLB:
		return fill_mapped(w, fd, piece, 0);
	default:
		return write_zeros(fd, piece->offset_bytes, piece->len_bytes);
	}
}

int fill_zero(struct window *w, int fd, enum backing_kind kind,
	      uint64_t offset_bytes, uint64_t len_bytes)
{
	void *p;
	int r;

	if (kind != BACKING_HUGETLB)
		return write_zeros(fd, offset_bytes, len_bytes);
	/* hugetlbfs has no write(); whole by st_blocks, so this cannot fault */
	r = window_map(w, fd, offset_bytes, len_bytes, FILL_HUGE_BYTES, &p);
	if (r)
		return err_trace(r);
	memset(p, 0, len_bytes);
	window_unmap(w, p, len_bytes);
	return 0;
}

static int scan_huge(int pagemap, void *p, uint64_t len_bytes,
		     uint64_t *ret_bytes)
{
	struct pagemap_region region[WINDOW_MAX_BYTES / FILL_HUGE_BYTES];
	struct pagemap_scan scan = {
		.size = sizeof(scan),
		.start = (uintptr_t)p,
		.end = (uintptr_t)p + len_bytes,
		.vec = (uintptr_t)region,
		.vec_len = ARRAY_SIZE(region),
		.category_mask = PAGEMAP_PAGE_IS_HUGE,
		.return_mask = PAGEMAP_PAGE_IS_HUGE,
	};
	int n = ioctl(pagemap, PAGEMAP_SCAN_IOCTL, &scan);

	if (n < 0)
		return errno == ENOTTY || errno == EINVAL ? -ENOTSUP : -errno;
	*ret_bytes = 0;
	for (int i = 0; i < n; i++)
		*ret_bytes += region[i].end - region[i].start;
	return 0;
}

int fill_count_huge(struct window *w, int fd, uint64_t offset_bytes,
		    uint64_t len_bytes, uint64_t *ret_bytes)
{
	_cleanup_(fd_closep) int pagemap = -1;
	void *p;
	int r;

	pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	if (pagemap < 0)
		return -ENOTSUP;
	r = window_map(w, fd, offset_bytes, len_bytes, FILL_HUGE_BYTES, &p);
	if (r)
		return err_trace(r);
	r = advise(p, len_bytes, MADV_POPULATE_READ);
	if (!r)
		r = scan_huge(pagemap, p, len_bytes, ret_bytes);
	window_unmap(w, p, len_bytes);
	return r;
}
