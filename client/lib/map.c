/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <dmaheap/dmaheap.h>

#include "lib/macros.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22 /* since 5.14 */
#define MADV_POPULATE_WRITE 23
#endif

#ifndef PIDFD_SELF
#define PIDFD_SELF (-10000) /* since 6.14 */
#endif

/* A mapping congruent to its file at this size can use 2 MiB page tables. */
#define HUGE_BYTES ((size_t)2 << 20)

/* Folios of this size and more are worth to be looked for. */
#define LARGE_BYTES ((size_t)1 << 20)

/* What the kernel enters at once of small pages. */
#define AROUND_BYTES  ((size_t)64 << 10)
#define PAIR_BYTES    (2 * AROUND_BYTES)
#define PAIRS_AT_ONCE 64u

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/* Address space for @len_bytes that begins at a multiple of 2 MiB. */
static void *reserve(size_t len_bytes)
{
	size_t span = len_bytes + HUGE_BYTES;
	char *base, *start;

	if (span < len_bytes) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	base = mmap(NULL, span, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED)
		return MAP_FAILED;
	start = (char *)(((uintptr_t)base + HUGE_BYTES - 1) &
			 ~(uintptr_t)(HUGE_BYTES - 1));
	/* Both cut a piece off: one mapping more, which may be one too many. */
	if ((start > base && munmap(base, (size_t)(start - base)) < 0) ||
	    munmap(start + len_bytes,
		   (size_t)(base + span - start) - len_bytes) < 0) {
		munmap(base, span);
		errno = ENOMEM;
		return MAP_FAILED;
	}
	return start;
}

static void *map_at(void *start, size_t len_bytes, int prot, int flags, int fd)
{
	return mmap(start, len_bytes, prot, MAP_SHARED | flags, fd, 0);
}

/*
 * Return: @len_bytes of @fd at a multiple of 2 MiB; else as mmap().
 *
 * Where the kernel puts it is right more often than not, since one goes below
 * the other; if not, the place that begins before it is. What is smaller would
 * fall into the gaps that this leaves.
 */
static void *map_congruent(size_t len_bytes, int prot, int fd)
{
	void *start = NULL, *map;

	for (int tries = len_bytes < HUGE_BYTES ? 0 : 2; tries > 0; tries--) {
		map = map_at(start, len_bytes, prot, 0, fd);
		if (map == MAP_FAILED || (uintptr_t)map % HUGE_BYTES == 0)
			return map;
		munmap(map, len_bytes);
		start = (void *)((uintptr_t)map & ~(uintptr_t)(HUGE_BYTES - 1));
	}
	start = reserve(len_bytes);
	if (start == MAP_FAILED)
		return MAP_FAILED;
	map = map_at(start, len_bytes, prot, MAP_FIXED, fd);
	if (map == MAP_FAILED) {
		int err = errno;

		munmap(start, len_bytes);
		errno = err;
	}
	return map;
}

/* Page faults of this thread so far. */
static long count_faults(void)
{
	struct rusage usage = {0};

	(void)getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_minflt + usage.ru_majflt;
}

/* Enters the two pages in the middle of each @folio_bytes of @len_bytes. */
static int enter_middles(char *p, size_t len_bytes, size_t folio_bytes,
			 int advice)
{
	size_t page = page_bytes();

	for (size_t at = folio_bytes / 2; at < len_bytes; at += folio_bytes)
		if (madvise(p + at - page, 2 * page, advice) < 0)
			return -1;
	return 0;
}

/*
 * One fault enters a whole folio, while populating walks over each of its
 * pages. Folios are aligned to their size, so the two pages in the middle of
 * 2 MiB or 1 MiB take one fault if that is one folio, and else two, be it in
 * this look or in the one before: 2 MiB that took no more faults than they have
 * folios of the size that is looked for are entered.
 *
 * A buffer's large blocks come first: once they are smaller they stay so.
 *
 * Return: how many bytes at the beginning are all entered now.
 */
static size_t enter_large(char *map, size_t len_bytes, int advice)
{
	size_t folio_bytes = HUGE_BYTES, at = 0, n;
	long before = count_faults(), now;

	while (folio_bytes >= LARGE_BYTES && len_bytes - at >= LARGE_BYTES) {
		n = len_bytes - at >= HUGE_BYTES ? HUGE_BYTES : LARGE_BYTES;
		folio_bytes = folio_bytes < n ? folio_bytes : n;
		if (enter_middles(map + at, n, folio_bytes, advice) < 0)
			break;
		now = count_faults();
		/* None at all: they are not counted here. */
		if (now > before && now - before <= (long)(n / folio_bytes)) {
			before = now;
			at += n;
		} else {
			folio_bytes /= 2;
		}
	}
	return at;
}

