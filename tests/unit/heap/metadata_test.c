/* SPDX-License-Identifier: MIT */
/* What the node pays for buffers besides their blocks, and who watches them. */
#include <errno.h>
#include <stdio.h>

#include "base/objtrack.h"
#include "heap/fixture.h"
#include "support/fail_malloc.h"

enum { KIND_BUFFER, KIND_BLOCK };

static const char *const kinds[] = {"buffer", "block"};

static unsigned int n_reports;
static enum objtrack_misuse last_misuse;
static char text[1024];

static void on_report(void *ctx, const struct objtrack_report *report)
{
	(void)ctx;
	n_reports++;
	last_misuse = report->misuse;
	(void)snprintf(text, sizeof(text), "%s", report->text);
}

static struct objtrack *track_on(struct fixture *f)
{
	const struct objtrack_params params = {
		.enabled = true,
		.slots_in_batches = OBJTRACK_SLOTS_DEFAULT,
		.n_workers = 1,
		.kinds = kinds,
		.n_kinds = 2,
		.report = on_report,
	};
	struct objtrack *track = NULL;

	n_reports = 0;
	T_REQUIRE(objtrack_new(&track, &params) == 0);
	heap_set_track(f->set, track, KIND_BUFFER, KIND_BLOCK);
	return track;
}

static struct slab_stats buffer_slab(struct fixture *f)
{
	_cleanup_(strbuf_finip) struct strbuf sb = STRBUF_INIT;
	struct slab_registry *registry = NULL;
	struct slab_stats stats = {0};
	unsigned long long active, total, bytes;

	/* As a reader of slabinfo sees it. A set is listed once only. */
	T_REQUIRE(slab_registry_new(&registry) == 0);
	heap_set_enlist(f->set, registry);
	slab_render_slabinfo(registry, &sb);
	T_REQUIRE(sscanf(strstr(strbuf_string(&sb), "\nbuffer ") + 1,
			 "buffer %llu %llu %llu %u", &active, &total, &bytes,
			 &stats.objects_per_slab) == 4);
	stats.active_objects = active;
	stats.total_objects = total;
	f->set = heap_set_free(f->set);
	slab_registry_free(registry);
	return stats;
}

static uint64_t pages_allocated(struct fixture *f)
{
	struct node_page_counts counts;

	node_page_counts(f->node, &counts);
	return counts.allocated_pages;
}

static void a_page_of_buffers_is_a_page_of_the_node(void)
{
	enum { N = 100 };
	struct buffer *buffers[N];
	struct fixture f;
	uint64_t before, metadata;
	unsigned int per_page = SLAB_PAGE_BYTES / sizeof(struct buffer);

	fixture_open(&f, MIB(64), "840-high");
	before = pages_allocated(&f);
	for (int i = 0; i < N; i++)
		T_REQUIRE(buffers[i] = take(&f, 1, 4096));
	/* A page each, one page of block tables, and those of the structs. */
	metadata = pages_allocated(&f) - before - N - 1;
	CU_ASSERT(metadata >= N / per_page);
	CU_ASSERT(metadata <= N / (per_page / 2));
	CU_ASSERT_EQUAL(heap_set_pages(f.set), pages_allocated(&f));
	for (int i = 0; i < N; i++)
		CU_ASSERT_EQUAL(give(&f, buffers[i], HEAP_FINISH_NODE), 0);
	CU_ASSERT_EQUAL(pages_allocated(&f), before);
	fixture_close(&f);
}

static void large_pages_hold_a_slab_each(void)
{
	struct node_params params = {.size_bytes = MIB(256),
				     .page_size_bytes = 65536};
	struct fixture f;
	struct buffer *b;

	fixture_open_params(&f, &params, "840-high");
	b = take(&f, 1, 65536);
	T_REQUIRE(b);
	/* The buffer, its table's class, its struct: one page of 64 KiB each */
	CU_ASSERT_EQUAL(pages_allocated(&f), 3);
	CU_ASSERT_EQUAL(give(&f, b, HEAP_FINISH_NODE), 0);
	fixture_close(&f);
}

