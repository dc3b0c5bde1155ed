/* SPDX-License-Identifier: MIT */
#include "lab/usage_measure.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backing/fill.h"
#include "backing/selftest.h"
#include "backing/window.h"
#include "base/clock.h"
#include "base/rng.h"

#define PAGE_BYTES        4096u
#define HUGE_BYTES        MIB(2)
#define CREATE_TIMEOUT_MS 10000
#define ROUNDS            3

struct usage_host {
	struct backing *backing;
	char state_file[64];
	/* what the creation in hand came to */
	bool done;
	int r;
	struct backing_info info;
	char error[BACKING_ERROR_BYTES];
};

static void ignore_last_reference(void *ctx, struct backing_buffer *bb)
{
	(void)ctx;
	(void)bb; /* usage_measure() drops it */
}

static const struct backing_ops ops = {
	.last_reference = ignore_last_reference,
};

int usage_host_new(struct usage_host **ret, bool manage_thp, struct strbuf *why)
{
	_cleanup_(usage_host_freep) struct usage_host *host =
		calloc(1, sizeof(*host));
	struct backing_params params = {
		.mode = manage_thp ? BACKING_FOLIO : BACKING_AUTO,
		.n_workers = 1,
		.manage_thp = manage_thp,
		.orders = 1u << 9 | 1u << 8 | 1u << 4 | 1u,
		.ops = &ops,
	};
	char error[BACKING_ERROR_BYTES] = "";
	int r;

	if (!host)
		return -ENOMEM;
	(void)snprintf(host->state_file, sizeof(host->state_file),
		       "/tmp/dmaheap-lab-thp.%d", getpid());
	params.thp_state_file = host->state_file;
	params.ctx = host;
	backing_process_setup();
	r = backing_new(&host->backing, &params, error);
	if (r) {
		strbuf_append(why, "backing: %s", error);
		return r;
	}
	*ret = TAKE_PTR(host);
	return 0;
}

struct usage_host *usage_host_free(struct usage_host *host)
{
	if (!host)
		return NULL;
	host->backing = backing_free(host->backing);
	free(host);
	return NULL;
}

void usage_host_describe(struct usage_host *host, struct strbuf *sb)
{
	struct backing_stats stats;

	backing_get_stats(host->backing, &stats);
	strbuf_append(sb, "%s%s%s", backing_kind_name(stats.mode),
		      stats.reason[0] ? ": " : "", stats.reason);
}

static void created(void *ctx, int r, struct backing_buffer *bb,
		    const struct backing_info *info)
{
	struct usage_host *host = ctx;

	(void)bb;
	host->done = true;
	host->r = r;
	host->info = *info;
	if (r)
		(void)snprintf(host->error, sizeof(host->error), "%s",
			       info->error ? info->error : strerror(-r));
}

static int wait_created(struct usage_host *host, struct strbuf *why)
{
	while (!host->done) {
		struct pollfd p = {.fd = backing_event_fd(host->backing),
				   .events = POLLIN};

		if (poll(&p, 1, CREATE_TIMEOUT_MS) == 0) {
			strbuf_append(why, "backing: a buffer is not made "
					   "within 10 s");
			return -ETIMEDOUT;
		}
		backing_dispatch(host->backing);
	}
	if (host->r)
		strbuf_append(why, "%s", host->error);
	return host->r > 0 ? -ENOMEM : host->r;
}

/* Runs from large to small. Return: how many; @ret_bytes receives the sum. */
static unsigned int runs_of(const uint32_t composition[POLICY_ORDER_COUNT],
			    struct backing_run runs[POLICY_ORDER_COUNT],
			    uint64_t *ret_bytes)
{
	unsigned int n = 0;

	*ret_bytes = 0;
	for (unsigned int order = POLICY_ORDER_COUNT; order-- > 0;) {
		if (!composition[order])
			continue;
		runs[n++] = (struct backing_run){order, composition[order]};
		*ret_bytes +=
			((uint64_t)composition[order] << order) * PAGE_BYTES;
	}
	return n;
}

