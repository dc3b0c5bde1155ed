/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "conf/ini.h"
#include "support/fail_malloc.h"
#include "support/test.h"

static struct conf_error err;

static struct conf_ini *parse_bytes(const char *text, size_t len,
				    unsigned int flags)
{
	struct conf_ini *ini = NULL;

	err.text[0] = '\0';
	(void)!conf_ini_parse(&ini, "a.conf", text, len, flags, &err);
	return ini;
}

static struct conf_ini *parse(const char *text)
{
	return parse_bytes(text, strlen(text), 0);
}

/* The value of @key in [@kind @name], "?" if there is none. */
static const char *value_of(const struct conf_ini *ini, const char *kind,
			    const char *name, const char *key)
{
	const struct conf_section *section = conf_ini_find(ini, kind, name);
	const struct conf_entry *entry =
		section ? conf_section_find(section, key) : NULL;

	return entry ? entry->value : "?";
}

static void expect_error(const char *text, const char *message)
{
	struct conf_ini *ini = parse(text);

	CU_ASSERT_PTR_NULL(ini);
	if (strcmp(err.text, message))
		printf("\n    got:  %s\n    want: %s\n", err.text, message);
	CU_ASSERT_STRING_EQUAL(err.text, message);
	conf_ini_free(ini);
}

static void sections_and_values_are_read(void)
{
	struct conf_ini *ini = parse("[daemon]\n"
				     "socket_mode = 0660\n"
				     "\n"
				     "[heap linux,cma]\r\n"
				     "orders=8 4 0\r\n"
				     "[ quota  uid 1000 ]  \n"
				     "bytes =   256M\t\n"
				     "empty =\n"
				     "occupants = file:20% anon:10%");

	T_REQUIRE(ini);
	CU_ASSERT_EQUAL(ini->n_sections, 3);
	CU_ASSERT_STRING_EQUAL(value_of(ini, "daemon", "", "socket_mode"),
			       "0660");
	CU_ASSERT_STRING_EQUAL(value_of(ini, "heap", "linux,cma", "orders"),
			       "8 4 0");
	CU_ASSERT_STRING_EQUAL(value_of(ini, "quota", "uid 1000", "bytes"),
			       "256M");
	CU_ASSERT_STRING_EQUAL(value_of(ini, "quota", "uid 1000", "empty"), "");
	CU_ASSERT_STRING_EQUAL(value_of(ini, "quota", "uid 1000", "occupants"),
			       "file:20% anon:10%");
	CU_ASSERT_EQUAL(ini->sections[1].line, 4);
	CU_ASSERT_EQUAL(ini->sections[2].entries[2].line, 9);
	CU_ASSERT_PTR_NULL(conf_ini_find(ini, "quota", ""));
	conf_ini_free(ini);
}

static void comments_and_continuations_are_read(void)
{
	struct conf_ini *ini = parse("# a comment\n"
				     "; another\n"
				     "[node]   # and one here\n"
				     "size = 1G    # or: snapshot = DIR\n"
				     "name = a#b;c ; comment\n"
				     "orders = 8\n"
				     "\t4  # four\n"
				     "\n"
				     "  # nothing\n"
				     "   0 [x] y=z\n"
				     "last = 1\n");

	T_REQUIRE(ini);
	CU_ASSERT_STRING_EQUAL(value_of(ini, "node", "", "size"), "1G");
	CU_ASSERT_STRING_EQUAL(value_of(ini, "node", "", "name"), "a#b;c");
	CU_ASSERT_STRING_EQUAL(value_of(ini, "node", "", "orders"),
			       "8 4 0 [x] y=z");
	CU_ASSERT_STRING_EQUAL(value_of(ini, "node", "", "last"), "1");
	CU_ASSERT_EQUAL(conf_ini_find(ini, "node", "")->entries[2].line, 6);
	conf_ini_free(ini);
}

static void an_empty_text_and_a_mark_are_fine(void)
{
	struct conf_ini *ini = parse("");

	T_REQUIRE(ini);
	CU_ASSERT_EQUAL(ini->n_sections, 0);
	conf_ini_free(ini);

	ini = parse("\xef\xbb\xbf[a]\nk = \xc3\xa4\n");
	T_REQUIRE(ini);
	CU_ASSERT_STRING_EQUAL(value_of(ini, "a", "", "k"), "\xc3\xa4");
	conf_ini_free(ini);
}

