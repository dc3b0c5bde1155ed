/* SPDX-License-Identifier: MIT */
/* The parts of dmaheapctl that need no daemon. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ctl/ctl.h"
#include "ctl/histogram.h"
#include "ctl/holders.h"
#include "ctl/json.h"
#include "ctl/names.h"
#include "ctl/options.h"
#include "ctl/records.h"
#include "ctl/sample.h"
#include "ctl/table.h"
#include "ctl/units.h"
#include "support/test.h"

static void sizes_are_read_whole_or_refused(void)
{
	static const struct {
		const char *text;
		bool ok;
		uint64_t bytes;
	} cases[] = {
		{"0", true, 0},
		{"4096", true, 4096},
		{"4K", true, 4096},
		{"10m", true, 10 << 20},
		{"3G", true, 3ull << 30},
		{"1T", true, 1ull << 40},
		{"18446744073709551615", true, UINT64_MAX},
		{"18446744073709551616", false, 0},
		{"16777216T", false, 0}, /* 2^64 */
		{"16777215T", true, 16777215ull << 40},
		{"", false, 0},
		{"K", false, 0},
		{"-1", false, 0},
		{"+1", false, 0},
		{" 1", false, 0},
		{"1 ", false, 0},
		{"1KB", false, 0},
		{"1.5M", false, 0},
		{"0x10", false, 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t bytes = 42;
		bool ok = units_parse_size(cases[i].text, &bytes);

		CU_ASSERT_EQUAL(ok, cases[i].ok);
		CU_ASSERT_EQUAL(bytes, ok ? cases[i].bytes : 42);
	}
}

static void times_are_milliseconds_unless_they_say_otherwise(void)
{
	uint64_t ms = 42;

	CU_ASSERT(units_parse_ms("80", &ms) && ms == 80);
	CU_ASSERT(units_parse_ms("90ms", &ms) && ms == 90);
	CU_ASSERT(units_parse_ms("2s", &ms) && ms == 2000);
	CU_ASSERT(!units_parse_ms("80us", &ms));
	CU_ASSERT(!units_parse_ms("s", &ms));
	CU_ASSERT(!units_parse_ms("-1s", &ms));
	CU_ASSERT(!units_parse_ms("18446744073709551615s", &ms));
	CU_ASSERT_EQUAL(ms, 2000);
}

static void decimals_are_read_whole_or_refused(void)
{
	double value = 42;

	CU_ASSERT(units_parse_decimal("0.25", &value) && value == 0.25);
	CU_ASSERT(units_parse_decimal(".5", &value) && value == 0.5);
	CU_ASSERT(units_parse_decimal("10", &value) && value == 10);
	CU_ASSERT(!units_parse_decimal("-1", &value));
	CU_ASSERT(!units_parse_decimal("1s", &value));
	CU_ASSERT(!units_parse_decimal(".", &value));
	CU_ASSERT(!units_parse_decimal("inf", &value));
	CU_ASSERT(!units_parse_decimal("1e999", &value));
	CU_ASSERT_EQUAL(value, 10);
}

static void sizes_are_written_exactly_while_that_is_short(void)
{
	struct units_text text;

	CU_ASSERT_STRING_EQUAL(units_size(0, &text), "0");
	CU_ASSERT_STRING_EQUAL(units_size(1, &text), "1");
	CU_ASSERT_STRING_EQUAL(units_size(4096, &text), "4K");
	CU_ASSERT_STRING_EQUAL(units_size(10 << 20, &text), "10M");
	CU_ASSERT_STRING_EQUAL(units_size((1 << 20) + 4096, &text), "1028K");
	CU_ASSERT_STRING_EQUAL(units_size(1234567, &text), "1.2M");
	CU_ASSERT_STRING_EQUAL(units_size(3ull << 40, &text), "3T");
	CU_ASSERT_STRING_EQUAL(units_size(UINT64_MAX, &text), "16777216T");
}

static void times_are_written_with_their_unit(void)
{
	struct units_text text;

	CU_ASSERT_STRING_EQUAL(units_time(999, &text), "999ns");
	CU_ASSERT_STRING_EQUAL(units_time(1500, &text), "1.5us");
	CU_ASSERT_STRING_EQUAL(units_time(74600000, &text), "74.6ms");
	CU_ASSERT_STRING_EQUAL(units_time(2500000000u, &text), "2.50s");
}

