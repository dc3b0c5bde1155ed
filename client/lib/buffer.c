/* SPDX-License-Identifier: MIT */
/* What can be done with a buffer's fd: map, sync, name. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/dma-buf.h>

#include <dmaheap/dmaheap.h>

#include "lib/handle.h"

/* A mapping congruent to its file at this size can use 2 MiB page tables. */
#define CONGRUENT_BYTES ((size_t)2 << 20)

#define BUFFER_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static size_t page_align(size_t len_bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (len_bytes + page - 1) & ~(page - 1);
}

/* Address space for @len_bytes that begins at a multiple of 2 MiB. */
static void *reserve(size_t len_bytes)
{
	size_t span = len_bytes + CONGRUENT_BYTES;
	char *base, *start;

	if (span < len_bytes) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	base = mmap(NULL, span, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED)
		return MAP_FAILED;
	start = (char *)(((uintptr_t)base + CONGRUENT_BYTES - 1) &
			 ~(uintptr_t)(CONGRUENT_BYTES - 1));
	if (start > base)
		munmap(base, (size_t)(start - base));
	munmap(start + len_bytes, (size_t)(base + span - start) - len_bytes);
	return start;
}

_public_ void *dmaheap_map(int fd, size_t len_bytes, int prot)
{
	struct stat st;
	void *start, *map;

	if (fstat(fd, &st) < 0)
		return MAP_FAILED;
	/* Beyond the end mmap() succeeds and the access faults. */
	if (len_bytes == 0 || st.st_size < 0 ||
	    len_bytes > (uint64_t)st.st_size) {
		errno = EINVAL;
		return MAP_FAILED;
	}
	len_bytes = page_align(len_bytes);
	start = reserve(len_bytes);
	if (start == MAP_FAILED)
		return MAP_FAILED;
	/* The pages are there: MAP_POPULATE only enters them into the table. */
	map = mmap(start, len_bytes, prot,
		   MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd, 0);
	if (map == MAP_FAILED) {
		int err = errno;

		munmap(start, len_bytes);
		errno = err;
	}
	return map;
}

_public_ int dmaheap_sync(int fd, uint64_t flags)
{
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0)
		return errno == EBADF ? -EBADF : -ENOTTY;
	if ((seals & BUFFER_SEALS) != BUFFER_SEALS)
		return -ENOTTY;
	if (flags & ~(uint64_t)DMA_BUF_SYNC_VALID_FLAGS_MASK ||
	    !(flags & DMA_BUF_SYNC_RW))
		return -EINVAL;
	return 0;
}

_public_ int dmaheap_set_name(struct dmaheap *dh, int fd, const char *name)
{
	struct dmaheap_set_name_req set = {0};
	struct dmaheap_message msg = {.opcode = DMAHEAP_OP_SET_NAME,
				      .payload = &set,
				      .payload_bytes = sizeof(set),
				      .fds = &fd,
				      .n_fds = 1};

	if (strlen(name) >= sizeof(set.name))
		return -EINVAL;
	memcpy(set.name, name, strlen(name));
	return dmaheap_call(dh, &msg);
}
