/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "base/rng.h"
#include "base/slab.h"
#include "base/slab_class.h"
#include "support/fail_malloc.h"
#include "support/test.h"

/* Pages that are counted, checked and can run out. */
struct pages {
	uint64_t n_live, n_max, next_cookie, cookie_sum;
};

static void *pages_alloc(void *ctx, unsigned int order, uint64_t *ret_cookie)
{
	struct pages *p = ctx;
	size_t bytes = (size_t)SLAB_PAGE_BYTES << order;

	if (p->n_live + (1u << order) > p->n_max)
		return NULL;
	p->n_live += 1u << order;
	*ret_cookie = ++p->next_cookie;
	p->cookie_sum += *ret_cookie;
	return aligned_alloc(bytes, bytes);
}

static void pages_free(void *ctx, void *pages, unsigned int order,
		       uint64_t cookie)
{
	struct pages *p = ctx;

	p->n_live -= 1u << order;
	p->cookie_sum -= cookie;
	free(pages);
}

static struct pages pages;

static struct slab_cache *make(size_t size, size_t align, unsigned int order)
{
	struct slab_params params = {
		.size_bytes = size,
		.align_bytes = align,
		.order = order,
		.debug = SLAB_DEBUG_OFF,
		.page_ops = {pages_alloc, pages_free, &pages},
	};
	struct slab_cache *cache = NULL;

	pages = (struct pages){.n_max = 100000};
	T_REQUIRE(slab_cache_new(&cache, "test", &params) == 0);
	return cache;
}

static struct slab_stats stats_of(const struct slab_cache *cache)
{
	struct slab_stats stats;

	slab_cache_stats(cache, &stats);
	return stats;
}

static void objects_per_slab_are_as_computed(void)
{
	static const struct {
		size_t size, align;
		unsigned int order, per_slab, stride;
	} cases[] = {
		{312, 0, 0, 13, 312},  {304, 0, 0, 13, 304},
		{304, 64, 0, 12, 320}, {312, 64, 0, 12, 320},
		{300, 0, 0, 13, 304},  {512, 0, 1, 16, 512},
		{40, 0, 0, 102, 40},   {1, 0, 0, 512, 8},
		{4096, 0, 0, 1, 4096}, {8, 4096, 0, 1, 4096},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct slab_cache *cache =
			make(cases[i].size, cases[i].align, cases[i].order);
		struct slab_stats stats = stats_of(cache);

		CU_ASSERT_EQUAL(stats.objects_per_slab, cases[i].per_slab);
		CU_ASSERT_EQUAL(stats.object_bytes, cases[i].stride);
		slab_cache_free(cache);
	}
}

static void debugging_does_not_change_a_fixed_number_per_slab(void)
{
	struct slab_params params = {.size_bytes = 312, .n_per_slab = 13};
	struct slab_stats stats[2];
	struct slab_cache *cache;

	for (int debug = 0; debug < 2; debug++) {
		params.debug = debug ? SLAB_DEBUG_ON : SLAB_DEBUG_OFF;
		T_REQUIRE(slab_cache_new(&cache, "x", &params) == 0);
		slab_cache_stats(cache, &stats[debug]);
		CU_ASSERT_EQUAL(stats[debug].objects_per_slab, 13);
		cache = slab_cache_free(cache);
	}
	CU_ASSERT_EQUAL(stats[0].pages_per_slab, 1);
	CU_ASSERT_EQUAL(stats[1].pages_per_slab, 2);
	/* Fewer than fit. */
	params = (struct slab_params){.size_bytes = 1024, .n_per_slab = 3};
	params.debug = SLAB_DEBUG_OFF;
	T_REQUIRE(slab_cache_new(&cache, "x", &params) == 0);
	slab_cache_stats(cache, &stats[0]);
	CU_ASSERT_EQUAL(stats[0].objects_per_slab, 3);
	slab_cache_free(cache);
}

