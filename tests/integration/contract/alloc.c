/* SPDX-License-Identifier: MIT */
#include "contract.h"

static void sizes(void)
{
	static const uint64_t size[] = {
		0,       1,       4095,     4096,       4097,
		8192,    65535,   65536,    65537,      1048575,
		1048576, 1048577, 10485760, UINT64_MAX, UINT64_MAX - 4094,
	};
	char name[64];
	struct stat st;

	for (size_t i = 0; i < sizeof(size) / sizeof(size[0]); i++) {
		int fd = buf_alloc(size[i], O_RDWR | O_CLOEXEC);

		snprintf(name, sizeof(name), "alloc.size.%llu",
			 (unsigned long long)size[i]);
		if (fd < 0) {
			line(name, "%s", res_errno(errno));
			continue;
		}
		fstat(fd, &st);
		line(name, "ok seek_end=%lld st_size=%lld st_blocks=%lld",
		     (long long)lseek(fd, 0, SEEK_END), (long long)st.st_size,
		     (long long)st.st_blocks);
		close(fd);
	}
}

static void maps_of(const char *name, int fd)
{
	char full[80], shared_r[64];
	void *at;

	snprintf(full, sizeof(full), "%s.mmap", name);
	at = mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED) {
		snprintf(shared_r, sizeof(shared_r), "%s", res_errno(errno));
	} else {
		snprintf(shared_r, sizeof(shared_r), "ok(mprotect-rw=%s)",
			 res(mprotect(at, 2 * PAGE, PROT_READ | PROT_WRITE)));
		munmap(at, 2 * PAGE);
	}
	line(full,
	     "shared-r=%s shared-w=%s shared-rw=%s private-r=%s shared-none=%s",
	     shared_r, try_map(fd, 2 * PAGE, PROT_WRITE, MAP_SHARED, 0),
	     try_map(fd, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, 0),
	     try_map(fd, 2 * PAGE, PROT_READ, MAP_PRIVATE, 0),
	     try_map(fd, 2 * PAGE, PROT_NONE, MAP_SHARED, 0));
}

static void io_of(const char *name, int fd)
{
	char full[80], byte = 0;
	const char *r[6];

	snprintf(full, sizeof(full), "%s.io", name);
	r[0] = res(read(fd, &byte, 1));
	r[1] = res(write(fd, &byte, 1));
	r[2] = res(ftruncate(fd, PAGE));
	r[3] = res(fallocate(fd, 0, 0, PAGE));
	r[4] = res(buf_sync(fd, DMA_BUF_SYNC_START | DMA_BUF_SYNC_RW));
	r[5] = res(buf_set_name(fd, "flags"));
	line(full,
	     "read=%s write=%s ftruncate=%s fallocate=%s sync=%s setname=%s "
	     "lseek-end=%lld",
	     r[0], r[1], r[2], r[3], r[4], r[5],
	     (long long)lseek(fd, 0, SEEK_END));
}

static void fd_flags(void)
{
	static const struct {
		const char *name;
		uint32_t flags;
	} flag[] = {
		{"0", 0},
		{"O_WRONLY", O_WRONLY},
		{"O_RDWR", O_RDWR},
		{"3", 3},
		{"O_CLOEXEC", O_CLOEXEC},
		{"O_WRONLY|CLOEXEC", O_WRONLY | O_CLOEXEC},
		{"O_RDWR|CLOEXEC", O_RDWR | O_CLOEXEC},
		{"3|CLOEXEC", 3 | O_CLOEXEC},
		{"O_RDWR|NONBLOCK", O_RDWR | O_NONBLOCK},
		{"O_RDWR|APPEND", O_RDWR | O_APPEND},
		{"O_RDWR|CREAT", O_RDWR | O_CREAT},
		{"O_RDWR|EXCL", O_RDWR | O_EXCL},
		{"O_RDWR|TRUNC", O_RDWR | O_TRUNC},
		{"O_RDWR|DIRECT", O_RDWR | O_DIRECT},
		{"O_RDWR|LARGEFILE", O_RDWR | 0100000},
		{"O_RDWR|PATH", O_RDWR | O_PATH},
		{"O_RDWR|TMPFILE", O_RDWR | O_TMPFILE},
		{"4", 4},
		{"1<<31", 1u << 31},
		{"~0", ~0u},
	};
	char name[64];

	for (size_t i = 0; i < sizeof(flag) / sizeof(flag[0]); i++) {
		int fd = buf_alloc(2 * PAGE, flag[i].flags);

		snprintf(name, sizeof(name), "alloc.fdflags.%s", flag[i].name);
		if (fd < 0) {
			line(name, "%s", res_errno(errno));
			continue;
		}
		line(name, "ok getfl=0%o getfd=%d", fcntl(fd, F_GETFL),
		     fcntl(fd, F_GETFD));
		maps_of(name, fd);
		io_of(name, fd);
		close(fd);
	}
}

