/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conf/files.h"
#include "support/fail_malloc.h"
#include "support/test.h"

static char dir[64];
static struct conf_error err;

static int setup(void)
{
	(void)snprintf(dir, sizeof(dir), "/tmp/test-conf-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static const char *path_of(const char *name)
{
	static char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static int teardown(void)
{
	(void)unlink(path_of("buddyinfo"));
	(void)unlink(path_of("vmstat"));
	(void)unlink(path_of("a"));
	return rmdir(dir);
}

static void write_file(const char *name, const void *bytes, size_t len)
{
	FILE *f = fopen(path_of(name), "w");

	T_REQUIRE(f);
	T_REQUIRE(fwrite(bytes, 1, len, f) == len);
	T_REQUIRE(fclose(f) == 0);
}

static void a_file_is_read_whole(void)
{
	static char bytes[10000];
	char *text = NULL;
	size_t len = 0;

	memset(bytes, 'x', sizeof(bytes));
	write_file("a", bytes, sizeof(bytes));
	T_REQUIRE(conf_read_file(path_of("a"), 10000, &text, &len) == 0);
	CU_ASSERT_EQUAL(len, 10000);
	CU_ASSERT_EQUAL(strlen(text), 10000);
	free(text);
	write_file("a", "", 0);
	T_REQUIRE(conf_read_file(path_of("a"), 0, &text, NULL) == 0);
	CU_ASSERT_STRING_EQUAL(text, "");
	free(text);
}

static void what_is_no_text_or_too_long_is_refused(void)
{
	char *text = NULL;

	write_file("a", "12345", 5);
	CU_ASSERT_EQUAL(conf_read_file(path_of("a"), 4, &text, NULL), -EFBIG);
	write_file("a",
		   "12\0"
		   "45",
		   5);
	CU_ASSERT_EQUAL(conf_read_file(path_of("a"), 9, &text, NULL), -EILSEQ);
	CU_ASSERT_EQUAL(conf_read_file(path_of("none"), 9, &text, NULL),
			-ENOENT);
	CU_ASSERT_EQUAL(conf_read_file(dir, 9, &text, NULL), -EISDIR);
	CU_ASSERT_EQUAL(conf_read_file("/dev/zero", 9, &text, NULL), -EFBIG);
	CU_ASSERT_PTR_NULL(text);
}

static void an_ini_file_that_cannot_be_read_is_named(void)
{
	struct conf_ini *ini = NULL;

	CU_ASSERT_EQUAL(conf_ini_read(&ini, "/none/such", 0, &err),
			CONF_E_INVALID);
	CU_ASSERT_STRING_EQUAL(err.text, "/none/such: cannot be read: No such "
					 "file or directory");
	write_file("a", "a\0b", 3);
	CU_ASSERT_EQUAL(conf_ini_read(&ini, path_of("a"), 0, &err),
			CONF_E_INVALID);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "contains a NUL byte"));
	CU_ASSERT_EQUAL(conf_ini_read(&ini, "/dev/zero", 0, &err),
			CONF_E_INVALID);
	CU_ASSERT_STRING_EQUAL(err.text,
			       "/dev/zero: longer than the 1M allowed");
	write_file("a", "[a]\nk = 1\n", 10);
	T_REQUIRE(conf_ini_read(&ini, path_of("a"), 0, &err) == 0);
	CU_ASSERT_STRING_EQUAL(ini->sections[0].entries[0].value, "1");
	conf_ini_free(ini);
}

static void a_snapshot_needs_only_buddyinfo(void)
{
	struct conf_texts texts = CONF_TEXTS_INIT;
	char want[128];

	(void)unlink(path_of("buddyinfo"));
	CU_ASSERT_EQUAL(conf_read_snapshot_dir(dir, &texts, &err),
			CONF_E_INVALID);
	(void)snprintf(want, sizeof(want),
		       "%s/buddyinfo: cannot be read: No such file or "
		       "directory",
		       dir);
	CU_ASSERT_STRING_EQUAL(err.text, want);

	write_file("buddyinfo", "b\n", 2);
	write_file("vmstat", "v\n", 2);
	T_REQUIRE(conf_read_snapshot_dir(dir, &texts, &err) == 0);
	CU_ASSERT_STRING_EQUAL(texts.buddyinfo, "b\n");
	CU_ASSERT_STRING_EQUAL(texts.vmstat, "v\n");
	CU_ASSERT_PTR_NULL(texts.pagetypeinfo);
	CU_ASSERT_PTR_NULL(texts.zoneinfo);
	conf_texts_fini(&texts);
	CU_ASSERT_PTR_NULL(texts.buddyinfo);
}

static void a_snapshot_with_a_broken_member_is_refused(void)
{
	struct conf_texts texts = CONF_TEXTS_INIT;

	write_file("buddyinfo", "b\n", 2);
	write_file("vmstat", "\0", 1);
	CU_ASSERT_EQUAL(conf_read_snapshot_dir(dir, &texts, &err),
			CONF_E_INVALID);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "/vmstat: contains a NUL"));
	CU_ASSERT_PTR_NULL(texts.buddyinfo);
	(void)unlink(path_of("vmstat"));
}

static void each_allocation_may_fail(void)
{
	struct conf_texts texts = CONF_TEXTS_INIT;
	int r;

	write_file("buddyinfo", "b\n", 2);
	FAIL_MALLOC_EACH({
		r = conf_read_snapshot_dir(dir, &texts, &err);
		CU_ASSERT_EQUAL(r, fail_malloc_hit() ? -ENOMEM : 0);
		conf_texts_fini(&texts);
	});
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"a file is read whole", a_file_is_read_whole},
		{"what is no text or too long is refused",
		 what_is_no_text_or_too_long_is_refused},
		{"an INI file that cannot be read is named",
		 an_ini_file_that_cannot_be_read_is_named},
		{"a snapshot needs only buddyinfo",
		 a_snapshot_needs_only_buddyinfo},
		{"a snapshot with a broken member is refused",
		 a_snapshot_with_a_broken_member_is_refused},
		{"each allocation may fail", each_allocation_may_fail},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "conf_files",
		 .pInitFunc = setup,
		 .pCleanupFunc = teardown,
		 .pTests = tests},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