static void a_node_without_a_page_for_it_refuses_the_buffer(void)
{
	struct fixture f;
	uint64_t pfns[16384], n = 0;
	struct node_request req = {0};
	struct heap_request wanted = {.uid = 1, .len_bytes = 4096};
	struct buffer *b = NULL;

	fixture_open(&f, MIB(64), "840-high");
	while (n < ARRAY_SIZE(pfns) &&
	       node_alloc(f.node, &req, 0, GFP_LOW_ORDER, &pfns[n]) == 0)
		n++;
	CU_ASSERT(n > 10000 && n < ARRAY_SIZE(pfns));
	CU_ASSERT_EQUAL(heap_alloc(f.heap, &wanted, &b), HEAP_E_NO_MEMORY);
	CU_ASSERT_PTR_NULL(b);
	while (n)
		node_free_block(f.node, &req, pfns[--n], 0);
	b = take(&f, 1, 4096);
	CU_ASSERT_PTR_NOT_NULL(b);
	CU_ASSERT_EQUAL(give(&f, b, HEAP_FINISH_NODE), 0);
	fixture_close(&f);
}

static void each_allocation_may_fail(void)
{
	struct fixture f;

	fixture_open(&f, MIB(64), "0-only");
	node_pressure_fragment(f.node, 0); /* many runs */
	FAIL_MALLOC_EACH({
		struct heap_request req = {.uid = 1, .len_bytes = KIB(512)};
		struct buffer *b = NULL;
		int r = heap_alloc(f.heap, &req, &b);

		CU_ASSERT(r == 0 || (r == -ENOMEM && fail_malloc_hit()));
		if (b)
			CU_ASSERT_EQUAL(give(&f, b, HEAP_FINISH_NODE), 0);
		CU_ASSERT_EQUAL(pages_allocated(&f), 0);
	});
	fixture_close(&f);
}

static void a_set_without_memory_is_not_made(void)
{
	struct node_params params = {.size_bytes = MIB(64)};
	struct node *node = NULL;
	struct heap_set *set = NULL;
	struct node_error err;

	T_REQUIRE(node_new(&node, &params, &err) == 0);
	FAIL_MALLOC_EACH({
		int r = heap_set_new(&set, node, NULL, NULL);

		CU_ASSERT_EQUAL(r, fail_malloc_hit() ? -ENOMEM : 0);
		CU_ASSERT_EQUAL(set != NULL, r == 0);
		set = heap_set_free(set);
	});
	node_free(node);
}

static void slabinfo_counts_the_buffers(void)
{
	struct slab_stats stats;
	struct fixture f;

	fixture_open(&f, MIB(64), "840-high");
	for (int i = 0; i < 3; i++)
		T_REQUIRE(take(&f, 1, 4096));
	stats = buffer_slab(&f);
	CU_ASSERT_EQUAL(stats.active_objects, 3);
	CU_ASSERT_EQUAL(stats.total_objects, stats.objects_per_slab);
	CU_ASSERT_EQUAL(pages_allocated(&f), 0);
	f.node = node_free(f.node);
}

static void tables_in_single_pages_are_counted(void)
{
	_cleanup_(strbuf_finip) struct strbuf sb = STRBUF_INIT;
	struct fixture f;
	struct buffer *b;

	fixture_open(&f, MIB(64), "0-only");
	b = take(&f, 1, MIB(10)); /* a table of order 3, contiguous */
	T_REQUIRE(b);
	CU_ASSERT_EQUAL(give(&f, b, HEAP_FINISH_NODE), 0);
	node_pressure_fragment(f.node, 2);
	b = take(&f, 1, MIB(10)); /* no order 3 left: five single pages */
	T_REQUIRE(b);
	heap_set_render_vmstat(f.set, &sb);
	CU_ASSERT_STRING_EQUAL(strbuf_string(&sb),
			       "model_metadata_pages 6\n"
			       "model_kvalloc_contiguous 1\n"
			       "model_kvalloc_contiguous_stall_ns 0\n"
			       "model_kvalloc_fallback 1\n"
			       "model_kvalloc_fallback_stall_ns 0\n"
			       "model_kvalloc_failed 0\n"
			       "model_kvalloc_failed_stall_ns 0\n");
	CU_ASSERT_EQUAL(give(&f, b, HEAP_FINISH_NODE), 0);
	fixture_close(&f);
}

