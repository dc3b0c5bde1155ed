/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "integration/common.h"
#include "support/memcg.h"

/*
 * A host that stalls for memory: readers of a file in a cgroup too small for
 * it. Where the kernel tells of the stalls (PSI), what is parked goes.
 */
#define PSI_FILE    "/proc/pressure/memory"
#define LIMIT_BYTES IT_MIB(24)
#define HELD_BYTES  IT_MIB(8) /* of the limit, never given back */
#define FILE_BYTES  IT_MIB(32)
#define N_READERS   6
#define TRY_MS      10000
#define SURE_STALL_US                                                          \
	2000000 /* in TRY_MS: above the trigger's 150 ms in 2 s                \
		 */

static struct memcg cg;

/* Return: microseconds that some process stalled, since the host's start. */
static uint64_t stalled_us(void)
{
	uint64_t us = 0;
	FILE *f = fopen(PSI_FILE, "re");

	if (f && fscanf(f, "some avg10=%*f avg60=%*f avg300=%*f total=%" SCNu64,
			&us) != 1)
		us = 0;
	if (f)
		fclose(f);
	return us;
}

/* Return: a file whose pages are not in memory, or -1. */
static int make_cold_file(void)
{
	static char chunk[1 << 20];
	char path[] = "/tmp/dmaheap-test-cold-XXXXXX";
	int fd = mkstemp(path);

	if (fd < 0)
		return -1;
	unlink(path);
	memset(chunk, 0x5a, sizeof(chunk));
	for (uint64_t n = 0; n < FILE_BYTES; n += sizeof(chunk))
		if (write(fd, chunk, sizeof(chunk)) != sizeof(chunk))
			break;
	if (fsync(fd) < 0 || lseek(fd, 0, SEEK_END) != FILE_BYTES ||
	    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Reads the whole again and again. All read the same: to miss a page that was
 * in use is what the kernel counts as a stall. */
_Noreturn static void read_for_ever(int fd)
{
	const size_t page = 4096;
	const volatile char *p =
		mmap(NULL, FILE_BYTES, PROT_READ, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED || madvise((void *)p, FILE_BYTES, MADV_RANDOM))
		_exit(1);
	for (;;)
		for (size_t at = 0; at < FILE_BYTES; at += page)
			(void)p[at];
}

/* Return: the process that holds most of the cgroup and has the readers. */
static pid_t start_thrashing(int fd)
{
	pid_t pid = it_fork();
	char *held;

	if (pid)
		return pid;
	if (!memcg_join(&cg))
		_exit(1);
	held = mmap(NULL, HELD_BYTES, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (held == MAP_FAILED)
		_exit(1);
	for (int i = 1; i < N_READERS; i++)
		if (it_fork() == 0)
			read_for_ever(fd);
	read_for_ever(fd);
}

static bool parked_is_gone(void *ctx)
{
	uint64_t start_us = *(const uint64_t *)ctx;

	return it_stats()->backing.parked_bytes == 0 ||
	       stalled_us() - start_us > SURE_STALL_US;
}

static bool something_is_parked(void *ctx)
{
	(void)ctx;
	return it_stats()->backing.parked_bytes > 0;
}

static void what_is_parked_goes_when_the_host_stalls(void)
{
	uint64_t start_us = stalled_us(), us;
	int fd = make_cold_file();
	pid_t pid;

	T_REQUIRE(fd >= 0);
	close(it_alloc("system", IT_MIB(4), NULL));
	CU_ASSERT_TRUE(wait_until(something_is_parked, NULL, 10000));
	pid = start_thrashing(fd);
	(void)wait_until(parked_is_gone, &start_us, TRY_MS);
	us = stalled_us() - start_us;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(fd);
	if (it_stats()->backing.parked_bytes && us <= SURE_STALL_US)
		printf(" (stalled for %" PRIu64 " us only: not tried) ", us);
	else
		CU_ASSERT_EQUAL(it_stats()->backing.parked_bytes, 0);
	/* And it goes on. */
	fd = it_alloc("system", IT_MIB(4), NULL);
	CU_ASSERT_TRUE(fd >= 0);
	close(fd);
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"what is parked goes when the host stalls",
		 what_is_parked_goes_when_the_host_stalls},
		CU_TEST_INFO_NULL,
	};
	int psi = open(PSI_FILE, O_RDWR | O_CLOEXEC), status;
	const char *why;

	if (psi < 0)
		t_skip("the kernel does not tell of stalls (" PSI_FILE ")");
	close(psi);
	why = memcg_create(&cg, LIMIT_BYTES);
	if (why)
		t_skip(why);
	status = it_main(argc, argv, tests);
	memcg_destroy(&cg);
	return status;
}
