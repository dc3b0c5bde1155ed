/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>
#include <wchar.h>

#include "base/rng.h"
#include "base/strbuf.h"
#include "support/fail_malloc.h"
#include "support/test.h"

/* A memory that counts what it is asked for, and whose blocks always move. */
struct counter {
	unsigned int n_grown, n_freed, fail_at;
	size_t live_bytes;
	void *freed; /* the last pointer that was freed */
};

static void *count_resize(void *ctx, void *old, size_t old_bytes,
			  size_t new_bytes)
{
	struct counter *c = ctx;
	void *p;

	if (new_bytes == 0) {
		CU_ASSERT(old != NULL && old_bytes > 0);
		c->n_freed++;
		c->freed = old;
		c->live_bytes -= old_bytes;
		free(old);
		return NULL;
	}
	if (++c->n_grown == c->fail_at)
		return NULL;
	p = malloc(new_bytes);
	T_REQUIRE(p);
	if (old) {
		memcpy(p, old, old_bytes);
		free(old);
	}
	c->live_bytes += new_bytes - old_bytes;
	return p;
}

static void text_is_appended_in_every_way(void)
{
	_cleanup_(strbuf_finip) struct strbuf sb = STRBUF_INIT;

	CU_ASSERT_STRING_EQUAL(strbuf_string(&sb), "");
	strbuf_append(&sb, "%s-%04d", "a", 7);
	strbuf_append_char(&sb, ' ');
	strbuf_append_string(&sb, "b");
	strbuf_append_bytes(&sb, "c\0d", 3);
	CU_ASSERT_EQUAL(sb.len, 11);
	CU_ASSERT_EQUAL(memcmp(sb.s, "a-0007 bc\0d", 12), 0);
	CU_ASSERT_FALSE(strbuf_failed(&sb));
}

static void an_empty_append_makes_an_empty_text(void)
{
	_cleanup_(strbuf_finip) struct strbuf sb = STRBUF_INIT;

	strbuf_append(&sb, "%s", "");
	CU_ASSERT_STRING_EQUAL(strbuf_string(&sb), "");
	strbuf_append_bytes(&sb, NULL, 0);
	CU_ASSERT_STRING_EQUAL(strbuf_string(&sb), "");
	CU_ASSERT_EQUAL(sb.len, 0);
}

static void each_length_around_the_room_fits(void)
{
	for (int first = 0; first < 70; first++) {
		for (int more = 0; more < 70; more++) {
			struct strbuf sb = STRBUF_INIT;
			char want[160];

			strbuf_append(&sb, "%.*s", first,
				      "################"
				      "####################################"
				      "####################");
			strbuf_append(&sb, "%0*d|", more, 5);
			(void)snprintf(want, sizeof(want), "%.*s%0*d|", first,
				       "####################################"
				       "####################################",
				       more, 5);
			CU_ASSERT_STRING_EQUAL(strbuf_string(&sb), want);
			CU_ASSERT_EQUAL(sb.len, strlen(want));
			CU_ASSERT(sb.cap > sb.len);
			strbuf_fini(&sb);
		}
	}
}

static void its_own_bytes_may_be_appended(void)
{
	_cleanup_(strbuf_finip) struct strbuf sb = STRBUF_INIT;

	strbuf_append_string(&sb, "0123456789");
	for (int i = 0; i < 6; i++)
		strbuf_append_bytes(&sb, sb.s, sb.len);
	CU_ASSERT_EQUAL(sb.len, 640);
	CU_ASSERT_EQUAL(memcmp(sb.s + 630, "0123456789", 11), 0);
	strbuf_append_bytes(&sb, sb.s + 5, 5);
	CU_ASSERT_STRING_EQUAL(sb.s + 640, "56789");
}

static void growth_is_geometric_or_exact(void)
{
	struct counter geometric = {0}, exact = {0};
	struct strbuf_memory m = {count_resize, &geometric, false};
	struct strbuf_memory x = {count_resize, &exact, true};
	struct strbuf a = {.memory = &m}, b = {.memory = &x};

	for (int i = 0; i < 1000; i++) {
		strbuf_append_char(&a, 'x');
		strbuf_append_char(&b, 'x');
	}
	CU_ASSERT(geometric.n_grown < 20);
	CU_ASSERT_EQUAL(exact.n_grown, 1000);
	CU_ASSERT_EQUAL(exact.live_bytes, 1001);
	CU_ASSERT_STRING_EQUAL(strbuf_string(&a), strbuf_string(&b));
	strbuf_fini(&a);
	strbuf_fini(&b);
	CU_ASSERT_EQUAL(geometric.live_bytes + exact.live_bytes, 0);
}

