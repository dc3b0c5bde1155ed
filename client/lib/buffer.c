/* SPDX-License-Identifier: MIT */
/* What can be done with a buffer's fd: sync, name; map.c maps it. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include <linux/dma-buf.h>

#include <dmaheap/dmaheap.h>

#include "lib/handle.h"

#define BUFFER_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

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