static void bad_parameters_are_refused(void)
{
	static const struct slab_params bad[] = {
		{.size_bytes = 0},
		{.size_bytes = 4097},
		{.size_bytes = 8, .order = SLAB_ORDER_MAX + 1},
		{.size_bytes = 8, .align_bytes = 24},
		{.size_bytes = 8, .align_bytes = 8192, .order = 2},
		{.size_bytes = 8, .front_batch = 257},
		{.size_bytes = 8, .n_fronts = 257},
		{.size_bytes = 4096, .debug = SLAB_DEBUG_ON}, /* no red zone */
		{.size_bytes = 4096, .n_per_slab = 33},
	};
	struct slab_params good = {.size_bytes = 8};
	struct slab_cache *cache = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		CU_ASSERT_EQUAL(slab_cache_new(&cache, "x", &bad[i]), -EINVAL);
	CU_ASSERT_EQUAL(slab_cache_new(&cache, "", &good), -EINVAL);
	CU_ASSERT_EQUAL(slab_cache_new(&cache, "a b", &good), -EINVAL);
	CU_ASSERT_EQUAL(slab_cache_new(&cache,
				       "0123456789012345678901234567890123",
				       &good),
			-EINVAL);
	CU_ASSERT_PTR_NULL(cache);
}

static void objects_do_not_overlap_and_are_aligned(void)
{
	struct slab_cache *cache = make(100, 64, 1);
	unsigned char *objects[200];

	for (int i = 0; i < 200; i++) {
		objects[i] = slab_alloc(cache, SLAB_NO_FRONT);
		T_REQUIRE(objects[i]);
		CU_ASSERT_EQUAL((uintptr_t)objects[i] % 64, 0);
		memset(objects[i], i, 100);
	}
	for (int i = 0; i < 200; i++)
		for (int k = 0; k < 100; k++)
			CU_ASSERT_EQUAL(objects[i][k], i);
	for (int i = 0; i < 200; i++)
		slab_free(cache, SLAB_NO_FRONT, objects[i]);
	CU_ASSERT_TRUE(slab_check(cache));
	slab_cache_free(cache);
	CU_ASSERT_EQUAL(pages.n_live, 0);
	CU_ASSERT_EQUAL(pages.cookie_sum, 0);
}

static void no_pages_means_null(void)
{
	struct slab_cache *cache = make(1024, 0, 0);
	void *objects[8];

	pages.n_max = 2;
	for (int i = 0; i < 8; i++) {
		objects[i] = slab_alloc(cache, SLAB_NO_FRONT);
		T_REQUIRE(objects[i]);
	}
	CU_ASSERT_PTR_NULL(slab_alloc(cache, SLAB_NO_FRONT));
	CU_ASSERT_TRUE(slab_check(cache));
	slab_free(cache, SLAB_NO_FRONT, objects[3]);
	objects[3] = slab_zalloc(cache, SLAB_NO_FRONT);
	CU_ASSERT_PTR_NOT_NULL(objects[3]);
	CU_ASSERT_PTR_NULL(slab_zalloc(cache, SLAB_NO_FRONT));
	for (int i = 0; i < 8; i++)
		slab_free(cache, SLAB_NO_FRONT, objects[i]);
	slab_free(cache, SLAB_NO_FRONT, NULL); /* nothing */
	slab_cache_free(cache);
}

static void a_front_that_finds_few_pages_takes_what_there_is(void)
{
	struct slab_params params = {
		.size_bytes = 1024,
		.n_fronts = 1,
		.debug = SLAB_DEBUG_OFF,
		.page_ops = {pages_alloc, pages_free, &pages},
	};
	struct slab_cache *cache = NULL;
	void *objects[4];

	pages = (struct pages){.n_max = 1};
	T_REQUIRE(slab_cache_new(&cache, "test", &params) == 0);
	for (int i = 0; i < 4; i++) {
		objects[i] = slab_alloc(cache, 0);
		CU_ASSERT_PTR_NOT_NULL(objects[i]);
	}
	CU_ASSERT_PTR_NULL(slab_alloc(cache, 0));
	CU_ASSERT_EQUAL(stats_of(cache).active_objects, 4);
	for (int i = 0; i < 4; i++)
		slab_free(cache, 0, objects[i]);
	CU_ASSERT_EQUAL(stats_of(cache).front_objects, 4);
	CU_ASSERT_EQUAL(stats_of(cache).active_objects, 0);
	slab_cache_free(cache);
}

