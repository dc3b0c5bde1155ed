/* SPDX-License-Identifier: MIT */
/*
 * A daemon under mixed use for DMAHEAP_SOAK_S seconds (60): its memory,
 * descriptors and latency must be flat. Prints a line per tenth of the time.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "integration/common.h"
#include "support/raw.h"

#define N_CLIENTS      4
#define N_HELD         8
#define SOAK_DEFAULT_S 60
#define N_REPORTS      10
#define RSS_SLACK_KIB  2048 /* what malloc may keep back */
#define ROUND_TRIPS    200

static volatile bool *stop;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Random sizes and holds; now and then a new connection, or an offence. */
static void run_client(unsigned int seed)
{
	struct dmaheap *dh = NULL;
	int held[N_HELD];

	memset(held, 0xff, sizeof(held));
	while (!*stop) {
		unsigned int slot = (unsigned int)rand_r(&seed) % N_HELD;
		unsigned int what = (unsigned int)rand_r(&seed) % 100;

		if (!dh && dmaheap_connect(&dh, it_daemon.socket))
			_exit(1);
		if (held[slot] >= 0)
			close(held[slot]);
		held[slot] =
			dmaheap_alloc(dh,
				      what % 2 ? "system" : "system-uncached",
				      1 + (unsigned int)rand_r(&seed) %
						      (1u << (12 + what % 10)),
				      O_RDWR | O_CLOEXEC, 0);
		if (what == 0)
			dh = dmaheap_close(dh);
		if (what == 1) {
			int sock = raw_connect(it_daemon.socket);

			if (sock >= 0) {
				raw_send(sock, "offence", 7, NULL, 0);
				close(sock);
			}
		}
		if (what == 2 && dh)
			(void)dmaheap_alloc(dh, "nowhere", 1, O_RDWR, 0);
	}
	_exit(0);
}

static long rss_kib(pid_t pid)
{
	char path[64], line[256];
	long kib = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	/* RssShmem is the buffers: RssAnon is the daemon's own. */
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "RssAnon: %ld", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib;
}

static uint64_t median_round_trip_ns(void)
{
	static uint64_t ns[ROUND_TRIPS];

	for (int i = 0; i < ROUND_TRIPS; i++) {
		uint64_t start = now_ns();
		int fd = it_alloc("system", IT_KIB(64), NULL);

		ns[i] = now_ns() - start;
		if (fd >= 0)
			close(fd);
		for (int j = i; j > 0 && ns[j] < ns[j - 1]; j--) {
			uint64_t t = ns[j];

			ns[j] = ns[j - 1];
			ns[j - 1] = t;
		}
	}
	return ns[ROUND_TRIPS / 2];
}

static void the_daemon_stays_as_it_is(void)
{
	const char *text = getenv("DMAHEAP_SOAK_S");
	unsigned int seconds =
		text ? (unsigned int)strtoul(text, NULL, 10) : SOAK_DEFAULT_S;
	long rss[N_REPORTS];
	uint64_t allocs = 0;
	pid_t pids[N_CLIENTS];

	stop = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	T_REQUIRE(stop != MAP_FAILED);
	for (unsigned int i = 0; i < N_CLIENTS; i++) {
		pids[i] = it_fork();
		if (pids[i] == 0)
			run_client(i + 1);
	}
	for (int i = 0; i < N_REPORTS; i++) {
		uint64_t until = now_ns() + seconds * 1000000000ull / N_REPORTS;
		uint64_t p50;

		while (now_ns() < until)
			usleep(10000);
		p50 = median_round_trip_ns();
		rss[i] = rss_kib(it_daemon.pid);
		allocs = it_heap_stats("system")->allocs;
		printf("\n  %3d %%: RssAnon %ld KiB, fds %u, p50 %.1f us, "
		       "allocations %llu",
		       (i + 1) * 100 / N_REPORTS, rss[i],
		       count_fds(it_daemon.pid), (double)p50 / 1000,
		       (unsigned long long)allocs);
		fflush(stdout);
	}
	*stop = true;
	for (int i = 0; i < N_CLIENTS; i++) {
		int status;

		waitpid(pids[i], &status, 0);
		CU_ASSERT_EQUAL(status, 0);
	}
	CU_ASSERT_TRUE(allocs > 1000);
	/* After the first tenth everything is warm. */
	CU_ASSERT_TRUE(rss[N_REPORTS - 1] <= rss[0] + RSS_SLACK_KIB);
	/* it_main() compares fds and watches with those at the start. */
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"the daemon stays as it is", the_daemon_stays_as_it_is},
		CU_TEST_INFO_NULL,
	};

	signal(SIGPIPE, SIG_IGN);
	it_options.config = "[daemon]\nconfine = kill\n[node]\nsize = 512M\n"
			    "[heap system]\npool.limit = 32M\n";
	return it_main(argc, argv, tests);
}