static bool has;
static uint64_t size;
static const char *text;
static double seconds;
static bool seconds_given;
static const struct option some_options[] = {
	{.name = "--flag", .kind = OPTION_SWITCH, .value = &has},
	{.name = "--size",
	 .kind = OPTION_SIZE,
	 .argument = "SIZE",
	 .value = &size},
	{.name = "--text",
	 .kind = OPTION_TEXT,
	 .argument = "TEXT",
	 .value = &text},
	{.name = "--hold",
	 .kind = OPTION_DECIMAL,
	 .argument = "SECONDS",
	 .value = &seconds,
	 .given = &seconds_given,
	 .may_stand_alone = true},
	{0},
};

static const struct verb some_verb = {.name = "some",
				      .arguments = "[A [B]]",
				      .options = some_options,
				      .n_arguments_max = 2,
				      .passes_rest = true};

/* Parses blank-separated words. Return: the status; arguments in @ret. */
static int parse(const char *line, char *ret[16], int *ret_n)
{
	static char words[256];
	struct ctl ctl = {.verb = &some_verb};
	char *rest = NULL;
	bool help = false;
	int n = 0;

	has = seconds_given = false;
	size = 0;
	text = NULL;
	seconds = -1;
	snprintf(words, sizeof(words), "%s", line);
	for (char *w = strtok_r(words, " ", &rest); w;
	     w = strtok_r(NULL, " ", &rest))
		ret[n++] = w;
	ret[n] = NULL;
	return options_parse(&ctl, n, ret, ret_n, &help);
}

static void options_may_stand_anywhere_before_the_command(void)
{
	char *args[16];
	int n;

	CU_ASSERT_EQUAL(parse("a --size 4K --flag b --text=x -- cmd --flag",
			      args, &n),
			CTL_OK);
	CU_ASSERT_EQUAL(n, 2);
	CU_ASSERT_STRING_EQUAL(args[0], "a");
	CU_ASSERT_STRING_EQUAL(args[1], "b");
	CU_ASSERT(has);
	CU_ASSERT_EQUAL(size, 4096);
	CU_ASSERT_STRING_EQUAL(text, "x");
	CU_ASSERT_STRING_EQUAL(ctl_rest[0], "cmd");
	CU_ASSERT_STRING_EQUAL(ctl_rest[1], "--flag");
}

static void a_value_may_be_left_out_where_that_is_allowed(void)
{
	char *args[16];
	int n;

	CU_ASSERT_EQUAL(parse("--hold 10M", args, &n), CTL_OK);
	CU_ASSERT(seconds_given && seconds == -1 && n == 1);
	CU_ASSERT_EQUAL(parse("10M --hold 0.5", args, &n), CTL_OK);
	CU_ASSERT(seconds_given && seconds == 0.5 && n == 1);
	CU_ASSERT_EQUAL(parse("10M --hold", args, &n), CTL_OK);
	CU_ASSERT(seconds_given && seconds == -1 && n == 1);
	CU_ASSERT_EQUAL(parse("10M --hold=x", args, &n), CTL_USAGE);
}

static void wrong_options_are_usage_errors(void)
{
	static const char *const lines[] = {
		"--nothing", "--size", "--size x",   "--size=", "--flag=1",
		"a b c",     "-x",     "--sizes 4K", "--text",  "--hold=-1",
	};
	char *args[16];
	int n;

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		CU_ASSERT_EQUAL(parse(lines[i], args, &n), CTL_USAGE);
}

static void an_option_takes_what_follows_as_its_value(void)
{
	char *args[16];
	int n;

	/* "--" is taken as the value here, as getopt does. */
	CU_ASSERT_EQUAL(parse("--text -- x", args, &n), CTL_OK);
	CU_ASSERT_STRING_EQUAL(text, "--");
}

static void a_quantile_is_the_upper_end_of_its_bucket(void)
{
	static struct dmaheap_histogram h;

	CU_ASSERT_EQUAL(histogram_quantile(&h, 500), 0);
	/* 10 times 5, which has a bucket of its own, and once 1000. */
	h.bucket[5] = 10;
	h.bucket[111] = 1;
	h.count = 11;
	h.max = 1000;
	CU_ASSERT(dmaheap_histogram_lower(111) <= 1000);
	CU_ASSERT(dmaheap_histogram_lower(112) > 1000);
	CU_ASSERT_EQUAL(histogram_quantile(&h, 500), 5);
	CU_ASSERT_EQUAL(histogram_quantile(&h, 900), 5);
	CU_ASSERT_EQUAL(histogram_quantile(&h, 990), 1000); /* the maximum */
	h.max = 1 << 20;
	CU_ASSERT_EQUAL(histogram_quantile(&h, 990),
			dmaheap_histogram_lower(112) - 1);
}