static void the_quiet_run_of_the_source_comes_out(void)
{
	struct slab_cache *cache = make(304, 0, 0);
	uint64_t holding[14], n_slabs = 0, n_objects = 0;
	void *objects[403];
	struct slab_stats stats;

	for (int i = 0; i < 403; i++)
		objects[i] = slab_alloc(cache, SLAB_NO_FRONT);
	/* Every second one goes, and seven more: 194 stay. */
	for (int i = 0; i < 403; i++) {
		if (i % 2 == 0 || i % 60 == 1) {
			slab_free(cache, SLAB_NO_FRONT, objects[i]);
			objects[i] = NULL;
		}
	}
	stats = stats_of(cache);
	CU_ASSERT_EQUAL(stats.active_objects, 194);
	CU_ASSERT_EQUAL(stats.total_objects, 403);
	CU_ASSERT_EQUAL(stats.total_slabs, 31);
	CU_ASSERT_EQUAL(stats.total_bytes, 126976);
	slab_occupancy(cache, holding, ARRAY_SIZE(holding));
	for (size_t i = 0; i < ARRAY_SIZE(holding); i++) {
		n_slabs += holding[i];
		n_objects += i * holding[i];
	}
	CU_ASSERT_EQUAL(n_slabs, 31);
	CU_ASSERT_EQUAL(n_objects, 194);
	CU_ASSERT_EQUAL(slab_shrink(cache), 0); /* each slab holds some */
	for (int i = 0; i < 403; i++)
		slab_free(cache, SLAB_NO_FRONT, objects[i]);
	slab_cache_free(cache);
}

static void shrink_frees_the_empty_and_sorts_the_rest(void)
{
	struct slab_params params = {.size_bytes = 1024,
				     .n_keep_free = 8,
				     .n_fronts = 2,
				     .debug = SLAB_DEBUG_OFF,
				     .page_ops = {pages_alloc, pages_free,
						  &pages}};
	struct slab_cache *cache = NULL;
	void *objects[16], *next;

	pages = (struct pages){.n_max = 100};
	T_REQUIRE(slab_cache_new(&cache, "test", &params) == 0);
	for (int i = 0; i < 16; i++)
		objects[i] = slab_alloc(cache, SLAB_NO_FRONT);
	/* Slab 0 keeps 1 object, slab 1 three, slab 2 two, slab 3 none. */
	for (int i = 0; i < 16; i++) {
		static const bool stays[16] = {1, 0, 0, 0, 1, 1, 1, 0,
					       1, 1, 0, 0, 0, 0, 0, 0};
		if (!stays[i]) {
			slab_free(cache, i % 2, objects[i]);
			objects[i] = NULL;
		}
	}
	CU_ASSERT_EQUAL(stats_of(cache).total_slabs, 4);
	CU_ASSERT_EQUAL(slab_shrink(cache), 1);
	CU_ASSERT_EQUAL(stats_of(cache).total_slabs, 3);
	CU_ASSERT_TRUE(slab_check(cache));
	/* The fullest slab is used first. */
	next = slab_alloc(cache, SLAB_NO_FRONT);
	CU_ASSERT_EQUAL((uintptr_t)next / 4096, (uintptr_t)objects[4] / 4096);
	slab_free(cache, SLAB_NO_FRONT, next);
	for (int i = 0; i < 16; i++)
		slab_free(cache, SLAB_NO_FRONT, objects[i]);
	CU_ASSERT_EQUAL(stats_of(cache).total_slabs, 3); /* kept */
	slab_cache_free(cache);
	CU_ASSERT_EQUAL(pages.n_live, 0);
}

static void random_steps_keep_every_invariant(void)
{
	enum { N = 500 };
	struct slab_params params = {.size_bytes = 72,
				     .n_fronts = 3,
				     .front_batch = 4,
				     .n_keep_free = 2,
				     .debug = SLAB_DEBUG_ON,
				     .page_ops = {pages_alloc, pages_free,
						  &pages}};
	struct slab_cache *cache = NULL;
	void *objects[N] = {0};
	uint64_t n_live = 0;
	struct rng rng;

	rng_seed(&rng, 11);
	pages = (struct pages){.n_max = 8}; /* not enough for all */
	T_REQUIRE(slab_cache_new(&cache, "test", &params) == 0);
	for (int step = 0; step < 5000; step++) {
		size_t i = rng_below(&rng, N);
		unsigned int front = (unsigned int)rng_below(&rng, 4);

		if (front == 3)
			front = SLAB_NO_FRONT;
		if (objects[i]) {
			slab_free(cache, front, objects[i]);
			objects[i] = NULL;
			n_live--;
		} else {
			objects[i] = slab_alloc(cache, front);
			n_live += objects[i] != NULL;
		}
		if (rng_below(&rng, 500) == 0)
			(void)slab_shrink(cache);
		CU_ASSERT_TRUE(slab_check(cache));
		CU_ASSERT_EQUAL(stats_of(cache).active_objects, n_live);
		CU_ASSERT_EQUAL(stats_of(cache).total_slabs, pages.n_live);
	}
	for (size_t i = 0; i < N; i++)
		slab_free(cache, SLAB_NO_FRONT, objects[i]);
	slab_cache_free(cache);
	CU_ASSERT_EQUAL(pages.n_live, 0);
}

