/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Scenario: what the programs under dmaheap-run do in test_run.c. Each is an
 * ordinary program of /dev/dma_heap that knows nothing of dmaheap.
 *
 * Ownership: each scenario closes what it opens, but where that is the point.
 * Threads:   one runs in a process.
 */

#include <fcntl.h>
#include <linux/dma-buf.h>
#include <linux/dma-heap.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

/* Ends the process with a line that says what was expected and where. */
#define EXPECT(condition)                                                      \
	do {                                                                   \
		if (!(condition))                                              \
			scenario_failed(__FILE__, __LINE__, #condition);       \
	} while (0)

_Noreturn void scenario_failed(const char *file, int line, const char *what);

int heap_open(void);

/* Return: the fd, or -1 and errno. */
int heap_alloc(int heap, uint64_t len_bytes);

/* Maps, checks that all is zero, fills with @fill, unmaps. */
void check_zero_and_fill(int fd, size_t len_bytes, int fill);

int count_fds(void);
uint64_t now_ms(void);

/* Return: the exit status. */
typedef int scenario(int argc, char **argv);

scenario scenario_forks, scenario_threads, scenario_thousands, scenario_spawn;
scenario scenario_daemonise, scenario_timer, scenario_open_during_stall;
scenario scenario_bad_pointers, scenario_paths, scenario_directory;
scenario scenario_identity, scenario_own_filter, scenario_foreign_call;
scenario scenario_strict, scenario_hold, scenario_alloc, scenario_die;
scenario scenario_signals, scenario_after_death, scenario_sync_files;
scenario scenario_mirror, scenario_openat2;