static void records_of_another_size_are_cut_or_filled_up(void)
{
	static const uint32_t longer[] = {1, 2, 3, 4, 5, 6};
	struct {
		uint32_t a, b;
	} to[3];

	memset(to, 0xff, sizeof(to));
	CU_ASSERT(records_unpack(longer, 24, 2, 12, 8, to));
	CU_ASSERT(to[0].a == 1 && to[0].b == 2 && to[1].a == 4 && to[1].b == 5);
	CU_ASSERT(records_unpack(longer, 24, 3, 4, 8, to));
	CU_ASSERT(to[2].a == 3 && to[2].b == 0);
	CU_ASSERT(!records_unpack(longer, 24, 3, 12, 8, to));
	CU_ASSERT(!records_unpack(longer, 24, 1, 0, 8, to));
	CU_ASSERT(!records_unpack(longer, 24, SIZE_MAX, 4, 8, to));
	CU_ASSERT(records_unpack(longer, 0, 0, 0, 8, to));
}

static void a_composition_names_the_heaps_orders_and_all_others_used(void)
{
	uint32_t blocks[DMAHEAP_ORDER_COUNT] = {[8] = 10, [9] = 2};
	struct names_composition buffer;
	json_t *json = json_composition(blocks);
	char *dump = json_dumps(json, JSON_COMPACT);

	CU_ASSERT_STRING_EQUAL(dump, "{\"9\":2,\"8\":10,\"4\":0,\"0\":0}");
	CU_ASSERT_STRING_EQUAL(names_composition(blocks, &buffer),
			       "9:2 8:10 4:0 0:0");
	free(dump);
	json_decref(json);
}

static void texts_that_are_not_utf_8_become_printable(void)
{
	json_t *json = json_text("a\xff\033");

	CU_ASSERT_STRING_EQUAL(json_string_value(json), "a??");
	json_decref(json);
	json = json_text("gr\303\274n");
	CU_ASSERT_STRING_EQUAL(json_string_value(json), "gr\303\274n");
	json_decref(json);
	CU_ASSERT_STRING_EQUAL(ctl_printable("a\033[31mb\n"), "a?[31mb?");
}

/* Runs @print with standard output in a file. Return: what it printed. */
static char *printed(void (*print)(void))
{
	static char buffer[4096];
	int out = dup(STDOUT_FILENO);
	int file = memfd_create("out", MFD_CLOEXEC);
	ssize_t n;

	fflush(stdout);
	dup2(file, STDOUT_FILENO);
	print();
	fflush(stdout);
	dup2(out, STDOUT_FILENO);
	close(out);
	n = pread(file, buffer, sizeof(buffer) - 1, 0);
	buffer[n > 0 ? n : 0] = '\0';
	close(file);
	return buffer;
}

static void print_a_table(void)
{
	static const char *const headings[] = {"NAME", ">N", "LAST", NULL};
	struct table *t = table_new(headings);
	struct ctl ctl = {0};

	table_cell(t, "a");
	table_cell(t, "%d", 1000);
	table_cell(t, "x");
	table_cell(t, "longer\033");
	table_cell(t, "%d", 1);
	table_cell(t, "y");
	table_mark_row(t);
	table_print(t, &ctl);
	table_free(t);
}

static void a_table_aligns_and_hides_control_characters(void)
{
	CU_ASSERT_STRING_EQUAL(printed(print_a_table), "NAME        N  LAST\n"
						       "a        1000  x\n"
						       "longer?     1  y\n");
}

