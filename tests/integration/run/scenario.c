/* SPDX-License-Identifier: MIT */
#include "scenario.h"

#include <errno.h>
#include <time.h>

_Noreturn void scenario_failed(const char *file, int line, const char *what)
{
	fprintf(stderr, "%s:%d: expected: %s (errno %s)\n", file, line, what,
		strerrorname_np(errno));
	_exit(1);
}

int heap_open(void)
{
	return open("/dev/dma_heap/system", O_RDWR | O_CLOEXEC);
}

int heap_alloc(int heap, uint64_t len_bytes)
{
	struct dma_heap_allocation_data data = {.len = len_bytes,
						.fd_flags = O_RDWR | O_CLOEXEC};

	return ioctl(heap, DMA_HEAP_IOCTL_ALLOC, &data) ? -1 : (int)data.fd;
}

void check_zero_and_fill(int fd, size_t len_bytes, int fill)
{
	uint64_t *at = mmap(NULL, len_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			    fd, 0);
	uint64_t any = 0;

	EXPECT(at != MAP_FAILED);
	for (size_t i = 0; i < len_bytes / sizeof(*at); i++)
		any |= at[i];
	EXPECT(any == 0);
	memset(at, fill, len_bytes);
	munmap(at, len_bytes);
}

int count_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 4096; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		scenario *run;
	} known[] = {
		{"forks", scenario_forks},
		{"threads", scenario_threads},
		{"thousands", scenario_thousands},
		{"spawn", scenario_spawn},
		{"daemonise", scenario_daemonise},
		{"timer", scenario_timer},
		{"open-during-stall", scenario_open_during_stall},
		{"bad-pointers", scenario_bad_pointers},
		{"paths", scenario_paths},
		{"openat2", scenario_openat2},
		{"directory", scenario_directory},
		{"identity", scenario_identity},
		{"own-filter", scenario_own_filter},
		{"foreign-call", scenario_foreign_call},
		{"strict", scenario_strict},
		{"hold", scenario_hold},
		{"alloc", scenario_alloc},
		{"die", scenario_die},
		{"signals", scenario_signals},
		{"after-death", scenario_after_death},
		{"sync-files", scenario_sync_files},
		{"mirror", scenario_mirror},
	};

	for (size_t i = 0; argc > 1 && i < sizeof(known) / sizeof(known[0]);
	     i++)
		if (strcmp(argv[1], known[i].name) == 0)
			return known[i].run(argc - 1, argv + 1);
	fprintf(stderr, "usage: run_scenario NAME [ARGS...]\n");
	return 2;
}
