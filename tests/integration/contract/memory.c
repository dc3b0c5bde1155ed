/* SPDX-License-Identifier: MIT */
#include "contract.h"

#include <sys/sysinfo.h>

static const char *is_zero(const char *at, size_t n_bytes)
{
	for (size_t i = 0; i < n_bytes; i++)
		if (at[i])
			return "not zero";
	return "all zero";
}

static void zeros(const char *what, const size_t *size, size_t n, bool dirty)
{
	char name[64];

	for (size_t i = 0; i < n; i++) {
		int fd = buf_alloc(size[i], O_RDWR | O_CLOEXEC);
		char *at = mmap(NULL, size[i], PROT_READ | PROT_WRITE,
				MAP_SHARED, fd, 0);

		if (at == MAP_FAILED) {
			line(name, "%s", res_errno(errno));
			continue;
		}
		snprintf(name, sizeof(name), "zero.%s.%zu", what, size[i]);
		if (!dirty)
			line(name, "%s", is_zero(at, size[i]));
		memset(at, 0xff, size[i]);
		munmap(at, size[i]);
		close(fd);
	}
}

static long value_of(const char *path, const char *key)
{
	char text[256];
	FILE *file = fopen(path, "re");
	long kib = 0;

	while (file && fgets(text, sizeof(text), file))
		if (strncmp(text, key, strlen(key)) == 0)
			kib = atol(text + strlen(key));
	if (file)
		fclose(file);
	return kib;
}

static long free_kib(void)
{
	return value_of("/proc/meminfo", "MemFree:");
}

static long rss_kib(void)
{
	return value_of("/proc/self/status", "VmRSS:");
}

#define BIG_BYTES ((size_t)256 << 20)

static int percent(long kib)
{
	long p = kib * 100 / (long)(BIG_BYTES >> 10);

	return p > 80 ? 100 : p < 20 && p > -20 ? 0 : (int)p;
}

enum { AT_ALLOC, AT_TOUCH, CLOSED, UNMAPPED, RSS_ALLOC, RSS_TOUCH, N_SHARES };

/* Of the machine's free memory, and of this process's resident memory. */
static bool measure(int share[N_SHARES])
{
	long before = free_kib(), rss = rss_kib(), now;
	int fd = buf_alloc(BIG_BYTES, O_RDWR | O_CLOEXEC);
	char *at;

	if (fd < 0)
		return false;
	now = free_kib();
	share[AT_ALLOC] = percent(before - now);
	at = mmap(NULL, BIG_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	share[RSS_ALLOC] = percent(rss_kib() - rss);
	before = now;
	memset(at, 1, BIG_BYTES);
	now = free_kib();
	share[AT_TOUCH] = percent(before - now);
	share[RSS_TOUCH] = percent(rss_kib() - rss);
	close(fd);
	usleep(100000);
	before = free_kib();
	share[CLOSED] = percent(before - now);
	munmap(at, BIG_BYTES);
	usleep(500000);
	share[UNMAPPED] = percent(free_kib() - before);
	return true;
}

/*
 * Others use the machine too: a reading that is neither all nor nothing is
 * taken again.
 */
static void taken(void)
{
	int share[N_SHARES], muddled = 1;

	for (int attempt = 0; attempt < 5 && muddled; attempt++) {
		if (!measure(share)) {
			line("mem.taken-at-alloc", "%s", res_errno(errno));
			return;
		}
		muddled = 0;
		for (int i = 0; i < N_SHARES; i++)
			muddled += share[i] != 0 && share[i] != 100;
	}
	line("mem.taken-at-alloc", "%d%%", share[AT_ALLOC]);
	line("mem.taken-at-touch", "%d%%", share[AT_TOUCH]);
	line("mem.released-at-close-while-mapped", "%d%%", share[CLOSED]);
	line("mem.released-at-munmap", "%d%%", share[UNMAPPED]);
	line("mem.rss-at-alloc", "%d%%", share[RSS_ALLOC]);
	line("mem.rss-at-touch", "%d%%", share[RSS_TOUCH]);
}

void walk_memory(void)
{
	static const size_t size[] = {4096, 65536, 1048576, 10485760};
	int fd;
	char *at;

	zeros("fresh", size + 1, 3, false);
	zeros("recycled", size, 4, true);
	zeros("recycled", size, 4, false);
	fd = buf_alloc(4 * PAGE, O_RDWR | O_CLOEXEC);
	at = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	at[100] = 5;
	close(fd);
	fd = buf_alloc(4 * PAGE, O_RDWR | O_CLOEXEC);
	line("keep.fd-closed-mapping-lives", "%s",
	     at[100] == 5 ? "kept" : "lost");
	munmap(at, 4 * PAGE);
	close(fd);
	taken();
}