/* A cache whose page callback frees objects of it, as reclaim would. */
static struct slab_cache *reclaimed_cache;
static void *reclaimed_object;

static void *reclaiming_alloc(void *ctx, unsigned int order,
			      uint64_t *ret_cookie)
{
	slab_free(reclaimed_cache, SLAB_NO_FRONT, reclaimed_object);
	reclaimed_object = NULL;
	return pages_alloc(ctx, order, ret_cookie);
}

static void fetching_pages_may_free_objects(void)
{
	struct slab_params params = {
		.size_bytes = 2048,
		.debug = SLAB_DEBUG_OFF,
		.page_ops = {reclaiming_alloc, pages_free, &pages},
	};
	void *a, *b, *c;

	pages = (struct pages){.n_max = 10};
	T_REQUIRE(slab_cache_new(&reclaimed_cache, "test", &params) == 0);
	a = slab_alloc(reclaimed_cache, SLAB_NO_FRONT);
	b = slab_alloc(reclaimed_cache, SLAB_NO_FRONT);
	reclaimed_object = a;
	c = slab_alloc(reclaimed_cache, SLAB_NO_FRONT);
	CU_ASSERT_PTR_NOT_NULL(c);
	CU_ASSERT_PTR_NULL(reclaimed_object);
	CU_ASSERT_EQUAL(stats_of(reclaimed_cache).active_objects, 2);
	CU_ASSERT_TRUE(slab_check(reclaimed_cache));
	slab_free(reclaimed_cache, SLAB_NO_FRONT, b);
	slab_free(reclaimed_cache, SLAB_NO_FRONT, c);
	slab_cache_free(reclaimed_cache);
	CU_ASSERT_EQUAL(pages.n_live, 0);
}

static void objects_may_come_from_malloc_instead(void)
{
	struct slab_params params = {
		.size_bytes = 100,
		.align_bytes = 64,
		.n_fronts = 1,
		.page_ops = {pages_alloc, pages_free, &pages},
	};
	struct slab_cache *cache = NULL;
	void *object;

	pages = (struct pages){.n_max = 10};
	slab_use_malloc(true);
	T_REQUIRE(slab_cache_new(&cache, "test", &params) == 0);
	slab_use_malloc(false);
	object = slab_zalloc(cache, 0);
	T_REQUIRE(object);
	CU_ASSERT_EQUAL((uintptr_t)object % 64, 0);
	CU_ASSERT_EQUAL(stats_of(cache).active_objects, 1);
	CU_ASSERT_EQUAL(stats_of(cache).total_slabs, 0);
	CU_ASSERT_EQUAL(pages.n_live, 0);
	fail_malloc_at(1);
	CU_ASSERT_PTR_NULL(slab_alloc(cache, 0));
	fail_malloc_at(0);
	slab_free(cache, 0, object);
	CU_ASSERT_TRUE(slab_check(cache));
	slab_cache_free(cache);
}

static void many_slabs_are_found_again(void)
{
	enum { N = 3000 };
	struct slab_cache *cache = make(2048, 0, 0);
	void **objects = calloc(N, sizeof(*objects));

	T_REQUIRE(objects);
	for (int i = 0; i < N; i++)
		objects[i] = slab_alloc(cache, SLAB_NO_FRONT);
	CU_ASSERT_EQUAL(stats_of(cache).total_slabs, N / 2);
	CU_ASSERT_TRUE(slab_check(cache));
	for (int i = 0; i < N; i++)
		slab_free(cache, SLAB_NO_FRONT, objects[i]);
	CU_ASSERT_EQUAL(stats_of(cache).total_slabs, 0);
	free(objects);
	slab_cache_free(cache);
}

static void each_allocation_may_fail(void)
{
	struct slab_params params = {.size_bytes = 2048,
				     .n_fronts = 2,
				     .debug = SLAB_DEBUG_OFF};
	struct slab_registry *registry = NULL;
	struct slab_cache *cache = NULL;

	FAIL_MALLOC_EACH({
		int r = slab_registry_new(&registry);

		params.registry = registry;
		if (r == 0)
			r = slab_cache_new(&cache, "test", &params);
		CU_ASSERT(r == 0 || r == -ENOMEM);
		for (int i = 0; r == 0 && i < 300; i++) {
			void *object = slab_alloc(cache, 0);

			CU_ASSERT(object || fail_malloc_hit());
			if (object)
				slab_free(cache, SLAB_NO_FRONT, object);
			if (i % 50 == 0)
				CU_ASSERT_TRUE(slab_check(cache));
		}
		cache = slab_cache_free(cache);
		registry = slab_registry_free(registry);
	});
}

