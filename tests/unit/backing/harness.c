/* SPDX-License-Identifier: MIT */
#include "harness.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"

static void on_last_reference(void *ctx, struct backing_buffer *bb)
{
	struct harness *h = ctx;

	h->n_released++;
	h->released = bb;
}

static void on_pressure(void *ctx, uint64_t want_bytes)
{
	struct harness *h = ctx;

	h->n_pressure++;
	h->want_bytes = want_bytes;
	if (h->spare)
		backing_drop(h->b, h->spare);
	h->spare = NULL;
}

static void on_created(void *ctx, int r, struct backing_buffer *bb,
		       const struct backing_info *info)
{
	struct harness *h = ctx;

	h->n_created++;
	h->r = r;
	h->info = *info;
	h->info.error = NULL;
	snprintf(h->error, sizeof(h->error), "%s", info->error);
	h->created = r ? NULL : bb;
}

static void on_recycled(void *ctx, struct backing_buffer *bb _unused_,
			enum backing_recycled what)
{
	struct harness *h = ctx;

	h->n_recycled++;
	h->recycled = what;
}

void harness_params(struct harness *h, struct backing_params *ret)
{
	static const struct backing_ops ops = {
		.last_reference = on_last_reference,
		.pressure = on_pressure,
	};

	memset(ret, 0, sizeof(*ret));
	ret->mode = BACKING_COLLAPSE;
	ret->recycle = true;
	ret->n_workers = 1;
	ret->orders = 1u << 8 | 1u << 4 | 1u;
	ret->ops = &ops;
	ret->ctx = h;
}

void harness_start(struct harness *h, const struct backing_params *params)
{
	struct backing_params own;
	char error[BACKING_ERROR_BYTES];

	backing_process_setup();
	memset(h, 0, sizeof(*h));
	if (!params)
		harness_params(h, &own);
	T_REQUIRE(backing_new(&h->b, params ? params : &own, error) == 0);
}

void harness_stop(struct harness *h)
{
	h->b = backing_free(h->b);
}

static void dispatch_once(struct harness *h, int timeout_ms)
{
	struct pollfd p = {.fd = backing_event_fd(h->b), .events = POLLIN};

	if (poll(&p, 1, timeout_ms) == 1)
		backing_dispatch(h->b);
	CU_ASSERT_TRUE(backing_check(h->b));
}

void harness_wait(struct harness *h, const unsigned int *counter,
		  unsigned int n)
{
	uint64_t end_ns = clock_now_ns() + 10 * NSEC_PER_SEC;

	while (*counter < n && clock_now_ns() < end_ns)
		dispatch_once(h, 1000);
	T_REQUIRE(*counter >= n);
}

void harness_linger(struct harness *h, unsigned int ms)
{
	uint64_t end_ns = clock_now_ns() + ms * NSEC_PER_MSEC;

	while (clock_now_ns() < end_ns)
		dispatch_once(h, 5);
}

void harness_settle(struct harness *h)
{
	uint64_t end_ns = clock_now_ns() + 10 * NSEC_PER_SEC;
	struct backing_stats stats;

	do {
		backing_hurry(h->b, 1);
		dispatch_once(h, 1);
		backing_get_stats(h->b, &stats);
	} while ((stats.resident_bytes || stats.n_queued || stats.n_buffers) &&
		 clock_now_ns() < end_ns);
	backing_dispatch(h->b);
}

int harness_create(struct harness *h, uint64_t bytes, unsigned int order,
		   struct backing_buffer **ret)
{
	uint64_t block = KIB(4) << order;
	struct backing_run runs[2] = {
		{.order = order, .n_blocks = (uint32_t)(bytes / block)},
		{.order = 0, .n_blocks = (uint32_t)(bytes % block / KIB(4))},
	};
	struct backing_spec spec = {
		.len_bytes = bytes,
		.uid = 1000,
		.client = 1,
		.id = 7,
		.page_size_bytes = 4096,
		.heap = "system",
		.runs = runs,
		.n_runs = 2,
	};

	return harness_create_spec(h, &spec, ret);
}

int harness_create_spec(struct harness *h, const struct backing_spec *spec,
			struct backing_buffer **ret)
{
	return backing_create(h->b, spec, on_created, h, ret);
}

struct backing_buffer *harness_make(struct harness *h, uint64_t bytes)
{
	struct backing_buffer *bb;
	unsigned int n = h->n_created;

	T_REQUIRE(harness_create(h, bytes, 8, &bb) == 0);
	harness_wait(h, &h->n_created, n + 1);
	return h->r ? NULL : bb;
}

enum backing_recycled harness_recycle(struct harness *h,
				      struct backing_buffer *bb)
{
	unsigned int n = h->n_recycled;

	backing_recycle(h->b, bb, on_recycled, h);
	backing_hurry(h->b, 1);
	harness_wait(h, &h->n_recycled, n + 1);
	return h->recycled;
}

int harness_open(struct harness *h, struct backing_buffer *bb, uint32_t flags)
{
	int fd = -1;

	T_REQUIRE(backing_open(h->b, bb, flags, &fd) == 0);
	return fd;
}

bool harness_is_zero(int fd, uint64_t bytes)
{
	const unsigned char *p =
		mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
	bool zero = p != MAP_FAILED;

	for (uint64_t i = 0; zero && i < bytes; i++)
		zero = p[i] == 0;
	if (p != MAP_FAILED)
		munmap((void *)(uintptr_t)p, bytes);
	return zero;
}

unsigned int harness_n_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int n = 0;

	T_REQUIRE(dir != NULL);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}
