/* SPDX-License-Identifier: MIT */
#include "backing/selftest.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backing/fill.h"
#include "backing/memfd.h"
#include "backing/thp.h"
#include "base/err.h"
#include "base/fd.h"

/* /proc/PID/pagemap and /proc/kpageflags: a word per page. */
#define PAGEMAP_PRESENT  (UINT64_C(1) << 63)
#define PAGEMAP_PFN_MASK ((UINT64_C(1) << 55) - 1)
#define KPF_HEAD         (UINT64_C(1) << 15)
#define KPF_TAIL         (UINT64_C(1) << 16)
#define PAGE_BYTES       KIB(4)
#define ORDER_MAX        10u

static bool say(char *reason, const char *text)
{
	snprintf(reason, SELFTEST_REASON_BYTES, "%s", text);
	return false;
}

/* A memfd of @bytes filled as @kind in one piece of blocks of @block_bytes. */
static int filled(struct window *w, enum backing_kind kind, uint64_t bytes,
		  uint64_t block_bytes, bool *lesser, int *ret_fd)
{
	_cleanup_(fd_closep) int fd = -1;
	struct fill_piece piece = {.len_bytes = bytes,
				   .block_bytes = block_bytes};
	int r = memfd_make("dmaheap:selftest", bytes, false, &fd);

	if (!r)
		r = fill_piece(w, fd, kind, &piece, lesser);
	if (r)
		return err_trace(r);
	*ret_fd = TAKE_FD(fd);
	return 0;
}

static bool say_refused(char *reason)
{
	const struct thp_hindrance *h = thp_collapse_hindrance();

	snprintf(reason, SELFTEST_REASON_BYTES, "MADV_COLLAPSE refused: %s",
		 h ? h->what
		   : "since Linux 6.1, CONFIG_TRANSPARENT_HUGEPAGE, 2 MiB "
		     "free");
	return false;
}

static bool collapse_in(struct window *w, char *reason)
{
	_cleanup_(fd_closep) int fd = -1;
	uint64_t huge = 0;
	bool lesser = false;
	int r = filled(w, BACKING_COLLAPSE, FILL_HUGE_BYTES, FILL_HUGE_BYTES,
		       &lesser, &fd);

	if (r)
		return say(reason, strerror(-r));
	if (lesser)
		return say_refused(reason);
	if (!memfd_is_whole(fd, FILL_HUGE_BYTES))
		return say(reason, "MADV_COLLAPSE left holes");
	r = fill_count_huge(w, fd, 0, FILL_HUGE_BYTES, &huge);
	/* Before 6.7 nobody tells an ordinary user; the call succeeded. */
	if (!r && huge != FILL_HUGE_BYTES)
		return say(reason, "MADV_COLLAPSE made no 2 MiB folio");
	return true;
}

bool selftest_collapse(char reason[SELFTEST_REASON_BYTES])
{
	struct window w = {0};
	bool ok;

	if (window_init(&w))
		return say(reason, strerror(ENOMEM));
	ok = collapse_in(&w, reason);
	window_fini(&w);
	return ok;
}

static int read_word(int fd, uint64_t index, uint64_t *ret)
{
	ssize_t n = pread(fd, ret, sizeof(*ret), (off_t)(index * sizeof(*ret)));

	return n == (ssize_t)sizeof(*ret) ? 0 : -EIO;
}

/* The order of the folio whose head is at @pfn: head, then tails. */
static int folio_order(int kpageflags, uint64_t pfn, unsigned int *ret)
{
	uint64_t flags = 0, n = 1;
	int r = read_word(kpageflags, pfn, &flags);

	if (r)
		return r;
	if (flags & KPF_TAIL)
		return -ERANGE; /* begins before the mapping */
	for (; flags & KPF_HEAD && n <= 1u << ORDER_MAX; n++) {
		uint64_t next = 0;

		r = read_word(kpageflags, pfn + n, &next);
		if (r || !(next & KPF_TAIL))
			break;
	}
	*ret = 0;
	while (UINT64_C(1) << *ret < n)
		++*ret;
	return 0;
}

int selftest_folio_orders(const void *addr, uint64_t len_bytes,
			  uint32_t counts[11])
{
	_cleanup_(fd_closep) int pagemap = -1;
	_cleanup_(fd_closep) int kpageflags = -1;
	uint64_t page = (uintptr_t)addr / PAGE_BYTES;
	uint64_t end = page + len_bytes / PAGE_BYTES;
	unsigned int order = 0;
	uint64_t word = 0;
	int r;

	pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	kpageflags = open("/proc/kpageflags", O_RDONLY | O_CLOEXEC);
	if (pagemap < 0 || kpageflags < 0)
		return -EPERM;
	memset(counts, 0, sizeof(*counts) * (ORDER_MAX + 1));
	while (page < end) {
		r = read_word(pagemap, page, &word);
		if (r)
			return err_raise(r);
		/* Without CAP_SYS_ADMIN every frame number reads as 0. */
		if (!(word & PAGEMAP_PRESENT) || !(word & PAGEMAP_PFN_MASK))
			return -EPERM;
		r = folio_order(kpageflags, word & PAGEMAP_PFN_MASK, &order);
		if (r)
			return r;
		counts[order]++;
		page += UINT64_C(1) << order;
	}
	return 0;
}

/* Return: 1 yes, 0 no, -EPERM cannot tell. */
static int flags_say(struct window *w, int fd, uint64_t bytes,
		     unsigned int order)
{
	uint32_t counts[ORDER_MAX + 1];
	void *p;
	int r = window_map(w, fd, 0, bytes, bytes, &p);

	if (r)
		return err_trace(r);
	r = madvise(p, bytes, MADV_POPULATE_READ) < 0 ? -errno : 0;
	if (!r)
		r = selftest_folio_orders(p, bytes, counts);
	window_unmap(w, p, bytes);
	if (r == -ERANGE) /* part of something larger */
		return 0;
	return r ? r : counts[order] == bytes / thp_bytes(order);
}

static bool folio_in(struct window *w, unsigned int order, char *reason)
{
	_cleanup_(fd_closep) int fd = -1;
	uint64_t bytes = MIN(2 * thp_bytes(order), FILL_CHUNK_BYTES);
	uint64_t before = thp_counter(order, "shmem_alloc");
	bool lesser = false;
	int r = filled(w, BACKING_FOLIO, bytes, thp_bytes(order), &lesser, &fd);

	if (r)
		return say(reason, strerror(-r));
	r = flags_say(w, fd, bytes, order);
	if (r == -EPERM)
		r = thp_counter(order, "shmem_alloc") - before >=
		    bytes / thp_bytes(order);
	if (r == 1)
		return true;
	snprintf(reason, SELFTEST_REASON_BYTES,
		 "no %" PRIu64 " KiB folios although their switch is on",
		 thp_bytes(order) / 1024);
	return false;
}

bool selftest_folio(uint32_t orders, char reason[SELFTEST_REASON_BYTES])
{
	struct window w = {0};
	bool ok = true;

	if (window_init(&w))
		return say(reason, strerror(ENOMEM));
	for (unsigned int order = 1; order <= THP_ORDER_MAX && ok; order++)
		if (orders & (1u << order))
			ok = folio_in(&w, order, reason);
	window_fini(&w);
	return ok;
}