static void holders_are_found_by_inode_in_fds_and_mappings(void)
{
	int fd = memfd_create("dmaheap:test:1", 0), pipes[2];
	struct dmaheap_buffer_record records[2] = {{.id = 1}, {.id = 2}};
	const struct holder *holder;
	struct holders *h;
	struct stat st;
	bool found = false;
	pid_t child;

	T_REQUIRE(fd >= 0 && ftruncate(fd, 4096) == 0 && pipe(pipes) == 0);
	T_REQUIRE(fstat(fd, &st) == 0);
	records[1].dev = st.st_dev;
	records[1].ino = st.st_ino;
	child = fork();
	if (child == 0) {
		void *map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
		char byte;

		close(fd);
		close(pipes[1]);
		if (map == MAP_FAILED)
			_exit(1);
		while (read(pipes[0], &byte, 1) > 0)
			;
		_exit(0);
	}
	close(pipes[0]);
	do { /* until the child has mapped and closed */
		h = holders_find(records, 2, 0);
		T_REQUIRE(h != NULL);
		for (size_t i = 0; (holder = holders_get(h, 1, i)); i++)
			found |= holder->pid == child && holder->n_fds == 0 &&
				 holder->n_mappings == 1;
		if (!found)
			h = holders_free(h);
	} while (!found);
	CU_ASSERT_PTR_NULL(holders_get(h, 0, 0));
	for (size_t i = 0; (holder = holders_get(h, 1, i)); i++)
		if (holder->pid == getpid())
			CU_ASSERT_EQUAL(holder->n_fds, 1);
	holders_free(h);
	h = holders_find(records, 2, getpid());
	for (size_t i = 0; (holder = holders_get(h, 1, i)); i++)
		CU_ASSERT_NOT_EQUAL(holder->pid, getpid());
	holders_free(h);
	close(pipes[1]);
	waitpid(child, NULL, 0);
	close(fd);
}

static void a_sample_is_what_happened_in_between(void)
{
	static struct dmaheap_stats_heap before, now;
	struct sample_heap s;

	now.allocs = 30;
	before.allocs = 10;
	now.n_pools = before.n_pools = 2;
	now.pool[0] = (struct dmaheap_stats_pool){.hits = 40, .misses = 10};
	before.pool[0] = (struct dmaheap_stats_pool){.hits = 10};
	now.measured_ns.bucket[7] = 5;
	before.measured_ns.bucket[7] = 5;
	now.measured_ns.bucket[9] = 1;
	now.measured_ns.max = 9;
	s = sample_of_heap(&before, &now, 2);
	CU_ASSERT_EQUAL(s.allocs_per_s, 10);
	CU_ASSERT_EQUAL(s.hit_percent, 75);
	CU_ASSERT_EQUAL(s.measured_p50_ns, 9);
	s = sample_of_heap(&now, &now, 1);
	CU_ASSERT_EQUAL(s.hit_percent, 0);
	CU_ASSERT_EQUAL(s.measured_p50_ns, 0);
}

static void each_verb_says_what_it_is(void)
{
	for (const struct verb *const *v = verbs; *v; v++) {
		CU_ASSERT((*v)->name && (*v)->arguments && (*v)->summary);
		CU_ASSERT(strlen((*v)->summary) < 65);
		CU_ASSERT((*v)->run != NULL);
		for (const struct option *o = (*v)->options; o && o->name;
		     o++) {
			CU_ASSERT(o->help != NULL && o->value != NULL);
			CU_ASSERT_EQUAL(o->kind == OPTION_SWITCH, !o->argument);
		}
	}
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"sizes are read whole or refused",
		 sizes_are_read_whole_or_refused},
		{"times are milliseconds unless they say otherwise",
		 times_are_milliseconds_unless_they_say_otherwise},
		{"decimals are read whole or refused",
		 decimals_are_read_whole_or_refused},
		{"sizes are written exactly while that is short",
		 sizes_are_written_exactly_while_that_is_short},
		{"times are written with their unit",
		 times_are_written_with_their_unit},
		{"options may stand anywhere before the command",
		 options_may_stand_anywhere_before_the_command},
		{"a value may be left out where that is allowed",
		 a_value_may_be_left_out_where_that_is_allowed},
		{"wrong options are usage errors",
		 wrong_options_are_usage_errors},
		{"an option takes what follows as its value",
		 an_option_takes_what_follows_as_its_value},
		{"a quantile is the upper end of its bucket",
		 a_quantile_is_the_upper_end_of_its_bucket},
		{"records of another size are cut or filled up",
		 records_of_another_size_are_cut_or_filled_up},
		{"a composition names the heap's orders and all others used",
		 a_composition_names_the_heaps_orders_and_all_others_used},
		{"texts that are not UTF-8 become printable",
		 texts_that_are_not_utf_8_become_printable},
		{"a table aligns and hides control characters",
		 a_table_aligns_and_hides_control_characters},
		{"holders are found by inode in fds and mappings",
		 holders_are_found_by_inode_in_fds_and_mappings},
		{"a sample is what happened in between",
		 a_sample_is_what_happened_in_between},
		{"each verb says what it is", each_verb_says_what_it_is},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "dmaheapctl", .pTests = tests},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
