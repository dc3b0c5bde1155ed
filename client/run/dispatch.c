/* SPDX-License-Identifier: MIT */
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "run/arch.h"
#include "run/run.h"
#include "run/target.h"
#include "run/util.h"

static void watch_exit(struct run *run, const struct call *call)
{
	if (target_tgid(call_tid(call)) == run->program_pid)
		report_exit(run->report, run->program_pid,
			    call->req->data.nr == SYS_exit_group);
	call_continue(call);
}

/* By number; a number without a handler is the kernel's. */
static handler *const handlers[] = {
	[SYS_openat] = paths_openat,
	[SYS_openat2] = paths_openat2,
#ifdef SYS_open
	[SYS_open] = paths_open,
	[SYS_creat] = paths_creat,
	[SYS_stat] = paths_stat,
	[SYS_lstat] = paths_lstat,
	[SYS_access] = paths_access,
	[SYS_readlink] = paths_readlink,
#endif
	[SYS_newfstatat] = paths_newfstatat,
	[SYS_statx] = paths_statx,
	[SYS_faccessat] = paths_faccessat,
	[SYS_faccessat2] = paths_faccessat,
	[SYS_readlinkat] = paths_readlinkat,
	[SYS_getxattr] = paths_getxattr,
	[SYS_lgetxattr] = paths_lgetxattr,
	[SYS_listxattr] = paths_listxattr,
	[SYS_llistxattr] = paths_llistxattr,
	[SYS_ioctl] = ioctls_ioctl,
	[SYS_exit_group] = watch_exit,
	[SYS_exit] = watch_exit,
	[SYS_lseek] = strict_lseek,
	[SYS_read] = strict_read,
	[SYS_readv] = strict_read,
	[SYS_write] = strict_write,
	[SYS_writev] = strict_write,
	[SYS_pread64] = strict_positional,
	[SYS_pwrite64] = strict_positional,
	[SYS_preadv] = strict_positional,
	[SYS_pwritev] = strict_positional,
	[SYS_preadv2] = strict_positional,
	[SYS_pwritev2] = strict_positional,
	[SYS_ftruncate] = strict_ftruncate,
	[SYS_truncate] = strict_truncate,
	[SYS_fallocate] = strict_fallocate,
	[SYS_fsync] = strict_invalid,
	[SYS_fdatasync] = strict_invalid,
	[SYS_readahead] = strict_invalid,
	[SYS_sync_file_range] = strict_espipe,
	[SYS_sendfile] = strict_sendfile,
	[SYS_copy_file_range] = strict_transfer,
	[SYS_splice] = strict_transfer,
	[SYS_fsetxattr] = strict_fsetxattr,
	[SYS_fstat] = strict_fstat,
	[SYS_fcntl] = strict_fcntl,
	[SYS_mmap] = strict_mmap,
	[SYS_madvise] = strict_madvise,
	[SYS_mremap] = strict_mremap,
	[SYS_mincore] = strict_mincore,
	[SYS_futex] = strict_futex,
	[SYS_vmsplice] = strict_vmsplice,
	[SYS_process_vm_readv] = strict_process_vm,
	[SYS_process_vm_writev] = strict_process_vm,
};

static bool is_foreign(const struct seccomp_data *data)
{
#ifdef RUN_X32_BIT
	if ((uint32_t)data->nr >= RUN_X32_BIT)
		return true;
#endif
	return data->arch != RUN_AUDIT_ARCH;
}

/*
 * A program of another architecture lays its structures out in another way. It
 * is ended before its first call does anything, rather than served wrongly.
 */
static void refuse_foreign(const struct call *call)
{
	const struct seccomp_data *data = &call->req->data;
	pid_t pid = target_tgid(call_tid(call));
	char comm[32];

	target_comm(pid, comm, sizeof(comm));
	if (!call_is_alive(call))
		return;
	run_message("process %d (%s) makes %s system calls; dmaheap-run serves "
		    "%s programs only, so it is ended (SIGKILL)",
		    (int)pid, comm,
		    data->arch == RUN_AUDIT_ARCH    ? "x32"
		    : data->arch == AUDIT_ARCH_I386 ? "32-bit (i386)"
		    : data->arch == AUDIT_ARCH_ARM  ? "32-bit (arm)"
						    : "foreign",
		    RUN_ARCH_NAME);
	(void)kill(pid, SIGKILL);
	call_fail(call, ENOSYS);
}

void run_dispatch(struct run *run, const struct call *call)
{
	int nr = call->req->data.nr;

	if (is_foreign(&call->req->data))
		refuse_foreign(call);
	else if (nr >= 0 && (size_t)nr < ARRAY_SIZE(handlers) && handlers[nr])
		handlers[nr](run, call);
	else
		call_continue(call);
}
