/* SPDX-License-Identifier: MIT */
/*
 * An ordinary user with nothing set up: the whole path works, and the daemon's
 * system calls that fail on the way are only those of user_failures.txt.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "integration/common.h"

#define USER       54324u
#define CANNOT_RUN 126
#define LEN        IT_MIB(10)

static struct daemon d;
static char calls_path[96];

/* Run as the same user. Return: 0, or what went wrong. */
static int main_job(void *ctx)
{
	static struct dmaheap_stats stats;
	struct dmaheap *dh;
	int fds[16];
	char *p;

	(void)ctx;
	if (dmaheap_connect(&dh, d.socket))
		return 1;
	for (int round = 0; round < 2; round++) {
		if (dmaheap_alloc_many(dh, "system", LEN, O_RDWR | O_CLOEXEC, 0,
				       16, fds))
			return 2;
		for (int i = 0; i < 16; i++) {
			p = dmaheap_map(fds[i], LEN, PROT_READ | PROT_WRITE);
			if (p == MAP_FAILED)
				return 3;
			memset(p, i, LEN);
			munmap(p, LEN);
			close(fds[i]);
		}
	}
	if (dmaheap_stats(dh, &stats) || stats.heap[0].allocs != 32)
		return 4;
	dmaheap_close(dh);
	return 0;
}

/* Return: whether @line is one of the lines of @path, comments left out. */
static bool is_listed(const char *path, const char *line)
{
	char entry[128];
	bool found = false;
	FILE *f = fopen(path, "re");

	while (f && !found && fgets(entry, sizeof(entry), f)) {
		entry[strcspn(entry, "#\n")] = '\0';
		entry[strcspn(entry, "\t")] = '\0';
		found = !strcmp(entry, line);
	}
	if (f)
		fclose(f);
	return found;
}

static void compare_calls(void)
{
	char line[128];
	unsigned int n = 0;
	FILE *f = fopen(calls_path, "re");

	T_REQUIRE(f != NULL);
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		n++;
		if (!is_listed(ALLOWED_FAILURES, line)) {
			CU_FAIL("a failing call that is not expected");
			fprintf(stderr, "not in user_failures.txt: %s\n", line);
		}
	}
	fclose(f);
	/* EAGAIN of a drained queue is always there: it did look. */
	CU_ASSERT_TRUE(n > 0);
}

static void run_over(const char *loop)
{
	char *wrap[] = {(char[]){FAILING_CALLS}, calls_path, NULL};
	char *env[] = {(char[]){"XDG_RUNTIME_DIR="}, NULL};
	struct daemon_options o = {.config = "[daemon]\nconfine = kill\n",
				   .loop = loop,
				   .uid = USER,
				   .no_socket = true,
				   .env = env,
				   .wrap = wrap};

	snprintf(calls_path, sizeof(calls_path), "/tmp/dmaheap-calls-%d",
		 (int)getpid());
	if (!daemon_start(&d, &o)) {
		if (WEXITSTATUS(d.status) == CANNOT_RUN)
			t_skip("ptrace is not allowed here");
		daemon_stop(&d);
		CU_FAIL("it did not start");
		return;
	}
	CU_ASSERT_EQUAL(it_in_child(USER, main_job, NULL), 0);
	CU_ASSERT_TRUE(daemon_stop(&d));
	compare_calls();
	unlink(calls_path);
	rmdir("/tmp/dmaheap-54324");
}

static void it_works_over_epoll(void)
{
	run_over("epoll");
}

static void it_works_over_uring(void)
{
	if (uring_works())
		run_over("uring");
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"it works over epoll", it_works_over_epoll},
		{"it works over io_uring", it_works_over_uring},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "an ordinary user", .pTests = tests},
		CU_SUITE_INFO_NULL,
	};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	t_skip("sanitizers make calls of their own, and fear ptrace");
#endif
	if (geteuid() != 0)
		t_skip("needs root to become another user");
	return t_main(argc, argv, suites);
}
