/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "integration/common.h"
#include "support/memcg.h"
#include "support/settings.h"

/*
 * The daemon where memory is really short: in a cgroup that would kill it, and
 * with overcommit refused.
 */
#define LIMIT_BYTES IT_MIB(256)
#define STEP_BYTES  IT_MIB(16)
#define N_STEPS     64        /* 1 GiB */
#define N_ROUNDS    50        /* over each of the two loops */
#define STATS_BYTES IT_MIB(1) /* the segment is charged too */

static struct memcg cg;

/* Return: how many of N_STEPS buffers there were before a refusal. */
static int fill(int fds[N_STEPS], int *ret_error)
{
	int n = 0, fd = 0;

	while (n < N_STEPS && (fd = it_alloc("system", STEP_BYTES, NULL)) >= 0)
		fds[n++] = fd;
	*ret_error = n < N_STEPS ? fd : 0;
	return n;
}

static void a_cgroup_of_256_mib_refuses_1_gib_time_and_again(void)
{
	int fds[N_STEPS], error = 0, n;
	char name[96];

	snprintf(name, sizeof(name), "memory cgroup %s:", cg.name);
	for (int round = 0; round < N_ROUNDS; round++) {
		n = fill(fds, &error);
		/* Most of the limit can be used, less headroom and daemon. */
		CU_ASSERT_TRUE(n >= 10 && n < 16);
		CU_ASSERT_EQUAL(error, -ENOMEM);
		CU_ASSERT_PTR_NOT_NULL(strstr(it_error, name));
		CU_ASSERT_PTR_NOT_NULL(strstr(it_error, "268435456"));
		while (n > 0)
			close(fds[--n]);
		if (kill(it_daemon.pid, 0) < 0 || error != -ENOMEM) {
			printf("round %d: %d, %s\n", round, error, it_error);
			break;
		}
		CU_ASSERT_TRUE(it_wait_all_free("system"));
	}
	CU_ASSERT_EQUAL(waitpid(it_daemon.pid, NULL, WNOHANG), 0);
	CU_ASSERT_EQUAL(memcg_oom_kills(&cg), 0);
}

static void one_request_above_the_limit_is_refused_at_once(void)
{
	CU_ASSERT_EQUAL(it_alloc("system", IT_MIB(512), NULL), -ENOMEM);
	CU_ASSERT_PTR_NOT_NULL(strstr(it_error, cg.name));
	CU_ASSERT_TRUE(memcg_shmem_bytes(&cg) <= STATS_BYTES);
}

static bool shmem_is_gone(void *ctx)
{
	(void)ctx;
	return memcg_shmem_bytes(&cg) <= STATS_BYTES;
}

static void what_was_freed_leaves_the_cgroup_within_a_second(void)
{
	int fds[N_STEPS], error, n = fill(fds, &error);

	CU_ASSERT_TRUE(memcg_shmem_bytes(&cg) >= 10 * STEP_BYTES);
	while (n > 0)
		close(fds[--n]);
	CU_ASSERT_TRUE(it_wait_all_free("system"));
	it_shrink(0);
	CU_ASSERT_TRUE(wait_until(shmem_is_gone, NULL, 1000));
}

/* The number after @key, "" for the first of the file. */
static uint64_t read_number(const char *path, const char *key)
{
	size_t len = strlen(key);
	char line[256];
	uint64_t n = 0;
	FILE *f = fopen(path, "re");

	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, key, len) == 0 &&
		    sscanf(line + len, "%" SCNu64, &n) == 1)
			break;
	if (f)
		fclose(f);
	return n;
}

#define MODE_FILE  "/proc/sys/vm/overcommit_memory"
#define RATIO_FILE "/proc/sys/vm/overcommit_ratio"
#define KB_FILE    "/proc/sys/vm/overcommit_kbytes"

static void with_overcommit_refused_it_is_enomem(void)
{
	uint64_t committed_kb = read_number("/proc/meminfo", "Committed_AS:");
	/* Of kbytes and ratio the one that is in force. */
	const char *const paths[] = {MODE_FILE,
				     read_number(KB_FILE, "") ? KB_FILE
							      : RATIO_FILE,
				     NULL};
	int fds[N_STEPS], error = 0, n = 0;
	struct settings_guard guard;
	char limit_kb[32];

	snprintf(limit_kb, sizeof(limit_kb), "%" PRIu64,
		 committed_kb + 256 * 1024);
	settings_guard(&guard, paths);
	if (settings_write(KB_FILE, limit_kb) &&
	    settings_write(MODE_FILE, "2")) {
		n = fill(fds, &error);
		/* Before anything else: all others suffer meanwhile. */
		settings_write(MODE_FILE, "0");
		CU_ASSERT_EQUAL(error, -ENOMEM);
		CU_ASSERT_PTR_NOT_NULL(strstr(it_error, "overcommit"));
		CU_ASSERT_TRUE(n < N_STEPS);
	} else {
		printf(" (may not set vm.overcommit_memory: not tried) ");
	}
	settings_restore(&guard);
	while (n > 0)
		close(fds[--n]);
	n = it_alloc("system", STEP_BYTES, NULL);
	CU_ASSERT_TRUE(n >= 0);
	close(n);
	CU_ASSERT_TRUE(it_wait_all_free("system"));
}

int main(int argc, char **argv)
{
	CU_TestInfo cgroup_tests[] = {
		{"a cgroup of 256 MiB refuses 1 GiB time and again",
		 a_cgroup_of_256_mib_refuses_1_gib_time_and_again},
		{"one request above the limit is refused at once",
		 one_request_above_the_limit_is_refused_at_once},
		{"what was freed leaves the cgroup within a second",
		 what_was_freed_leaves_the_cgroup_within_a_second},
		CU_TEST_INFO_NULL,
	};
	CU_TestInfo overcommit_tests[] = {
		{"with overcommit refused it is ENOMEM",
		 with_overcommit_refused_it_is_enomem},
		CU_TEST_INFO_NULL,
	};
	bool overcommit = argc > 1 && strcmp(argv[1], "overcommit") == 0;
	char *env[] = {cg.procs_env, NULL};
	const char *why;
	int status;

	it_options.config = "[node]\nsize = 2G\n[quota]\nbytes = 100%\n";
	if (overcommit) {
		if (access(MODE_FILE, W_OK) != 0)
			t_skip("may not set vm.overcommit_memory");
		return it_main(argc - 1, argv + 1, overcommit_tests);
	}
	why = memcg_create(&cg, LIMIT_BYTES);
	if (why)
		t_skip(why);
	it_options.wrap = memcg_wrap;
	it_options.env = env;
	status = it_main(argc, argv, cgroup_tests);
	memcg_destroy(&cg);
	return status;
}