/* The table of slabs cannot grow: slower, but right. */
static void a_table_that_cannot_grow_is_no_failure(void)
{
	struct slab_cache *cache = make(4096, 0, 0);
	void *objects[66];

	for (int i = 0; i < 66; i++) {
		/* malloc order: struct slab, pages, then the larger table. */
		if (i == 64)
			fail_malloc_at(3);
		objects[i] = slab_alloc(cache, SLAB_NO_FRONT);
		CU_ASSERT_PTR_NOT_NULL(objects[i]);
		if (i == 64) {
			CU_ASSERT(fail_malloc_hit());
			fail_malloc_at(0);
		}
	}
	CU_ASSERT_TRUE(slab_check(cache));
	for (int i = 0; i < 66; i++)
		slab_free(cache, SLAB_NO_FRONT, objects[i]);
	slab_cache_free(cache);
}

struct worker {
	struct slab_cache *cache;
	unsigned int front;
	pthread_t thread;
};

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	void *objects[64] = {0};
	struct rng rng;

	rng_seed(&rng, w->front);
	for (int i = 0; i < 20000; i++) {
		size_t k = rng_below(&rng, 64);

		if (objects[k]) {
			slab_free(w->cache, w->front, objects[k]);
			objects[k] = NULL;
		} else {
			objects[k] = slab_alloc(w->cache, w->front);
			memset(objects[k], (int)w->front, 64);
		}
	}
	for (size_t k = 0; k < 64; k++)
		slab_free(w->cache, w->front, objects[k]);
	return NULL;
}

static void workers_share_a_cache(void)
{
	struct slab_params params = {.size_bytes = 64,
				     .n_fronts = 3,
				     .debug = SLAB_DEBUG_ON};
	struct slab_cache *cache = NULL;
	struct worker workers[3];

	T_REQUIRE(slab_cache_new(&cache, "test", &params) == 0);
	for (unsigned int i = 0; i < 3; i++) {
		workers[i] = (struct worker){.cache = cache, .front = i};
		T_REQUIRE(pthread_create(&workers[i].thread, NULL, worker_main,
					 &workers[i]) == 0);
	}
	for (int i = 0; i < 100; i++) /* statistics at any time */
		CU_ASSERT(stats_of(cache).active_objects <= 3 * 64 + 3);
	for (int i = 0; i < 3; i++)
		pthread_join(workers[i].thread, NULL);
	CU_ASSERT_TRUE(slab_check(cache));
	CU_ASSERT_EQUAL(stats_of(cache).active_objects, 0);
	slab_cache_free(cache);
}

static void slabinfo_lists_every_cache(void)
{
	_cleanup_(strbuf_finip) struct strbuf sb = STRBUF_INIT;
	struct slab_registry *registry = NULL;
	struct slab_params params = {.size_bytes = 312,
				     .debug = SLAB_DEBUG_OFF};
	struct slab_cache *a = NULL, *b = NULL;
	void *object;

	T_REQUIRE(slab_registry_new(&registry) == 0);
	params.registry = registry;
	T_REQUIRE(slab_cache_new(&a, "buffer", &params) == 0);
	T_REQUIRE(slab_cache_new(&b, "conn", &params) == 0);
	object = slab_alloc(a, SLAB_NO_FRONT);
	slab_render_slabinfo(registry, &sb);
	CU_ASSERT_STRING_EQUAL(
		strbuf_string(&sb),
		"slabinfo - version: 2.1\n"
		"# name            <active_objs> <num_objs> <objsize> "
		"<objperslab> <pagesperslab> : tunables <limit> <batchcount> "
		"<sharedfactor> : slabdata <active_slabs> <num_slabs> "
		"<sharedavail>\n"
		"buffer                 1     13    312   13    1 : tunables   "
		"32   16    0 : slabdata      1      1      0\n"
		"conn                   0      0    312   13    1 : tunables   "
		"32   16    0 : slabdata      0      0      0\n");
	slab_free(a, SLAB_NO_FRONT, object);
	slab_cache_free(a);
	slab_cache_free(b);
	slab_registry_free(registry);
}

