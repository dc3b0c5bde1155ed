/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <dmaheap/dmaheap.h>

#include "lib/macros.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22 /* since 5.14 */
#define MADV_POPULATE_WRITE 23
#endif

/* A mapping congruent to its file at this size can use 2 MiB page tables. */
#define HUGE_BYTES ((size_t)2 << 20)

/* Folios of this size and more are worth to be looked for. */
#define LARGE_BYTES ((size_t)1 << 20)

/* What the kernel enters at once of small pages. */
#define AROUND_BYTES ((size_t)64 << 10)

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

/* Page faults of this thread so far. */
static long count_faults(void)
{
	struct rusage usage = {0};

	(void)getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_minflt + usage.ru_majflt;
}

/* Enters pages into the table. */
struct entering {
	int advice;
	long n_faults; /* so far */
};

static void entering_init(struct entering *e, int advice)
{
	e->advice = advice;
	e->n_faults = count_faults();
}

/* Return: how many faults it took to enter the page at @p, or -1. */
static long enter_page(struct entering *e, char *p)
{
	long before = e->n_faults;

	if (madvise(p, page_bytes(), e->advice) < 0)
		return -1;
	e->n_faults = count_faults();
	return e->n_faults - before;
}

/* Return: whether the folio of the page at @p has the @len_bytes from there,
 * which are entered then. Folios are aligned to their size: if it is smaller
 * another begins in the middle. */
static bool is_folio(struct entering *e, char *p, size_t len_bytes)
{
	return enter_page(e, p + len_bytes / 2) == 0;
}

/*
 * One fault enters a whole folio, while populating walks over each of its pages
 * (but not over those of a 2 MiB entry). So folios of 1 MiB are entered one by
 * one as long as there are some; if 2 MiB are one entry, populating is tried
 * for all that could be such.
 *
 * Return: how many bytes at the beginning are all entered now.
 */
static size_t enter_large(char *map, size_t len_bytes, int advice)
{
	size_t huge_bytes = len_bytes & ~(HUGE_BYTES - 1), at = 0;
	struct entering e;

	entering_init(&e, advice);
	/* No fault at all: they are not counted here. */
	if (len_bytes < LARGE_BYTES || enter_page(&e, map) <= 0)
		return 0;
	if (huge_bytes > 0 && is_folio(&e, map, HUGE_BYTES) &&
	    madvise(map, huge_bytes, advice) == 0)
		at = huge_bytes;
	for (; len_bytes - at >= LARGE_BYTES; at += LARGE_BYTES)
		if (enter_page(&e, map + at) < 0 ||
		    !is_folio(&e, map + at, LARGE_BYTES))
			break;
	return at;
}

/*
 * A fault for reading enters the neighbours of a page too, AROUND_BYTES of them
 * unless the kernel was told otherwise: asked for one page of each lot it does
 * the same as for all, without a walk over all. The last page is asked for:
 * enter_large() may have entered the first, alone.
 *
 * Return: as madvise().
 */
static int enter_small(char *map, size_t len_bytes)
{
	size_t last = AROUND_BYTES - page_bytes(), at = 0;
	struct entering e;

	entering_init(&e, MADV_POPULATE_READ);
	if (len_bytes >= AROUND_BYTES && enter_page(&e, map + last) > 0 &&
	    enter_page(&e, map + page_bytes()) == 0)
		for (at = AROUND_BYTES; at + AROUND_BYTES <= len_bytes;
		     at += AROUND_BYTES)
			if (madvise(map + at + last, page_bytes(),
				    MADV_POPULATE_READ) < 0)
				return -1;
	return at == len_bytes
		       ? 0
		       : madvise(map + at, len_bytes - at, MADV_POPULATE_READ);
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

_public_ void *dmaheap_map(int fd, size_t len_bytes, int prot)
{
	size_t page = page_bytes();
	struct stat st;
	void *start, *map;

	if (fstat(fd, &st) < 0)
		return MAP_FAILED;
	/* Beyond the end mmap() succeeds and the access faults. */
	if (len_bytes == 0 || st.st_size < 0 ||
	    len_bytes > (uint64_t)st.st_size) {
		errno = EINVAL;
		return MAP_FAILED;
	}
	len_bytes = (len_bytes + page - 1) & ~(page - 1);
	start = reserve(len_bytes);
	if (start == MAP_FAILED)
		return MAP_FAILED;
	map = mmap(start, len_bytes, prot, MAP_SHARED | MAP_FIXED, fd, 0);
	if (map == MAP_FAILED) {
		int err = errno;

		munmap(start, len_bytes);
		errno = err;
		return MAP_FAILED;
	}
	enter(map, len_bytes, prot, fd);
	return map;
}
