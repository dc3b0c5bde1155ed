/* SPDX-License-Identifier: MIT */
/*
 * What single calls cost in this process: prints "name nanoseconds" a line, the
 * median of batches. bench_run runs it bare and under dmaheap-run.
 *
 *   run_cost calls | alloc
 */
#include <fcntl.h>
#include <linux/dma-heap.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#include "bench.h"

#define BATCHES 200u
#define BATCH   50u

static int file; /* /etc/passwd */
static int heap;
static char bytes[4096];

static void do_open(void)
{
	close(open("/etc/passwd", O_RDONLY | O_CLOEXEC));
}

static void do_open_relative(void)
{
	close(open("run_cost_relative", O_RDONLY | O_CLOEXEC));
}

static void do_stat(void)
{
	struct stat st;

	(void)stat("/etc/passwd", &st);
}

static void do_fstat(void)
{
	struct stat st;

	(void)fstat(file, &st);
}

static void do_pread(void)
{
	(void)!pread(file, bytes, 512, 0);
}

static void do_read(void)
{
	(void)!read(file, bytes, 1);
}

static void do_lseek(void)
{
	(void)lseek(file, 0, SEEK_SET);
}

static void do_getppid(void)
{
	(void)syscall(SYS_getppid);
}

static void do_fcntl(void)
{
	(void)fcntl(file, F_GETFL);
}

static void do_tcgets(void)
{
	struct termios t;

	(void)ioctl(file, TCGETS, &t);
}

static void do_mmap(void)
{
	void *at = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, file, 0);

	(void)munmap(at, 4096);
}

static void do_pipe(void)
{
	static int pipes[2] = {-1, -1};

	if (pipes[0] < 0 && pipe(pipes))
		bench_fail("pipe");
	(void)!write(pipes[1], bytes, 64);
	(void)!read(pipes[0], bytes, 64);
}

static void do_alloc(void)
{
	struct dma_heap_allocation_data data = {.len = 65536,
						.fd_flags = O_RDWR | O_CLOEXEC};

	if (ioctl(heap, DMA_HEAP_IOCTL_ALLOC, &data))
		bench_fail("ALLOC");
	close((int)data.fd);
}

static void measure(const char *name, void (*call)(void), unsigned int batch)
{
	struct samples s;

	samples_init(&s, BATCHES);
	call();
	for (unsigned int i = 0; i < BATCHES; i++) {
		uint64_t from = bench_now_ns();

		for (unsigned int k = 0; k < batch; k++)
			call();
		samples_add(&s, (bench_now_ns() - from) / batch);
	}
	printf("%s %llu\n", name,
	       (unsigned long long)samples_quantile(&s, 500));
	samples_fini(&s);
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "alloc") == 0) {
		heap = open("/dev/dma_heap/system", O_RDWR | O_CLOEXEC);
		if (heap < 0)
			bench_fail("/dev/dma_heap/system");
		/* One by one: a median of single calls, as the library's. */
		for (int i = 0; i < 500; i++)
			do_alloc();
		measure("alloc", do_alloc, 1);
		return 0;
	}
	file = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
	measure("open+close", do_open, BATCH);
	measure("open-missing", do_open_relative, BATCH);
	measure("stat", do_stat, BATCH);
	measure("fstat", do_fstat, BATCH);
	measure("pread", do_pread, BATCH);
	measure("read", do_read, BATCH);
	measure("lseek", do_lseek, BATCH);
	measure("fcntl", do_fcntl, BATCH);
	measure("ioctl-TCGETS", do_tcgets, BATCH);
	measure("mmap+munmap", do_mmap, BATCH);
	measure("pipe", do_pipe, BATCH);
	measure("getppid", do_getppid, BATCH);
	return 0;
}
