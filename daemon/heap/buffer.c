/* SPDX-License-Identifier: MIT */
#include "heap/buffer.h"

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"

#define RUN_BLOCKS_MAX ((UINT32_C(1) << 28) - 1)

uint64_t buffer_n_blocks(const struct buffer *buffer)
{
	uint64_t n = 0;

	for (unsigned int order = 0; order < POLICY_ORDER_COUNT; order++)
		n += buffer->composition[order];
	return n;
}

uint64_t composition_bytes(const uint32_t composition[POLICY_ORDER_COUNT],
			   uint32_t page_size_bytes)
{
	uint64_t pages = 0, bytes;

	/* 11 products below 2^42 cannot wrap; the last one can. */
	for (unsigned int order = 0; order < POLICY_ORDER_COUNT; order++)
		pages += (uint64_t)composition[order] << order;
	if (__builtin_mul_overflow(pages, (uint64_t)page_size_bytes, &bytes))
		return UINT64_MAX;
	return bytes;
}

int composition_compare(const uint32_t a[POLICY_ORDER_COUNT],
			const uint32_t b[POLICY_ORDER_COUNT])
{
	for (unsigned int order = POLICY_ORDER_COUNT; order-- > 0;) {
		if (a[order] != b[order])
			return a[order] < b[order] ? -1 : 1;
	}
	return 0;
}

static bool run_continues(const struct buffer_run *run, uint64_t pfn,
			  unsigned int order)
{
	return run->order == order && run->n_blocks < RUN_BLOCKS_MAX &&
	       run->pfn + ((uint64_t)run->n_blocks << order) == pfn;
}

/* The table doubles: room for n_runs + 1 exists unless n_runs is 2^k. */
static int runs_reserve(struct buffer *buffer)
{
	size_t n = buffer->n_runs ? (size_t)buffer->n_runs * 2 : 1;
	struct buffer_run *runs;

	if (buffer->n_runs && !is_power_of_2(buffer->n_runs))
		return 0;
	runs = realloc(buffer->runs, n * sizeof(*runs));
	if (!runs)
		return err_raise(-ENOMEM);
	buffer->runs = runs;
	return 0;
}

int buffer_append(struct buffer *buffer, uint64_t pfn, unsigned int order)
{
	struct buffer_run *last;
	int r;

	assert(pfn <= UINT32_MAX && order < POLICY_ORDER_COUNT);
	if (buffer->n_runs) {
		last = &buffer->runs[buffer->n_runs - 1];
		assert(order <= last->order);
		if (run_continues(last, pfn, order)) {
			last->n_blocks++;
			buffer->composition[order]++;
			return 0;
		}
	}
	r = runs_reserve(buffer);
	if (r)
		return err_trace(r);
	buffer->runs[buffer->n_runs++] =
		(struct buffer_run){.pfn = (uint32_t)pfn,
				    .n_blocks = 1,
				    .order = order & 0xfu};
	buffer->composition[order]++;
	return 0;
}
