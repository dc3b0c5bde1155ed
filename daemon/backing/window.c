/* SPDX-License-Identifier: MIT */
#include "backing/window.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/err.h"

/*
 * reserved: | slack | base ... 4 MiB phase | piece | 2 MiB shift | slack |
 * The phase (offset modulo 4 MiB) makes address and offset congruent modulo
 * 4 MiB, the shift breaks the congruence above the order that is wanted.
 */
#define SHIFT_MAX_BYTES MIB(2)

int window_init(struct window *w)
{
	size_t bytes =
		2 * WINDOW_ALIGN_BYTES + WINDOW_MAX_BYTES + SHIFT_MAX_BYTES;
	void *p = mmap(NULL, bytes, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return err_raise(-errno);
	w->reserved = p;
	w->reserved_bytes = bytes;
	w->base = (char *)align_up((uintptr_t)p, WINDOW_ALIGN_BYTES);
	return 0;
}

void window_fini(struct window *w)
{
	if (w->reserved)
		(void)munmap(w->reserved, w->reserved_bytes);
	memset(w, 0, sizeof(*w));
}

int window_map(struct window *w, int fd, uint64_t offset_bytes,
	       uint64_t len_bytes, uint64_t align_bytes, void **ret)
{
	uint64_t phase = offset_bytes % WINDOW_ALIGN_BYTES;
	uint64_t shift = align_bytes < MIB(2) ? align_bytes : 0;
	void *p;

	assert(len_bytes > 0 && len_bytes <= WINDOW_MAX_BYTES);
	assert(is_power_of_2(align_bytes));
	if (!w->reserved && window_init(w) < 0)
		return err_raise(-ENOMEM);
	p = mmap(w->base + phase + shift, len_bytes, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_FIXED, fd, (off_t)offset_bytes);
	if (p == MAP_FAILED)
		return err_raise(-errno);
	*ret = p;
	return 0;
}

void window_unmap(struct window *w, void *addr, uint64_t len_bytes)
{
	void *p = mmap(addr, len_bytes, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
		       -1, 0);

	/*
	 * Replacing a mapping fails only for lack of kernel memory. The memfd
	 * must go all the same; nothing else is mapped in the window, so all of
	 * it goes and window_map() reserves a new one.
	 */
	if (p == MAP_FAILED)
		window_fini(w);
}