static void failure_sticks_and_frees_what_was_there(void)
{
	struct counter c = {.fail_at = 2};
	struct strbuf_memory m = {count_resize, &c, false};
	struct strbuf sb = {.memory = &m};
	void *old;

	strbuf_append_string(&sb, "before");
	old = sb.s;
	strbuf_append(&sb, "%0200d", 1); /* does not fit: fails */
	CU_ASSERT_TRUE(strbuf_failed(&sb));
	CU_ASSERT_STRING_EQUAL(strbuf_string(&sb), STRBUF_FAILED_TEXT);
	CU_ASSERT_EQUAL(c.n_freed, 1);
	CU_ASSERT_PTR_EQUAL(c.freed, old);
	CU_ASSERT_EQUAL(c.live_bytes, 0);

	strbuf_append(&sb, "%s", "later");
	strbuf_append_char(&sb, 'x');
	strbuf_append_string(&sb, "x");
	strbuf_append_bytes(&sb, "x", 1);
	CU_ASSERT_EQUAL(c.n_grown, 2); /* nothing was asked for again */
	CU_ASSERT_STRING_EQUAL(strbuf_string(&sb), STRBUF_FAILED_TEXT);
	CU_ASSERT_PTR_NULL(strbuf_steal(&sb));

	strbuf_fini(&sb);
	strbuf_fini(&sb);
	CU_ASSERT_EQUAL(c.n_freed, 1); /* the fixed text is never freed */
	CU_ASSERT_FALSE(strbuf_failed(&sb));
}

static void a_failed_string_works_again_after_reset(void)
{
	struct counter c = {.fail_at = 1};
	struct strbuf_memory m = {count_resize, &c, false};
	struct strbuf sb = {.memory = &m};

	strbuf_append_char(&sb, 'x');
	CU_ASSERT_TRUE(strbuf_failed(&sb));
	strbuf_reset(&sb);
	strbuf_append_char(&sb, 'y');
	CU_ASSERT_STRING_EQUAL(strbuf_string(&sb), "y");
	strbuf_reset(&sb);
	CU_ASSERT_STRING_EQUAL(strbuf_string(&sb), "");
	CU_ASSERT_EQUAL(c.n_grown, 2); /* reset keeps the memory */
	strbuf_fini(&sb);
}

static void impossible_lengths_and_formats_fail(void)
{
	struct strbuf sb = STRBUF_INIT;

	strbuf_append_string(&sb, "x");
	strbuf_append_bytes(&sb, sb.s, SIZE_MAX - 1);
	CU_ASSERT_TRUE(strbuf_failed(&sb));
	strbuf_reset(&sb);
	/* A wide character that no multibyte text of the C locale holds. */
	strbuf_append(&sb, "%lc", (wint_t)0x20ac);
	CU_ASSERT_TRUE(strbuf_failed(&sb));
	strbuf_fini(&sb);
}

static void stolen_text_is_the_callers(void)
{
	struct strbuf sb = STRBUF_INIT;
	char *s;

	strbuf_append(&sb, "%d", 42);
	s = strbuf_steal(&sb);
	CU_ASSERT_STRING_EQUAL(s, "42");
	free(s);
	CU_ASSERT_STRING_EQUAL(strbuf_string(&sb), "");
	s = strbuf_steal(&sb); /* of an empty one */
	CU_ASSERT_STRING_EQUAL(s, "");
	free(s);
	strbuf_fini(&sb);
}

static void each_allocation_may_fail(void)
{
	struct strbuf sb = STRBUF_INIT;

	FAIL_MALLOC_EACH({
		for (int i = 0; i < 500; i++)
			strbuf_append(&sb, "%d,", i);
		CU_ASSERT_EQUAL(strbuf_failed(&sb), fail_malloc_hit());
		strbuf_fini(&sb);
	});
}

static void check(const struct strbuf *sb, const char *want, size_t len)
{
	CU_ASSERT_EQUAL(sb->len, len);
	CU_ASSERT_EQUAL(memcmp(strbuf_string(sb), want, len + 1), 0);
	CU_ASSERT(sb->s ? sb->cap > sb->len : sb->cap == 0);
}

static void random_appends_agree_with_a_plain_array(void)
{
	static char want[1 << 16];
	struct strbuf sb = STRBUF_INIT;
	size_t len = 0;
	struct rng rng;

	rng_seed(&rng, 3);
	for (int i = 0; i < 3000; i++) {
		uint64_t n = rng_next(&rng), which = rng_below(&rng, 4);

		if (which == 0) {
			strbuf_append(&sb, "%llu", (unsigned long long)n);
			len += (size_t)snprintf(want + len, 32, "%llu",
						(unsigned long long)n);
		} else if (which == 1) {
			strbuf_append_char(&sb, (char)n);
			want[len++] = (char)n;
			want[len] = '\0';
		} else if (which == 2 && len > 10) {
			strbuf_append_bytes(&sb, sb.s + len - 10, 10);
			memcpy(want + len, want + len - 10, 10);
			len += 10;
			want[len] = '\0';
		} else if (rng_below(&rng, 50) == 0) {
			strbuf_reset(&sb);
			len = 0;
			want[0] = '\0';
		}
		check(&sb, want, len);
	}
	strbuf_fini(&sb);
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"text is appended in every way",
		 text_is_appended_in_every_way},
		{"an empty append makes an empty text",
		 an_empty_append_makes_an_empty_text},
		{"each length around the room fits",
		 each_length_around_the_room_fits},
		{"its own bytes may be appended",
		 its_own_bytes_may_be_appended},
		{"growth is geometric or exact", growth_is_geometric_or_exact},
		{"failure sticks and frees what was there",
		 failure_sticks_and_frees_what_was_there},
		{"a failed string works again after reset",
		 a_failed_string_works_again_after_reset},
		{"impossible lengths and formats fail",
		 impossible_lengths_and_formats_fail},
		{"stolen text is the caller's", stolen_text_is_the_callers},
		{"each allocation may fail", each_allocation_may_fail},
		{"random appends agree with a plain array",
		 random_appends_agree_with_a_plain_array},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "base_strbuf", .pTests = tests},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
