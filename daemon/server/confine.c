/* SPDX-License-Identifier: MIT */
#include "server/confine.h"

#include <errno.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "base/err.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CONFINE_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define CONFINE_SANITIZED 1
#endif
#endif
#ifndef CONFINE_SANITIZED
#define CONFINE_SANITIZED 0
#endif

/* Calls with any arguments. */
static const int allowed[] = {
	/* the loops */
	SCMP_SYS(io_uring_enter),
	SCMP_SYS(io_uring_register),
	SCMP_SYS(epoll_create1),
	SCMP_SYS(epoll_ctl),
	SCMP_SYS(epoll_wait),
	SCMP_SYS(epoll_pwait),
	SCMP_SYS(epoll_pwait2),
	SCMP_SYS(poll),
	SCMP_SYS(ppoll),
	SCMP_SYS(timerfd_create),
	SCMP_SYS(timerfd_settime),
	SCMP_SYS(eventfd2),
	/* connections */
	SCMP_SYS(accept4),
	SCMP_SYS(sendmsg),
	SCMP_SYS(recvmsg),
	SCMP_SYS(sendto),
	SCMP_SYS(recvfrom),
	SCMP_SYS(getsockopt),
	SCMP_SYS(setsockopt),
	SCMP_SYS(shutdown),
	SCMP_SYS(ioctl),
	SCMP_SYS(pidfd_open),
	SCMP_SYS(pipe2),
	/* files and memfds */
	SCMP_SYS(openat),
	SCMP_SYS(open),
	SCMP_SYS(close),
	SCMP_SYS(read),
	SCMP_SYS(write),
	SCMP_SYS(readv),
	SCMP_SYS(writev),
	SCMP_SYS(pread64),
	SCMP_SYS(pwrite64),
	SCMP_SYS(pwritev),
	SCMP_SYS(lseek),
	SCMP_SYS(fstat),
	SCMP_SYS(stat),
	SCMP_SYS(lstat),
	SCMP_SYS(newfstatat),
	SCMP_SYS(statx),
	SCMP_SYS(fstatfs),
	SCMP_SYS(access),
	SCMP_SYS(faccessat),
	SCMP_SYS(faccessat2),
	SCMP_SYS(readlink),
	SCMP_SYS(readlinkat),
	SCMP_SYS(getdents64),
	SCMP_SYS(unlink),
	SCMP_SYS(unlinkat),
	SCMP_SYS(fcntl),
	SCMP_SYS(dup3),
	SCMP_SYS(memfd_create),
	SCMP_SYS(ftruncate),
	SCMP_SYS(fallocate),
	SCMP_SYS(fchmod),
	SCMP_SYS(fsetxattr),
	SCMP_SYS(fgetxattr),
	SCMP_SYS(flistxattr),
	SCMP_SYS(inotify_init1),
	SCMP_SYS(inotify_add_watch),
	SCMP_SYS(inotify_rm_watch),
	/* memory, threads, time */
	SCMP_SYS(munmap),
	SCMP_SYS(mremap),
	SCMP_SYS(madvise),
	SCMP_SYS(brk),
	SCMP_SYS(mincore),
	SCMP_SYS(futex),
	SCMP_SYS(sched_yield),
	SCMP_SYS(set_robust_list),
	SCMP_SYS(rseq),
	SCMP_SYS(restart_syscall),
	SCMP_SYS(clock_gettime),
	SCMP_SYS(clock_getres),
	SCMP_SYS(clock_nanosleep),
	SCMP_SYS(nanosleep),
	SCMP_SYS(gettimeofday),
	SCMP_SYS(time),
	SCMP_SYS(getrandom),
	SCMP_SYS(getpid),
	SCMP_SYS(gettid),
	SCMP_SYS(geteuid),
	SCMP_SYS(getuid),
	SCMP_SYS(getrusage),
	SCMP_SYS(prlimit64),
	SCMP_SYS(sysinfo),
	SCMP_SYS(uname),
	/* a worker makes itself idle when it begins */
	SCMP_SYS(sched_setscheduler),
	SCMP_SYS(setpriority),
	/* signals and the end */
	SCMP_SYS(rt_sigreturn),
	SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(rt_sigaction),
	SCMP_SYS(sigaltstack),
	SCMP_SYS(tgkill),
	SCMP_SYS(exit),
	SCMP_SYS(exit_group),
};

static int allow_calls(scmp_filter_ctx ctx)
{
	for (size_t i = 0; i < ARRAY_SIZE(allowed); i++) {
		int r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, allowed[i], 0);

		/* A call that this architecture does not have needs no rule. */
		if (r < 0 && r != -EDOM)
			return err_raise(r);
	}
	return 0;
}

/* Memory that is never executable, sockets that stay on this machine, and one
 * question. */
static int allow_with_arguments(scmp_filter_ctx ctx)
{
	const struct scmp_arg_cmp no_exec =
		SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0);
	const struct scmp_arg_cmp local = SCMP_A0(SCMP_CMP_EQ, AF_UNIX, 0);
	/* Asked when the kernel makes no 2 MiB folios any more. */
	const struct scmp_arg_cmp get_thp =
		SCMP_A0(SCMP_CMP_EQ, PR_GET_THP_DISABLE, 0);
	int r;

	r = seccomp_rule_add_array(ctx, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1,
				   &no_exec);
	if (!r)
		r = seccomp_rule_add_array(ctx, SCMP_ACT_ALLOW,
					   SCMP_SYS(mprotect), 1, &no_exec);
	if (!r)
		r = seccomp_rule_add_array(ctx, SCMP_ACT_ALLOW,
					   SCMP_SYS(socket), 1, &local);
	if (!r)
		r = seccomp_rule_add_array(ctx, SCMP_ACT_ALLOW, SCMP_SYS(prctl),
					   1, &get_thp);
	return r < 0 ? err_raise(r) : 0;
}

int confine_process(enum confine_mode mode)
{
	scmp_filter_ctx ctx;
	int r;

	if (mode == CONFINE_OFF)
		return 0;
	if (CONFINE_SANITIZED)
		return err_raise(-EOPNOTSUPP);
	ctx = seccomp_init(mode == CONFINE_KILL ? SCMP_ACT_KILL_PROCESS
						: SCMP_ACT_ERRNO(EPERM));
	if (!ctx)
		return err_raise(-ENOMEM);
	r = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_TSYNC, 1);
	if (!r)
		r = allow_calls(ctx);
	if (!r)
		r = allow_with_arguments(ctx);
	if (!r)
		r = seccomp_load(ctx);
	seccomp_release(ctx);
	return r < 0 ? err_raise(r) : 0;
}
