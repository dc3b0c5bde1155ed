/* SPDX-License-Identifier: MIT */
#include "contract.h"

#ifdef CONTRACT_LIBRARY
#include <dmaheap/dmaheap.h>
#endif

const char *contract_heap;
const char *contract_heap_name = "system";

#ifdef CONTRACT_LIBRARY
static struct dmaheap *library;

static int from_library(int r)
{
	if (r >= 0)
		return r;
	errno = -r;
	return -1;
}

int buf_alloc(uint64_t len_bytes, uint32_t fd_flags)
{
	return from_library(dmaheap_alloc(library, contract_heap_name,
					  len_bytes, fd_flags, 0));
}

int buf_sync(int fd, uint64_t flags)
{
	return from_library(dmaheap_sync(fd, flags));
}

int buf_set_name(int fd, const char *name)
{
	return from_library(dmaheap_set_name(library, fd, name));
}

static int set_up(void)
{
	return dmaheap_connect(&library, NULL);
}

#else
static int the_heap = -1;

int buf_alloc(uint64_t len_bytes, uint32_t fd_flags)
{
	return heap_alloc_on(the_heap, len_bytes, fd_flags);
}

int buf_sync(int fd, uint64_t flags)
{
	struct dma_buf_sync sync = {flags};

	return ioctl(fd, DMA_BUF_IOCTL_SYNC, &sync);
}

int buf_set_name(int fd, const char *name)
{
	return ioctl(fd, DMA_BUF_SET_NAME_B, name);
}

static int set_up(void)
{
	static char path[64];

	snprintf(path, sizeof(path), "/dev/dma_heap/%s", contract_heap_name);
	contract_heap = path;
	the_heap = heap_open(O_RDWR | O_CLOEXEC);
	return the_heap < 0 ? -errno : 0;
}
#endif

/* The second half of "exec.CLOEXEC": another program looks. */
static int is_open(const char *number)
{
	line("exec.CLOEXEC", "fd %s",
	     fcntl(atoi(number), F_GETFD) < 0 ? "closed" : "open");
	return 0;
}

int main(int argc, char **argv)
{
	int r;

	if (argc == 3 && strcmp(argv[1], "--is-open") == 0)
		return is_open(argv[2]);
	closefrom(3); /* what somebody left open disturbs the counting */
	if (argc > 1)
		contract_heap_name = argv[1];
	r = set_up();
	if (r) {
		fprintf(stderr, "contract: no heap '%s': %s\n",
			contract_heap_name, strerror(-r));
		return 77;
	}
	if (contract_heap) {
		walk_dev();
		walk_heapfd();
	}
	walk_alloc();
	if (contract_heap) {
		walk_ioctl();
		walk_limits();
	}
	walk_buf();
	walk_proc();
	walk_mmap();
	walk_advise();
	walk_kernel();
	walk_sync();
	if (contract_heap)
		walk_names();
	walk_poll();
	if (contract_heap)
		walk_fences();
	walk_life();
	walk_memory();
	walk_sysfs();
	return fflush(stdout) != 0;
}