static void errors_name_file_line_and_key(void)
{
	expect_error("[a]\nk = 1\nk = 2\n",
		     "a.conf:3: k: key is already there, at line 2");
	expect_error("[a]\n[b]\n[a]\n",
		     "a.conf:3: [a]: section is already there, at line 1; "
		     "write its keys there");
	expect_error("k = 1\n", "a.conf:1: k: before any [section]");
	expect_error("[a]\nnonsense\n",
		     "a.conf:2: not of the form \"key = value\"");
	expect_error("[a]\n = 1\n", "a.conf:2: key must have 1 to 48 bytes");
	expect_error("[a]\na b = 1\n",
		     "a.conf:2: key must not contain blanks or ':'");
	expect_error("[a]\na:b = 1\n",
		     "a.conf:2: key must not contain blanks or ':'");
	expect_error("[a\n", "a.conf:1: section: no ']'");
	expect_error("[]\n", "a.conf:1: section: name must have 1 to 48 bytes");
	expect_error("[a]\nk = 1\n [b]\n",
		     "a.conf:3: section: must begin at the start of its line");
	expect_error("[policy mine] orders = 8\n",
		     "a.conf:1: section: text after ']'; an entry needs a line "
		     "of its own");
}

static void repeated_sections_are_allowed_on_request(void)
{
	static const char text[] = "[step]\nk = 1\n[step]\nk = 2\n";
	struct conf_ini *ini =
		parse_bytes(text, strlen(text), CONF_REPEAT_SECTIONS);

	T_REQUIRE(ini);
	CU_ASSERT_EQUAL(ini->n_sections, 2);
	CU_ASSERT_STRING_EQUAL(ini->sections[1].entries[0].value, "2");
	conf_ini_free(ini);
}

static void bytes_that_are_no_text_are_refused(void)
{
	static const char nul[] = "[a]\nk = 1\0\n";
	struct conf_ini *ini = parse_bytes(nul, sizeof(nul) - 1, 0);

	CU_ASSERT_PTR_NULL(ini);
	CU_ASSERT_STRING_EQUAL(err.text,
			       "a.conf:2: byte 6 of the line is not UTF-8 "
			       "text");
	expect_error("[a]\nk = \xff\n",
		     "a.conf:2: byte 5 of the line is not UTF-8 text");
	expect_error("[a]\nk = \xc0\x80\n",
		     "a.conf:2: byte 5 of the line is not UTF-8 text");
	expect_error("[a]\nk = \xe0\x80\x80\n", /* overlong */
		     "a.conf:2: byte 5 of the line is not UTF-8 text");
	expect_error("[a]\nk = \xed\xa0\x80\n", /* a surrogate */
		     "a.conf:2: byte 5 of the line is not UTF-8 text");
	expect_error("[a]\nk = \xf4\x90\x80\x80\n", /* beyond the last */
		     "a.conf:2: byte 5 of the line is not UTF-8 text");
	expect_error("[a]\nk = \xf0\x80\x80\x80\n",
		     "a.conf:2: byte 5 of the line is not UTF-8 text");
	expect_error("[a]\nk = \xc3",
		     "a.conf:2: byte 5 of the line is not UTF-8 text");
	expect_error("[a]\nk = \033[2J\n",
		     "a.conf:2: byte 5 of the line is a control character");
	conf_ini_free(ini);
}

/* Builds "[a]\nk = xxx...\n" whose second line has @len bytes. */
static struct conf_ini *parse_line_of(size_t len)
{
	char text[CONF_LINE_MAX_BYTES + 64];
	int n = snprintf(text, sizeof(text), "[a]\n%s%0*d\n",
			 "k = ", (int)len - 4, 0);

	return parse_bytes(text, (size_t)n, 0);
}

static void the_longest_line_is_read_a_longer_one_refused(void)
{
	struct conf_ini *ini = parse_line_of(CONF_LINE_MAX_BYTES);

	T_REQUIRE(ini);
	CU_ASSERT_EQUAL(strlen(value_of(ini, "a", "", "k")),
			CONF_LINE_MAX_BYTES - 4);
	conf_ini_free(ini);

	CU_ASSERT_PTR_NULL(parse_line_of(CONF_LINE_MAX_BYTES + 1));
	CU_ASSERT_STRING_EQUAL(err.text,
			       "a.conf:2: line is longer than 1000 bytes");
}

static void names_longer_than_libinih_keeps_are_refused_not_cut(void)
{
	char text[256];
	struct conf_ini *ini;

	(void)snprintf(text, sizeof(text), "[%048d]\n%048d = 1\n", 1, 2);
	ini = parse(text);
	T_REQUIRE(ini);
	CU_ASSERT_EQUAL(strlen(ini->sections[0].kind), 48);
	CU_ASSERT_EQUAL(strlen(ini->sections[0].entries[0].key), 48);
	conf_ini_free(ini);

	(void)snprintf(text, sizeof(text), "[%049d]\n", 1);
	expect_error(text, "a.conf:1: section: name must have 1 to 48 bytes");
	(void)snprintf(text, sizeof(text), "[a]\n%049d = 1\n", 1);
	expect_error(text, "a.conf:2: key must have 1 to 48 bytes");
}

static void an_endless_value_is_refused(void)
{
	char text[16384] = "[a]\nk = 1\n";
	size_t len = strlen(text);

	while (len < 8192)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
					"  0123456789\n");
	CU_ASSERT_PTR_NULL(parse(text));
	CU_ASSERT_PTR_NOT_NULL(
		strstr(err.text, "k: value is longer than 4096 bytes"));
}

