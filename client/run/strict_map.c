/* SPDX-License-Identifier: MIT */
/*
 * The calls of --strict on memory: a dma-buf's mapping is one of bare page
 * frames, and refuses what needs pages of a file behind it.
 */
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "run/arch.h"
#include "run/maps.h"
#include "run/run.h"
#include "run/target.h"

#define PAGE_BYTES          4096u
#define ADDRESS_SPACE_BYTES (1ull << 47)

/*
 * Whether the dma-buf would refuse a mapping that its access mode allows: past
 * its end, or private and of several pages, which cannot be copied on write.
 */
static bool refuses_map(uint64_t size_bytes, uint64_t len_bytes,
			uint64_t offset_bytes, int flags)
{
	uint64_t pages =
		len_bytes / PAGE_BYTES + (len_bytes % PAGE_BYTES ? 1 : 0);
	uint64_t first = offset_bytes / PAGE_BYTES;

	if (first + pages < first || first + pages > size_bytes / PAGE_BYTES)
		return true;
	if ((flags & MAP_TYPE) == MAP_PRIVATE && pages > 1)
		return true;
	return flags & MAP_HUGETLB;
}

void strict_mmap(struct run *run, const struct call *call)
{
	uint64_t len = call_arg(call, 1), offset = call_arg(call, 5);
	int flags = call_int(call, 3);
	struct node_object object;

	node_identify(run->node, call_tid(call), call_int(call, 4), &object);
	/* What the kernel refuses before it asks the file stays its business.
	 */
	if ((object.kind != NODE_HEAP && object.kind != NODE_BUFFER) ||
	    len == 0 || len > ADDRESS_SPACE_BYTES || offset % PAGE_BYTES ||
	    offset + len < offset || (flags & MAP_SYNC) || !call_is_alive(call))
		call_continue(call);
	else if (object.kind == NODE_HEAP)
		call_fail(call, ENODEV);
	else if (refuses_map((uint64_t)object.st.st_size, len, offset, flags)) {
		/* A description without the right is refused first: EACCES. */
		unsigned int fd_flags = 0;

		(void)target_fd_flags(call_tid(call), call_int(call, 4),
				      &fd_flags);
		if ((fd_flags & 3) == 1)
			call_continue(call);
		else
			call_fail(call, EINVAL);
	} else
		call_continue(call);
}

void strict_madvise(struct run *run, const struct call *call)
{
	(void)run;
	int advice = call_int(call, 2);

	if (!maps_has_buffer(call_tid(call), call_arg(call, 0),
			     call_arg(call, 1)) ||
	    !call_is_alive(call))
		call_continue(call);
	else
		call_fail(call, advice == MADV_REMOVE ? ENODEV : EINVAL);
}

/* Such a mapping can be moved and cut, not grown or copied. */
void strict_mremap(struct run *run, const struct call *call)
{
	(void)run;
	uint64_t old_bytes = call_arg(call, 1), new_bytes = call_arg(call, 2);
	int flags = call_int(call, 3);

	if ((old_bytes >= new_bytes && old_bytes != 0 &&
	     !(flags & MREMAP_DONTUNMAP)) ||
	    !maps_has_buffer(call_tid(call), call_arg(call, 0),
			     old_bytes ? old_bytes : 1) ||
	    !call_is_alive(call))
		call_continue(call);
	else
		call_fail(call, flags & MREMAP_DONTUNMAP ? EINVAL : EFAULT);
}

/* No page of it is in the page cache: all zero. */
void strict_mincore(struct run *run, const struct call *call)
{
	(void)run;
	static const uint8_t zeros[4096];
	uint64_t start = call_arg(call, 0), pages;
	uint64_t to = call_arg(call, 2);

	pages = (call_arg(call, 1) + PAGE_BYTES - 1) / PAGE_BYTES;
	if (start % PAGE_BYTES || pages > 1u << 20 ||
	    !maps_has_buffer(call_tid(call), start, pages * PAGE_BYTES) ||
	    !call_is_alive(call)) {
		call_continue(call);
		return;
	}
	while (pages) {
		uint64_t step = pages < sizeof(zeros) ? pages : sizeof(zeros);
		int r = target_write(call_tid(call), to, zeros, step);

		if (r) {
			call_fail(call, -r);
			return;
		}
		to += step;
		pages -= step;
	}
	call_return(call, 0);
}

/* Waking and waiting between processes needs a page of a file behind it. */
void strict_futex(struct run *run, const struct call *call)
{
	(void)run;
	if (maps_has_buffer(call_tid(call), call_arg(call, 0), 4) &&
	    call_is_alive(call))
		call_fail(call, EFAULT);
	else
		call_continue(call);
}

#define IOVECS_LOOKED_AT 16u

/* Whether one of the first of @n ranges of the caller's list is a buffer's. */
static bool ranges_have_buffer(const struct call *call, pid_t pid,
			       uint64_t list, uint64_t n)
{
	struct iovec iov[IOVECS_LOOKED_AT];

	if (n > IOVECS_LOOKED_AT)
		n = IOVECS_LOOKED_AT;
	if (target_read(call_tid(call), list, iov, n * sizeof(iov[0])))
		return false;
	for (uint64_t i = 0; i < n; i++)
		if (maps_has_buffer(pid, (uintptr_t)iov[i].iov_base,
				    iov[i].iov_len))
			return true;
	return false;
}

void strict_vmsplice(struct run *run, const struct call *call)
{
	(void)run;
	if (ranges_have_buffer(call, call_tid(call), call_arg(call, 1),
			       call_arg(call, 2)) &&
	    call_is_alive(call))
		call_fail(call, EFAULT);
	else
		call_continue(call);
}

/* The other process's side only: the caller's own is copied as usual. */
void strict_process_vm(struct run *run, const struct call *call)
{
	(void)run;
	if (ranges_have_buffer(call, call_int(call, 0), call_arg(call, 3),
			       call_arg(call, 4)) &&
	    call_is_alive(call))
		call_fail(call, EFAULT);
	else
		call_continue(call);
}