static int make_buffer(struct usage_host *host,
		       const uint32_t composition[POLICY_ORDER_COUNT],
		       struct backing_buffer **ret, struct strbuf *why)
{
	struct backing_run runs[POLICY_ORDER_COUNT];
	struct backing_spec spec = {
		.uid = geteuid(),
		.id = 1,
		.page_size_bytes = PAGE_BYTES,
		.heap = "lab",
		.runs = runs,
	};
	int r;

	spec.n_runs = runs_of(composition, runs, &spec.len_bytes);
	host->done = false;
	r = backing_create(host->backing, &spec, created, host, ret);
	if (r) {
		strbuf_append(why, "backing: cannot make a buffer");
		return r > 0 ? -EBUSY : r;
	}
	r = wait_created(host, why);
	if (r == -ETIMEDOUT)
		backing_cancel(host->backing, *ret);
	return r;
}

/* As dmaheap_map() does: at an address congruent to the offset modulo 2 MiB,
 * so that the kernel can map large folios whole, but without populating. */
static void *map_congruent(int fd, size_t len)
{
	char *space = mmap(NULL, len + HUGE_BYTES, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char *at, *p;

	if (space == MAP_FAILED)
		return MAP_FAILED;
	at = space + (HUGE_BYTES - (uintptr_t)space % HUGE_BYTES) % HUGE_BYTES;
	p = mmap(at, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
		 0);
	if (at > space)
		(void)munmap(space, (size_t)(at - space));
	(void)munmap(at + len, (size_t)(space + len + HUGE_BYTES - (at + len)));
	if (p == MAP_FAILED)
		(void)munmap(at, len);
	return p;
}

static void touch(volatile char *p, size_t len)
{
	for (size_t i = 0; i < len; i += PAGE_BYTES)
		p[i] = 1;
}

static uint64_t read_all(const volatile uint64_t *p, size_t len)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < len / sizeof(*p); i++)
		sum += p[i];
	return sum;
}

static uint64_t read_anywhere(const volatile uint64_t *p, size_t len,
			      uint64_t seed)
{
	uint64_t sum = 0;
	struct rng rng;

	rng_seed(&rng, seed);
	for (unsigned int i = 0; i < USAGE_RANDOM_READS; i++)
		sum += p[rng_next(&rng) % (len / sizeof(*p))];
	return sum;
}

/* What a step took since *@start, which then is now: of CPU time, so that what
 * else the machine does does not count. */
static uint64_t lap(uint64_t *start)
{
	uint64_t now = clock_thread_cpu_ns(), ns = now - *start;

	*start = now;
	return ns;
}

static int use(int fd, size_t len, uint64_t seed, struct usage_times *ret)
{
	volatile uint64_t keep; /* what is read must not be optimised away */
	uint64_t t = clock_thread_cpu_ns();
	void *p = map_congruent(fd, len);

	if (p == MAP_FAILED)
		return -errno;
	ret->map_ns = lap(&t);
	touch(p, len);
	ret->touch_ns = lap(&t);
	memset(p, 0x5a, len);
	ret->write_ns = lap(&t);
	keep = read_all(p, len);
	ret->read_ns = lap(&t);
	keep = read_anywhere(p, len, seed);
	(void)keep;
	ret->random_ns = lap(&t);
	(void)munmap(p, len);
	ret->unmap_ns = lap(&t);
	return 0;
}

static void keep_least(struct usage_times *least, const struct usage_times *t)
{
	least->map_ns = MIN(least->map_ns, t->map_ns);
	least->touch_ns = MIN(least->touch_ns, t->touch_ns);
	least->write_ns = MIN(least->write_ns, t->write_ns);
	least->read_ns = MIN(least->read_ns, t->read_ns);
	least->random_ns = MIN(least->random_ns, t->random_ns);
	least->unmap_ns = MIN(least->unmap_ns, t->unmap_ns);
}