/* Return: how many faults it took to enter the page at @p, or -1. */
static long enter_page(char *p)
{
	long before = count_faults();

	if (madvise(p, page_bytes(), MADV_POPULATE_READ) < 0)
		return -1;
	return count_faults() - before;
}

/* Return: whether the kernel enters the neighbours of a page too. Looked for
 * where enter_large() has entered none yet, in the second of two pairs. */
static bool enters_neighbours(char *map, size_t len_bytes)
{
	char *p = map + PAIR_BYTES, *last = p + AROUND_BYTES - page_bytes();

	return page_bytes() < AROUND_BYTES && len_bytes >= 2 * PAIR_BYTES &&
	       enter_page(last) > 0 && enter_page(p) == 0;
}

/* enter_middles() of @n pairs, many at once if the kernel can. */
static int enter_pairs(char *map, size_t n)
{
	size_t page = page_bytes(), i = 0;
	struct iovec middle[PAIRS_AT_ONCE];

	while (i < n) {
		size_t m = n - i < PAIRS_AT_ONCE ? n - i : PAIRS_AT_ONCE;

		for (size_t k = 0; k < m; k++)
			middle[k] = (struct iovec){map + (i + k) * PAIR_BYTES +
							   AROUND_BYTES - page,
						   2 * page};
		if (syscall(SYS_process_madvise, PIDFD_SELF, middle, m,
			    MADV_POPULATE_READ, 0) != (long)(m * 2 * page))
			break;
		i += m;
	}
	return enter_middles(map + i * PAIR_BYTES, (n - i) * PAIR_BYTES,
			     PAIR_BYTES, MADV_POPULATE_READ);
}

/*
 * A fault for reading enters the neighbours of a page too, AROUND_BYTES of them
 * unless the kernel was told otherwise: asked for one page of each it does the
 * same as for all, without a walk over all. Two of them are a pair:
 * enter_large() may have entered pages on both sides of where two pairs meet,
 * and what is there already takes no fault.
 *
 * Return: as madvise().
 */
static int enter_small(char *map, size_t len_bytes)
{
	size_t done = 0;

	if (enters_neighbours(map, len_bytes)) {
		done = len_bytes / PAIR_BYTES * PAIR_BYTES;
		if (enter_pairs(map, done / PAIR_BYTES) < 0)
			return -1;
	}
	return done == len_bytes ? 0
				 : madvise(map + done, len_bytes - done,
					   MADV_POPULATE_READ);
}

/*
 * The memory is there: this only enters it into the page table. For writing,
 * large folios are entered as written to already: the first write to each 4 KiB
 * of a 2 MiB entry that is not takes 50 ns where the hypervisor has no such
 * entries.
 */
static void enter(char *map, size_t len_bytes, int prot, int fd)
{
	int advice =
		prot & PROT_WRITE ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
	size_t done = enter_large(map, len_bytes, advice);

	if (done < len_bytes && enter_small(map + done, len_bytes - done) < 0 &&
	    errno == EINVAL) /* an old kernel */
		(void)mmap(map, len_bytes, prot,
			   MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd, 0);
}

/* A part of a huge page: the mapping would be longer than what it replaces, and
 * munmap() would refuse to end it. */
static bool is_part_of_hugetlb(int fd, const struct stat *st, size_t len_bytes)
{
	struct statfs fs;

	return st->st_blksize >= (blksize_t)HUGE_BYTES &&
	       len_bytes % (size_t)st->st_blksize != 0 &&
	       fstatfs(fd, &fs) == 0 && fs.f_type == HUGETLBFS_MAGIC;
}

_public_ void *dmaheap_map(int fd, size_t len_bytes, int prot)
{
	size_t page = page_bytes();
	struct stat st;
	void *map;

	if (fstat(fd, &st) < 0)
		return MAP_FAILED;
	/* Beyond the end mmap() succeeds and the access faults. */
	if (len_bytes == 0 || st.st_size < 0 ||
	    len_bytes > (uint64_t)st.st_size ||
	    is_part_of_hugetlb(fd, &st, len_bytes)) {
		errno = EINVAL;
		return MAP_FAILED;
	}
	len_bytes = (len_bytes + page - 1) & ~(page - 1);
	map = map_congruent(len_bytes, prot, fd);
	if (map != MAP_FAILED)
		enter(map, len_bytes, prot, fd);
	return map;
}
