/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "support/test.h"

static int saved_stderr, pipe_fds[2];

static void capture(void)
{
	T_REQUIRE(pipe2(pipe_fds, O_CLOEXEC | O_NONBLOCK) == 0);
	saved_stderr = dup(STDERR_FILENO);
	T_REQUIRE(dup2(pipe_fds[1], STDERR_FILENO) >= 0);
}

/* What was logged since capture(). */
static const char *captured(void)
{
	static char text[4096];
	ssize_t n = read(pipe_fds[0], text, sizeof(text) - 1);

	T_REQUIRE(dup2(saved_stderr, STDERR_FILENO) >= 0);
	close(saved_stderr);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	text[n > 0 ? n : 0] = '\0';
	return text;
}

static void a_line_has_level_and_message(void)
{
	capture();
	errno = ENOENT;
	log_error("event=%s n=%d", "start", 3);
	CU_ASSERT_EQUAL(errno, ENOENT);
	log_warn("w");
	log_info("i");
	log_debug("d");
	CU_ASSERT_STRING_EQUAL(captured(),
			       "error event=start n=3\nwarn w\ninfo i\n");
}

static void the_level_decides(void)
{
	capture();
	log_set_level(LOG_LEVEL_DEBUG);
	log_debug("d");
	log_set_level(LOG_LEVEL_ERROR);
	log_warn("w");
	CU_ASSERT_EQUAL(log_get_level(), LOG_LEVEL_ERROR);
	log_set_level(LOG_LEVEL_INFO);
	CU_ASSERT_STRING_EQUAL(captured(), "debug d\n");
}

static void level_names_are_read_and_written(void)
{
	enum log_level level = LOG_LEVEL_DEBUG;

	CU_ASSERT_EQUAL(log_level_from_name("warn", &level), 0);
	CU_ASSERT_EQUAL(level, LOG_LEVEL_WARN);
	CU_ASSERT_EQUAL(log_level_from_name("loud", &level), -EINVAL);
	CU_ASSERT_EQUAL(level, LOG_LEVEL_WARN);
	CU_ASSERT_STRING_EQUAL(log_level_name(LOG_LEVEL_DEBUG), "debug");
}

static void a_message_cannot_forge_a_line(void)
{
	capture();
	log_info("name=a\nerror event=forged\033[2J\x7f");
	CU_ASSERT_STRING_EQUAL(captured(),
			       "info name=a?error event=forged?[2J?\n");
}

static void long_lines_are_cut_visibly(void)
{
	const char *text;

	capture();
	log_info("%02000d", 7);
	text = captured();
	CU_ASSERT_EQUAL(strlen(text), LOG_LINE_MAX_BYTES - 1);
	CU_ASSERT_STRING_EQUAL(text + strlen(text) - 4, "...\n");
}

static void a_log_that_cannot_be_written_is_ignored(void)
{
	int full = open("/dev/full", O_WRONLY | O_CLOEXEC);

	T_REQUIRE(full >= 0);
	capture();
	T_REQUIRE(dup2(full, STDERR_FILENO) >= 0);
	close(full);
	errno = ENOENT;
	log_info("lost");
	CU_ASSERT_EQUAL(errno, ENOENT);
	CU_ASSERT_STRING_EQUAL(captured(), "");
}

static void foreign_strings_are_quoted(void)
{
	char buf[64], small[8];

	CU_ASSERT_STRING_EQUAL(log_quote(buf, sizeof(buf), "abc"), "\"abc\"");
	CU_ASSERT_STRING_EQUAL(log_quote(buf, sizeof(buf), NULL), "\"\"");
	CU_ASSERT_STRING_EQUAL(log_quote(buf, sizeof(buf),
					 "a\"b\\c\nd\x01\xff"),
			       "\"a\\\"b\\\\c\\nd\\x01\\xff\"");
	CU_ASSERT_STRING_EQUAL(log_quote(small, sizeof(small), "abcdefgh"),
			       "\"ab\"...");
	CU_ASSERT_STRING_EQUAL(log_quote(small, sizeof(small), "\x01\x01"),
			       "\"\"...");
}

static void repeated_lines_are_limited(void)
{
	struct log_limit limit = {0};
	uint32_t suppressed = 99;
	int n = 0;

	for (uint64_t i = 0; i < 25; i++)
		n += log_ratelimited(&limit, 1000 + i, NULL);
	CU_ASSERT_EQUAL(n, 10);
	CU_ASSERT_TRUE(log_ratelimited(&limit, 6 * NSEC_PER_SEC, &suppressed));
	CU_ASSERT_EQUAL(suppressed, 15);
	CU_ASSERT_TRUE(log_ratelimited(&limit, 6 * NSEC_PER_SEC, &suppressed));
	CU_ASSERT_EQUAL(suppressed, 0);
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"a line has level and message", a_line_has_level_and_message},
		{"the level decides", the_level_decides},
		{"level names are read and written",
		 level_names_are_read_and_written},
		{"a message cannot forge a line",
		 a_message_cannot_forge_a_line},
		{"long lines are cut visibly", long_lines_are_cut_visibly},
		{"a log that cannot be written is ignored",
		 a_log_that_cannot_be_written_is_ignored},
		{"foreign strings are quoted", foreign_strings_are_quoted},
		{"repeated lines are limited", repeated_lines_are_limited},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "base_log", .pTests = tests},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
