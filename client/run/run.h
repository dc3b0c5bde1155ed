/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Run: what the handlers of notified calls share, and the list of them.
 *
 * A handler answers its call exactly once; see call.h.
 *
 * Ownership: the supervisor owns everything that it points to.
 * Threads:   the struct is immutable while the program runs; each member says
 *            what its own functions allow.
 */

#include "run/call.h"
#include "run/mirror.h"
#include "run/names.h"
#include "run/node.h"
#include "run/pool.h"
#include "run/report.h"
#include "run/source.h"

struct run {
	struct node *node;
	struct source *source;
	struct names *names;
	struct mirror *mirror;
	struct report *report; /* NULL: nobody wants one */
	struct pool *pool;
	pid_t program_pid;
	bool strict;
};

typedef void handler(struct run *run, const struct call *call);

/* Finds the call's handler and runs it; the kernel does what has none. */
void run_dispatch(struct run *run, const struct call *call);

/* paths_open.c, paths_stat.c (and readlink) and paths_access.c (and xattr) */
handler paths_open, paths_creat, paths_openat, paths_openat2;
handler paths_stat, paths_lstat, paths_newfstatat, paths_statx;
handler paths_access, paths_faccessat, paths_readlink, paths_readlinkat;
handler paths_getxattr, paths_lgetxattr, paths_listxattr, paths_llistxattr;

/* ioctls.c */
handler ioctls_ioctl;

/* What ioctls.c asks of the two objects. */
void heap_ioctl(struct run *run, const struct call *call,
		const struct node_object *object);
void buffer_ioctl(struct run *run, const struct call *call,
		  const struct node_object *object);
void sync_file_ioctl(struct run *run, const struct call *call);

/* strict.c: calls on an fd that a dma-buf answers in another way */
handler strict_lseek, strict_read, strict_write, strict_positional;
handler strict_ftruncate, strict_truncate, strict_fallocate, strict_invalid;
handler strict_espipe, strict_sendfile, strict_transfer, strict_fsetxattr;
handler strict_fstat, strict_fcntl;

/* strict_map.c: calls on a range of memory */
handler strict_mmap, strict_madvise, strict_mremap, strict_mincore;
handler strict_futex, strict_vmsplice, strict_process_vm;

/* What strict.c and paths_stat.c share: fstat() of an object of ours. */
bool strict_stat_object(const struct node *node,
			const struct node_object *object, struct stat *ret);