static void size_classes_are_those_of_kmalloc(void)
{
	CU_ASSERT_EQUAL(slab_class_bytes(1), 8);
	CU_ASSERT_EQUAL(slab_class_bytes(65), 96);
	CU_ASSERT_EQUAL(slab_class_bytes(129), 192);
	CU_ASSERT_EQUAL(slab_class_bytes(304), 512);
	CU_ASSERT_EQUAL(slab_class_bytes(8192), 8192);
	CU_ASSERT_EQUAL(slab_class_bytes(8193), 8193);
}

static void size_classes_resize_like_realloc(void)
{
	struct slab_params params = {.debug = SLAB_DEBUG_ON};
	struct slab_classes *classes = NULL;
	struct slab_stats stats;
	char *p = NULL, *before;
	size_t bytes = 0;

	T_REQUIRE(slab_classes_new(&classes, &params) == 0);
	for (size_t want = 1; want < 20000; want += 37) {
		before = p;
		p = slab_classes_resize(classes, p, bytes, want);
		T_REQUIRE(p);
		if (before && slab_class_bytes(bytes) == slab_class_bytes(want))
			CU_ASSERT_PTR_EQUAL(p, before);
		for (size_t i = 0; i < bytes; i++)
			CU_ASSERT_EQUAL(p[i], (char)i);
		for (size_t i = 0; i < want; i++)
			p[i] = (char)i;
		bytes = want;
	}
	p = slab_classes_resize(classes, p, bytes, 300); /* shrinks */
	CU_ASSERT_EQUAL(p[299], (char)299);
	slab_classes_stats(classes, 300, &stats);
	CU_ASSERT_EQUAL(stats.active_objects, 1);
	CU_ASSERT_EQUAL(stats.pages_per_slab, 2);
	CU_ASSERT_TRUE(slab_classes_check(classes));
	CU_ASSERT_PTR_NULL(slab_classes_resize(classes, p, 300, 0));
	CU_ASSERT_PTR_NULL(slab_classes_resize(classes, NULL, 0, 0));
	slab_classes_free(classes);
}

static void size_classes_without_memory_leave_the_object(void)
{
	struct slab_params params = {.debug = SLAB_DEBUG_OFF};
	struct slab_classes *classes = NULL;
	char *p;

	T_REQUIRE(slab_classes_new(&classes, &params) == 0);
	p = slab_classes_resize(classes, NULL, 0, 100);
	T_REQUIRE(p);
	*p = 'x';
	fail_malloc_at(1);
	CU_ASSERT_PTR_NULL(slab_classes_resize(classes, p, 100, 200));
	fail_malloc_at(0);
	CU_ASSERT_EQUAL(*p, 'x');
	(void)slab_classes_resize(classes, p, 100, 0);
	classes = slab_classes_free(classes);

	FAIL_MALLOC_EACH({
		int r = slab_classes_new(&classes, &params);

		CU_ASSERT_EQUAL(r, fail_malloc_hit() ? -ENOMEM : 0);
		classes = slab_classes_free(classes);
	});
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"objects per slab are as computed",
		 objects_per_slab_are_as_computed},
		{"debugging does not change a fixed number per slab",
		 debugging_does_not_change_a_fixed_number_per_slab},
		{"bad parameters are refused", bad_parameters_are_refused},
		{"objects do not overlap and are aligned",
		 objects_do_not_overlap_and_are_aligned},
		{"no pages means NULL", no_pages_means_null},
		{"a front that finds few pages takes what there is",
		 a_front_that_finds_few_pages_takes_what_there_is},
		{"the quiet run of the source comes out",
		 the_quiet_run_of_the_source_comes_out},
		{"shrink frees the empty and sorts the rest",
		 shrink_frees_the_empty_and_sorts_the_rest},
		{"random steps keep every invariant",
		 random_steps_keep_every_invariant},
		{"fetching pages may free objects",
		 fetching_pages_may_free_objects},
		{"objects may come from malloc instead",
		 objects_may_come_from_malloc_instead},
		{"many slabs are found again", many_slabs_are_found_again},
		{"each allocation may fail", each_allocation_may_fail},
		{"a table that cannot grow is no failure",
		 a_table_that_cannot_grow_is_no_failure},
		{"workers share a cache", workers_share_a_cache},
		{"slabinfo lists every cache", slabinfo_lists_every_cache},
		{"size classes are those of kmalloc",
		 size_classes_are_those_of_kmalloc},
		{"size classes resize like realloc",
		 size_classes_resize_like_realloc},
		{"size classes without memory leave the object",
		 size_classes_without_memory_leave_the_object},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "base_slab", .pTests = tests},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
