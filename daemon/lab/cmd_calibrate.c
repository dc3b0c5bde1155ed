/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "lab/cmd.h"
#include "mm/cost.h"

/*
 * What an ordinary user can measure of this machine, by doing it: clearing and
 * copying pages, walking an array that is as large and as sparse as the
 * kernel's page structs, taking pages from the kernel and giving them back. The
 * model's other costs (compression, writeback, locks) are the default profile's
 * times the ratio of this machine to it in what was measured.
 *
 * Each figure is the smallest of several rounds: what disturbs a measurement
 * only ever adds to it.
 */

#define ROUNDS     7u
#define PAGE_BYTES 4096u
#define PAGES      4096u /* 16 MiB: more than most caches */
#define STRIDE     64u   /* sizeof(struct page) */
#define PS_PER_NS  UINT64_C(1000)

struct measured {
	uint64_t zero_page_ps;
	uint64_t copy_page_ps;
	uint64_t scan_ps;
	uint64_t take_page_ps; /* fault it in, clearing included */
	uint64_t give_page_ps;
};

static void keep_smallest(uint64_t *smallest, uint64_t ns, uint64_t n)
{
	uint64_t ps = ns * PS_PER_NS / n;

	if (*smallest == 0 || ps < *smallest)
		*smallest = MAX(ps, UINT64_C(1));
}

/* Keeps the compiler from leaving out stores that nobody reads. */
static void used(const void *p)
{
	__asm__ volatile("" : : "r"(p) : "memory");
}

static void measure_memory(struct measured *m, char *from, char *to)
{
	uint64_t t0, t1, t2, t3, sum = 0;

	t0 = clock_now_ns();
	for (size_t i = 0; i < PAGES; i++)
		memset(to + i * PAGE_BYTES, 0, PAGE_BYTES);
	used(to);
	t1 = clock_now_ns();
	for (size_t i = 0; i < PAGES; i++)
		memcpy(to + i * PAGE_BYTES, from + i * PAGE_BYTES, PAGE_BYTES);
	used(to);
	t2 = clock_now_ns();
	for (size_t i = 0; i < (size_t)PAGES * PAGE_BYTES; i += STRIDE)
		sum += (unsigned char)from[i];
	used(&sum);
	t3 = clock_now_ns();
	keep_smallest(&m->zero_page_ps, t1 - t0, PAGES);
	keep_smallest(&m->copy_page_ps, t2 - t1, PAGES);
	keep_smallest(&m->scan_ps, t3 - t2,
		      (uint64_t)PAGES * PAGE_BYTES / STRIDE);
}

static int measure_kernel(struct measured *m)
{
	size_t bytes = (size_t)PAGES * PAGE_BYTES;
	uint64_t t0, t1, t2;
	char *p;

	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return -errno;
	/* Large folios would hide what one page costs. */
	(void)madvise(p, bytes, MADV_NOHUGEPAGE);
	t0 = clock_now_ns();
	for (size_t i = 0; i < bytes; i += PAGE_BYTES)
		p[i] = 1;
	used(p);
	t1 = clock_now_ns();
	(void)madvise(p, bytes, MADV_DONTNEED);
	t2 = clock_now_ns();
	(void)munmap(p, bytes);
	keep_smallest(&m->take_page_ps, t1 - t0, PAGES);
	keep_smallest(&m->give_page_ps, t2 - t1, PAGES);
	return 0;
}

static int measure(struct measured *m)
{
	size_t bytes = (size_t)PAGES * PAGE_BYTES;
	char *from = aligned_alloc(PAGE_BYTES, bytes);
	char *to = aligned_alloc(PAGE_BYTES, bytes);
	int r = from && to ? 0 : -ENOMEM;

	*m = (struct measured){0};
	if (!r) {
		memset(from, 1, bytes);
		memset(to, 1, bytes);
	}
	for (unsigned int i = 0; i < ROUNDS && !r; i++) {
		measure_memory(m, from, to);
		r = measure_kernel(m);
	}
	free(from);
	free(to);
	return r;
}

/* The measured ones of @costs; the rest in proportion. */
static void costs_from(struct cost_profile *costs, const struct measured *m)
{
	const struct cost_profile usual = cost_profile_default();
	uint64_t fault =
		m->take_page_ps - MIN(m->zero_page_ps, m->take_page_ps / 2);

	*costs = usual;
	cost_profile_scale(costs,
			   (uint32_t)MIN(m->copy_page_ps, (uint64_t)UINT32_MAX),
			   (uint32_t)MIN(usual.zero_page_ps * 2,
					 (uint64_t)UINT32_MAX));
	costs->zero_page_ps = m->zero_page_ps;
	costs->compact_scan_ps = m->scan_ps;
	/* Unmapping, copying, mapping again: a copy and two faults' work. */
	costs->migrate_page_ps = m->copy_page_ps + 2 * fault;
	costs->free_entry_ps = m->give_page_ps;
}

static bool is_measured(const char *name)
{
	static const char *const names[] = {"zero_page", "compact_scan",
					    "migrate_page", "free_entry"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (!strcmp(names[i], name))
			return true;
	}
	return false;
}

static void render(const struct cost_profile *costs, const struct measured *m,
		   struct strbuf *out)
{
	strbuf_append(out,
		      "# Costs of this machine, by dmaheap-lab calibrate %s.\n"
		      "# Measured, ps per page: clear %" PRIu64
		      ", copy %" PRIu64 ", fault in %" PRIu64
		      ", give back %" PRIu64
		      "; per page struct looked at: %" PRIu64
		      "\n# The rest is the default profile's in proportion to "
		      "copying.\n"
		      "[cost]\n",
		      DMAHEAP_VERSION, m->zero_page_ps, m->copy_page_ps,
		      m->take_page_ps, m->give_page_ps, m->scan_ps);
	for (unsigned int i = 0; i < COST_COUNT; i++) {
		uint64_t ps = cost_value_ps(costs, i);

		strbuf_append(out,
			      "# %s (%s)\n%s = %" PRIu64 ".%03" PRIu64 "\n",
			      cost_meaning(i),
			      is_measured(cost_name(i)) ? "measured"
							: "in proportion",
			      cost_name(i), ps / 1000, ps % 1000);
	}
}

int cmd_calibrate(int argc, char **argv)
{
	_cleanup_(strbuf_finip) struct strbuf out = STRBUF_INIT;
	const char *path = NULL;
	struct cost_profile costs;
	struct measured m;
	int r;

	if (argc == 3 && !strcmp(argv[1], "--output"))
		path = argv[2];
	else if (argc != 1)
		return lab_usage("calibrate takes only --output FILE");
	r = measure(&m);
	if (r)
		return lab_fail("%s", strerror(-r));
	costs_from(&costs, &m);
	render(&costs, &m, &out);
	return lab_write(path, &out);
}