/* The result of one ALLOC with a struct as given; a new fd is closed. */
static const char *alloc_struct(int heap, struct dma_heap_allocation_data *data)
{
	int r = ioctl(heap, DMA_HEAP_IOCTL_ALLOC, data);

	if (r == 0)
		close((int)data->fd);
	return res(r);
}

static void fields(int heap)
{
	static const uint64_t heap_flags[] = {1, 2, 0x80000000, 0x100000000,
					      UINT64_MAX};
	static const uint32_t fds[] = {1, 5, 0x80000000, 0xffffffff};
	struct dma_heap_allocation_data data;
	char name[64];

	for (size_t i = 0; i < 5; i++) {
		data = (struct dma_heap_allocation_data){.len = PAGE,
							 .fd_flags = O_RDWR,
							 .heap_flags =
								 heap_flags[i]};
		snprintf(name, sizeof(name), "alloc.heapflags.0x%llx",
			 (unsigned long long)heap_flags[i]);
		line(name, "%s", alloc_struct(heap, &data));
	}
	for (size_t i = 0; i < 4; i++) {
		data = (struct dma_heap_allocation_data){.len = PAGE,
							 .fd = fds[i],
							 .fd_flags = O_RDWR};
		snprintf(name, sizeof(name), "alloc.fdfield.0x%x", fds[i]);
		line(name, "%s", alloc_struct(heap, &data));
	}
	data = (struct dma_heap_allocation_data){.fd = 5, .fd_flags = O_RDWR};
	line("alloc.order.fd+size0", "%s", alloc_struct(heap, &data));
}

static void after_ok(int heap)
{
	struct dma_heap_allocation_data data = {.len = 5000,
						.fd_flags = O_RDWR | O_CLOEXEC};
	int before = count_fds(), lowest = dup(0), r;

	close(lowest);
	r = ioctl(heap, DMA_HEAP_IOCTL_ALLOC, &data);
	line("alloc.struct.after-ok",
	     "ret=%d len=%llu fd_flags=0%o heap_flags=%llu newfds=%d", r,
	     (unsigned long long)data.len, data.fd_flags,
	     (unsigned long long)data.heap_flags, count_fds() - before);
	line("alloc.lowest-free-fd", "%s",
	     (int)data.fd == lowest ? "yes" : "no");
	close((int)data.fd);
}

static void arguments(int heap)
{
	struct dma_heap_allocation_data *data;
	int before = count_fds(), null;
	long kernel = (long)0xffff800000000000;

	line("alloc.arg.NULL", "%s",
	     res(ioctl(heap, DMA_HEAP_IOCTL_ALLOC, NULL)));
	line("alloc.arg.kernel", "%s",
	     res(ioctl(heap, DMA_HEAP_IOCTL_ALLOC, kernel)));
	data = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	data->len = PAGE;
	data->fd_flags = O_RDWR | O_CLOEXEC;
	mprotect(data, PAGE, PROT_READ);
	line("alloc.arg.readonly", "%s",
	     res(ioctl(heap, DMA_HEAP_IOCTL_ALLOC, data)));
	/* Not in the kernel's list, which leaks one here; we must not. */
	line("alloc.arg.readonly.newfds", "%d fd-field=%u",
	     count_fds() - before, data->fd);
	mprotect(data, PAGE, PROT_NONE);
	line("alloc.arg.none", "%s",
	     res(ioctl(heap, DMA_HEAP_IOCTL_ALLOC, data)));
	munmap(data, PAGE);
	line("alloc.arg.unmapped", "%s",
	     res(ioctl(heap, DMA_HEAP_IOCTL_ALLOC, data)));
	line("alloc.arg.newfds", "%d", count_fds() - before);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	line("alloc.fd.devnull", "%s", res(heap_alloc_on(null, PAGE, O_RDWR)));
	close(null);
}

void walk_alloc(void)
{
	int heap;

	sizes();
	fd_flags();
	if (!contract_heap)
		return;
	heap = heap_open(O_RDWR | O_CLOEXEC);
	fields(heap);
	after_ok(heap);
	arguments(heap);
	close(heap);
}