static void a_right_life_is_tracked_without_a_word(void)
{
	struct objtrack_stats stats;
	struct fixture f;
	struct objtrack *track;
	struct buffer *b;

	fixture_open(&f, MIB(64), "840-high");
	track = track_on(&f);
	b = take(&f, 1, MIB(1) + 4096);
	T_REQUIRE(b);
	CU_ASSERT_EQUAL(objtrack_state_of(track, KIND_BUFFER, (uintptr_t)b),
			OBJTRACK_ACTIVE);
	objtrack_get_stats(track, &stats);
	CU_ASSERT_EQUAL(stats.tracked, 1 + 2); /* order 8 and order 0 */
	CU_ASSERT_EQUAL(give(&f, b, HEAP_FINISH_PARK), 0);
	b = heap_find_parked(f.heap, 1, MIB(1) + 4096);
	T_REQUIRE(b);
	heap_take_parked(f.heap, b);
	CU_ASSERT_EQUAL(objtrack_state_of(track, KIND_BUFFER, (uintptr_t)b),
			OBJTRACK_ACTIVE);
	CU_ASSERT_EQUAL(give(&f, b, HEAP_FINISH_POOL), 0);
	(void)take(&f, 1, MIB(1)); /* left for heap_set_free() */
	CU_ASSERT_TRUE(objtrack_check(track));
	fixture_close(&f);
	objtrack_get_stats(track, &stats);
	CU_ASSERT_EQUAL(stats.tracked, 0);
	objtrack_free(track);
	CU_ASSERT_EQUAL(n_reports, 0);
}

static void a_buffer_with_anothers_block_is_reported(void)
{
	struct fixture f;
	struct objtrack *track;
	struct buffer *b;

	fixture_open(&f, MIB(64), "840-high");
	track = track_on(&f);
	b = take(&f, 1, 4096);
	T_REQUIRE(b);
	/* The bug: somebody else holds the same block. */
	(void)objtrack_init(track, 0, KIND_BLOCK, b->runs[0].pfn);
	CU_ASSERT_EQUAL(n_reports, 1);
	CU_ASSERT_EQUAL(last_misuse, OBJTRACK_DOUBLE_INIT);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "double init: block 0x"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "init in buffer_append() at "));
	CU_ASSERT_EQUAL(give(&f, b, HEAP_FINISH_NODE), 0);
	/* And a stale handle: the buffer is gone. */
	CU_ASSERT_FALSE(objtrack_use(track, 0, KIND_BUFFER, (uintptr_t)b));
	CU_ASSERT_EQUAL(last_misuse, OBJTRACK_USE_AFTER_FREE);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "free in buffer_destroy() at "));
	fixture_close(&f);
	objtrack_free(track);
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"a page of buffers is a page of the node",
		 a_page_of_buffers_is_a_page_of_the_node},
		{"large pages hold a slab each", large_pages_hold_a_slab_each},
		{"a node without a page for it refuses the buffer",
		 a_node_without_a_page_for_it_refuses_the_buffer},
		{"each allocation may fail", each_allocation_may_fail},
		{"a set without memory is not made",
		 a_set_without_memory_is_not_made},
		{"slabinfo counts the buffers", slabinfo_counts_the_buffers},
		{"tables in single pages are counted",
		 tables_in_single_pages_are_counted},
		{"a right life is tracked without a word",
		 a_right_life_is_tracked_without_a_word},
		{"a buffer with another's block is reported",
		 a_buffer_with_anothers_block_is_reported},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "heap_metadata", .pTests = tests},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