static void each_allocation_may_fail(void)
{
	static const char text[] = "[a b]\nk = 1\n  2\nl = 2\n[b]\nm = 3\n";
	struct conf_ini *ini = NULL;
	int r;

	FAIL_MALLOC_EACH({
		r = conf_ini_parse(&ini, "a.conf", text, strlen(text), 0, &err);
		CU_ASSERT(r == 0 || r == -ENOMEM);
		CU_ASSERT_EQUAL(r == 0, ini != NULL);
		CU_ASSERT_EQUAL(r == -ENOMEM, fail_malloc_hit());
		ini = conf_ini_free(ini);
	});
	CU_ASSERT(fail_malloc_count() == 0);
}

static void a_setting_is_one_entry_without_a_line(void)
{
	struct conf_ini *ini = NULL;

	T_REQUIRE(conf_ini_parse_setting(&ini, "--set", "[heap x]  k=a b  # c",
					 &err) == 0);
	CU_ASSERT_STRING_EQUAL(ini->sections[0].kind, "heap");
	CU_ASSERT_STRING_EQUAL(ini->sections[0].name, "x");
	CU_ASSERT_STRING_EQUAL(ini->sections[0].entries[0].value, "a b");
	(void)conf_entry_error(&ini->sections[0].entries[0], &err, "no");
	CU_ASSERT_STRING_EQUAL(err.text, "--set: k: no");
	ini = conf_ini_free(ini);
	CU_ASSERT_EQUAL(conf_ini_parse_setting(&ini, "--set", "[a] k", &err),
			CONF_E_INVALID);
	CU_ASSERT_EQUAL(conf_ini_parse_setting(&ini, "--set", "", &err),
			CONF_E_INVALID);
	CU_ASSERT_PTR_NULL(ini);
	FAIL_MALLOC_EACH({
		int r = conf_ini_parse_setting(&ini, "--set", "[a] k = 1",
					       &err);

		CU_ASSERT(r == 0 || r == -ENOMEM);
		ini = conf_ini_free(ini);
	});
}

/* Whatever comes, it is either read or refused with a line number. */
static void random_text_is_read_or_refused(void)
{
	static const char alphabet[] = "[]=#; \t\n\nabk:\"%\\\xc3\xa4\xff";
	struct rng rng;

	rng_seed(&rng, 7);
	for (int round = 0; round < 20000; round++) {
		char text[64];
		size_t len = rng_below(&rng, sizeof(text));
		struct conf_ini *ini;

		for (size_t i = 0; i < len; i++)
			text[i] = alphabet[rng_below(&rng, sizeof(alphabet))];
		ini = parse_bytes(text, len, 0);
		CU_ASSERT(ini || !strncmp(err.text, "a.conf:", 7));
		for (size_t i = 0; ini && i < ini->n_sections; i++)
			for (size_t k = 0; k < ini->sections[i].n_entries; k++)
				CU_ASSERT_PTR_NOT_NULL(
					ini->sections[i].entries[k].value);
		conf_ini_free(ini);
	}
}

static void errors_of_users_are_formed_alike(void)
{
	struct conf_ini *ini = parse("[heap x]\nk = 1\n");

	T_REQUIRE(ini);
	CU_ASSERT_EQUAL(conf_entry_error(&ini->sections[0].entries[0], &err,
					 "unknown key; allowed are %s", "a, b"),
			CONF_E_INVALID);
	CU_ASSERT_STRING_EQUAL(err.text,
			       "a.conf:2: k: unknown key; allowed are a, b");
	CU_ASSERT_EQUAL(conf_section_error(&ini->sections[0], &err, "no"),
			CONF_E_INVALID);
	CU_ASSERT_STRING_EQUAL(err.text, "a.conf:1: [heap x]: no");
	conf_ini_free(ini);
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"sections and values are read", sections_and_values_are_read},
		{"comments and continuations are read",
		 comments_and_continuations_are_read},
		{"an empty text and a byte order mark are fine",
		 an_empty_text_and_a_mark_are_fine},
		{"errors name file, line and key",
		 errors_name_file_line_and_key},
		{"repeated sections are allowed on request",
		 repeated_sections_are_allowed_on_request},
		{"bytes that are no text are refused",
		 bytes_that_are_no_text_are_refused},
		{"the longest line is read, a longer one refused",
		 the_longest_line_is_read_a_longer_one_refused},
		{"names longer than libinih keeps are refused, not cut",
		 names_longer_than_libinih_keeps_are_refused_not_cut},
		{"an endless value is refused", an_endless_value_is_refused},
		{"each allocation may fail", each_allocation_may_fail},
		{"a setting is one entry without a line",
		 a_setting_is_one_entry_without_a_line},
		{"random text is read or refused",
		 random_text_is_read_or_refused},
		{"errors of users are formed alike",
		 errors_of_users_are_formed_alike},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "conf_ini", .pTests = tests},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
