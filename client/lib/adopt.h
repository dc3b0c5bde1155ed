/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Adopt: hands this process's live buffers to a daemon that was started after
 * the one that made them.
 *
 * Found are: every fd of /proc/self/fd that is a memfd of a dmaheapd and is not
 * known to come from another daemon's socket, also one received from another
 * process; and buffers of which only a mapping is left, where the kernel lets
 * us open /proc/self/map_files (CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE). Not
 * found are fds in flight and, without that right, bare mappings: their memory
 * stays valid until the last reference goes, outside the new daemon's books.
 *
 * Ownership: fds are duplicated for the length of one request only.
 * Threads:   the handle is locked by the caller; other threads may open and
 *            close fds meanwhile.
 */

#include "lib/macros.h"

struct dmaheap;

/**
 * adopt_all() - hand over what is found
 *
 * A buffer that the daemon refuses stays usable and is not in its books.
 *
 * Return: 0, -EMFILE (no free fd to search with), -ENOMEM, or the errors of
 * handle_exchange().
 */
int adopt_all(struct dmaheap *dh) _must_check_;