/* The least of some rounds: each maps the same memory anew. */
static int use_again(int fd, size_t len, uint64_t seed, struct usage_times *ret)
{
	struct usage_times times = {0};
	int r = use(fd, len, seed, ret);

	for (int i = 1; r == 0 && i < ROUNDS; i++) {
		r = use(fd, len, seed, &times);
		keep_least(ret, &times);
	}
	return r;
}

/* Every folio's order, as the mapping's pages are flagged. */
static int see_all(int fd, size_t len, uint32_t of_order[POLICY_ORDER_COUNT])
{
	void *p = map_congruent(fd, len);
	int r;

	if (p == MAP_FAILED)
		return -errno;
	touch(p, len);
	r = selftest_folio_orders(p, len, of_order);
	(void)munmap(p, len);
	return r;
}

/* What is mapped as folios of order 9, which an ordinary user may know. */
static int see_huge(int fd, size_t len, uint32_t *ret_n)
{
	struct window w = {0};
	uint64_t sum = 0;
	int r = window_init(&w);

	for (uint64_t at = 0; r == 0 && at < len; at += WINDOW_MAX_BYTES) {
		uint64_t bytes = 0;

		r = fill_count_huge(&w, fd, at, MIN(len - at, WINDOW_MAX_BYTES),
				    &bytes);
		sum += bytes;
	}
	window_fini(&w);
	*ret_n = (uint32_t)(sum / HUGE_BYTES);
	return r;
}

static struct usage_folios see(int fd, size_t len)
{
	struct usage_folios f = {.sight = USAGE_SEEN_ALL};
	uint32_t *n_huge = &f.of_order[USAGE_HUGE_ORDER];

	if (see_all(fd, len, f.of_order) == 0)
		return f;
	f = (struct usage_folios){.sight = USAGE_UNSEEN};
	/* where those of order 9 are all there is, nothing is unseen */
	if (see_huge(fd, len, n_huge) == 0)
		f.sight = *n_huge * HUGE_BYTES == len ? USAGE_SEEN_ALL
						      : USAGE_SEEN_HUGE;
	return f;
}

enum usage_verdict usage_compare(const uint32_t composition[POLICY_ORDER_COUNT],
				 const struct usage_folios *folios)
{
	bool all_huge = true;

	if (folios->sight == USAGE_UNSEEN)
		return USAGE_UNKNOWN;
	for (unsigned int i = 0; i < POLICY_ORDER_COUNT; i++) {
		if (i != USAGE_HUGE_ORDER)
			all_huge = all_huge && !composition[i];
		if (i != USAGE_HUGE_ORDER && folios->sight == USAGE_SEEN_HUGE)
			continue;
		if (folios->of_order[i] != composition[i])
			return USAGE_OTHER;
	}
	return folios->sight == USAGE_SEEN_ALL || all_huge ? USAGE_AS_ASKED
							   : USAGE_UNKNOWN;
}

int usage_measure(struct usage_host *host,
		  const uint32_t composition[POLICY_ORDER_COUNT], uint64_t seed,
		  struct usage_times *ret, struct strbuf *why)
{
	struct backing_buffer *bb = NULL;
	int r = make_buffer(host, composition, &bb, why);

	if (r)
		return r;
	ret->got = host->info.got;
	(void)snprintf(ret->reason, sizeof(ret->reason), "%s",
		       host->info.reason ? host->info.reason : "");
	/* By the daemon's own descriptor: nothing is handed out, so there is no
	 * last reference to wait for. */
	r = use_again(backing_buffer_fd(bb), (size_t)backing_buffer_size(bb),
		      seed, ret);
	if (r)
		strbuf_append(why, "mmap: %s", strerror(-r));
	ret->folios =
		see(backing_buffer_fd(bb), (size_t)backing_buffer_size(bb));
	backing_drop(host->backing, bb);
	backing_dispatch(host->backing);
	return r;
}
