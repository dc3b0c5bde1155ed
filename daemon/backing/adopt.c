/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "backing/buffer.h"
#include "backing/memfd.h"
#include "base/err.h"
#include "base/fd.h"

int backing_adopt(struct backing *b, int fd, struct backing_buffer **ret,
		  struct backing_identity *ret_id,
		  char error[BACKING_ERROR_BYTES])
{
	_cleanup_(fd_closep) int own = -1;
	struct backing_buffer *bb;
	struct stat st;
	int r = memfd_read_identity(fd, ret_id, &st, error);

	if (r)
		return r;
	bb = backing_find(b, st.st_dev, st.st_ino);
	if (bb) {
		*ret = bb;
		return BACKING_E_KNOWN;
	}
	r = memfd_reopen(fd, O_RDWR, &own);
	if (r == -EMFILE || r == -ENFILE) {
		snprintf(error, BACKING_ERROR_BYTES,
			 "no free file descriptor to adopt the buffer with");
		return BACKING_E_FDS;
	} else if (r) {
		snprintf(error, BACKING_ERROR_BYTES,
			 "the buffer cannot be reopened: %s", strerror(-r));
		return BACKING_E_FOREIGN;
	}
	/* Two daemons that have it would wait for each other to let go. */
	r = memfd_claim(own);
	if (r) {
		snprintf(error, BACKING_ERROR_BYTES,
			 "the buffer is another living daemon's: %s",
			 strerror(-r));
		return BACKING_E_FOREIGN;
	}
	bb = backing_buffer_new(b, ret_id->size_bytes, ret_id->uid, 0);
	if (!bb)
		return err_raise(-ENOMEM);
	bb->watched.own = TAKE_FD(own);
	bb->dev = st.st_dev;
	bb->ino = st.st_ino;
	bb->state = BUFFER_LIVE;
	bb->kind = st.st_blksize >= (blksize_t)MIB(2) ? BACKING_HUGETLB
						      : BACKING_PLAIN;
	buffer_enter(b, bb, lifetime_watch(b->lifetime, bb->watched.own));
	buffer_arm(b, bb);
	budget_add_resident(b->budget, bb->size_bytes);
	*ret = bb;
	return 0;
}

void backing_forget(struct backing *b, struct backing_buffer *bb)
{
	assert(bb->state == BUFFER_LIVE || bb->state == BUFFER_IDLE);
	buffer_leave(b, bb);
	budget_sub_resident(b->budget, bb->size_bytes);
	backing_buffer_free(bb);
}
