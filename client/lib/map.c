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
#define LARGE_BYTES   ((size_t)1 << 20)
#define LARGE_AT_ONCE 8u /* before the faults are counted */

/* What the kernel enters at once of small pages. */
#define AROUND_BYTES ((size_t)64 << 10)
#define LOTS_AT_ONCE 64u

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
	if (start > base)
		munmap(base, (size_t)(start - base));
	munmap(start + len_bytes, (size_t)(base + span - start) - len_bytes);
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

/* Folios being entered into the page table. */
struct entering {
	int advice;
	long n_faults; /* before the first */
	long n_folios; /* so far */
};

static void entering_init(struct entering *e, int advice)
{
	*e = (struct entering){.advice = advice, .n_faults = count_faults()};
}

/*
 * Enters @n folios of @folio_bytes each, if that is what lies at @p. One fault
 * enters a whole folio, and folios are aligned to their size: the two pages in
 * the middle of @folio_bytes take one if they are of the same, else two.
 *
 * Return: whether each folio since entering_init() took one. (A larger and a
 * smaller one can hide each other; the smaller is then entered when used.)
 */
static bool enter_folios(struct entering *e, char *p, size_t n,
			 size_t folio_bytes)
{
	size_t page = page_bytes(), middle = folio_bytes / 2 - page;

	for (size_t i = 0; i < n; i++)
		if (madvise(p + i * folio_bytes + middle, 2 * page, e->advice) <
		    0)
			return false;
	e->n_folios += (long)n;
	return count_faults() - e->n_faults == e->n_folios;
}

/*
 * Populating walks over each page of a folio, but not over those of a 2 MiB
 * entry. So folios of 1 MiB are entered one by one as long as there are some;
 * if 2 MiB are one entry, populating is tried for all that could be such.
 *
 * Return: how many bytes at the beginning are all entered now.
 */
static size_t enter_large(char *map, size_t len_bytes, int advice)
{
	size_t huge_bytes = len_bytes & ~(HUGE_BYTES - 1), at = 0, n;
	struct entering e;

	if (len_bytes < LARGE_BYTES)
		return 0;
	entering_init(&e, advice);
	if (huge_bytes > 0 && enter_folios(&e, map, 1, HUGE_BYTES)) {
		if (madvise(map, huge_bytes, advice) < 0)
			return 0;
		at = huge_bytes;
		entering_init(&e, advice);
	}
	/* If there were two instead, they were the first of these. */
	e.n_folios = 0;
	for (; len_bytes - at >= LARGE_BYTES; at += n * LARGE_BYTES) {
		n = (len_bytes - at) / LARGE_BYTES;
		n = n < LARGE_AT_ONCE ? n : LARGE_AT_ONCE;
		if (!enter_folios(&e, map + at, n, LARGE_BYTES))
			break;
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

/* Enters the second page of each of @n lots, many at once if the kernel can.
 * Return: as madvise(). */
static int enter_lots(char *map, size_t n)
{
	size_t page = page_bytes(), i = 0;
	struct iovec second[LOTS_AT_ONCE];

	while (i < n) {
		size_t m = n - i < LOTS_AT_ONCE ? n - i : LOTS_AT_ONCE;

		for (size_t k = 0; k < m; k++)
			second[k] =
				(struct iovec){map + (i + k) * AROUND_BYTES +
						       page,
					       page};
		if (syscall(SYS_process_madvise, PIDFD_SELF, second, m,
			    MADV_POPULATE_READ, 0) != (long)(m * page))
			break;
		i += m;
	}
	for (; i < n; i++)
		if (madvise(map + i * AROUND_BYTES + page, page,
			    MADV_POPULATE_READ) < 0)
			return -1;
	return 0;
}

/*
 * A fault for reading enters the neighbours of a page too, AROUND_BYTES of them
 * unless the kernel was told otherwise: asked for one page of each lot it does
 * the same as for all, without a walk over all. The second page is asked for:
 * enter_large() may have entered a first or a last, alone.
 *
 * Return: as madvise().
 */
static int enter_small(char *map, size_t len_bytes)
{
	size_t n = len_bytes / AROUND_BYTES, done = 0;

	if (n > 0 && enter_page(map + page_bytes()) > 0 &&
	    enter_page(map + AROUND_BYTES - 2 * page_bytes()) == 0) {
		if (enter_lots(map, n) < 0)
			return -1;
		done = n * AROUND_BYTES;
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
