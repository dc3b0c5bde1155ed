/* SPDX-License-Identifier: MIT */
#include "support/faults.h"

#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

static struct {
	_Atomic unsigned int calls;
	_Atomic unsigned int hits;
	_Atomic unsigned int skip;
	_Atomic unsigned int count;
	_Atomic unsigned int every;
	_Atomic int err;
} armed[FAULT_COUNT_];

static const struct {
	const char *name;
	int err;
} faults[FAULT_COUNT_] = {
	[FAULT_MEMFD_CREATE] = {"memfd_create", EMFILE},
	[FAULT_MMAP] = {"mmap", ENOMEM},
	[FAULT_MUNMAP] = {"munmap", ENOMEM},
	[FAULT_MADVISE] = {"madvise", ENOMEM},
	[FAULT_PROCESS_MADVISE] = {"process_madvise", EINVAL},
	[FAULT_FALLOCATE] = {"fallocate", ENOMEM},
	[FAULT_SENDMSG] = {"sendmsg", EAGAIN},
	[FAULT_RECVMSG] = {"recvmsg", ENOMEM},
	[FAULT_ACCEPT4] = {"accept4", EMFILE},
	[FAULT_GETSOCKOPT] = {"getsockopt", ENOBUFS},
	[FAULT_EPOLL_CREATE1] = {"epoll_create1", EMFILE},
	[FAULT_EPOLL_CTL] = {"epoll_ctl", ENOMEM},
	[FAULT_EPOLL_WAIT] = {"epoll_wait", EINTR},
	[FAULT_INOTIFY_ADD_WATCH] = {"inotify_add_watch", ENOSPC},
	[FAULT_FTRUNCATE] = {"ftruncate", EFBIG},
	[FAULT_PWRITEV] = {"pwritev", ENOSPC},
	[FAULT_FSETXATTR] = {"fsetxattr", EOPNOTSUPP},
	[FAULT_LEASE] = {"lease", EACCES},
	[FAULT_CLAIM] = {"claim", ENOLCK},
	[FAULT_INOTIFY_INIT1] = {"inotify_init1", EMFILE},
	[FAULT_EVENTFD] = {"eventfd", EMFILE},
	[FAULT_TIMERFD_CREATE] = {"timerfd_create", EMFILE},
	[FAULT_PTHREAD_CREATE] = {"pthread_create", EAGAIN},
	[FAULT_URING_SETUP] = {"uring_setup", EPERM},
	[FAULT_URING_REGISTER] = {"uring_register", EINVAL},
	[FAULT_URING_BUF_RING] = {"uring_buf_ring", EINVAL},
	[FAULT_URING_PROBE] = {"uring_probe", EINVAL},
	[FAULT_URING_SUBMIT] = {"uring_submit", EAGAIN},
	[FAULT_URING_WAIT] = {"uring_wait", EAGAIN},
	[FAULT_URING_GET_EVENTS] = {"uring_get_events", EPERM},
};

static void arm(enum fault fault, unsigned int skip, unsigned int count,
		unsigned int every, int err)
{
	armed[fault].calls = 0;
	armed[fault].hits = 0;
	armed[fault].skip = skip;
	armed[fault].count = count;
	armed[fault].every = every;
	armed[fault].err = err;
}

void faults_arm(enum fault fault, unsigned int skip, unsigned int count,
		int err)
{
	arm(fault, skip, count, 0, err);
}

void faults_arm_every(enum fault fault, unsigned int every, int err)
{
	arm(fault, 0, 0, every, err);
}

void faults_clear(void)
{
	for (int i = 0; i < FAULT_COUNT_; i++) {
		armed[i].count = 0;
		armed[i].every = 0;
	}
}

unsigned int faults_hits(enum fault fault)
{
	return armed[fault].hits;
}

enum fault faults_find(const char *name)
{
	int i = 0;

	while (i < FAULT_COUNT_ && strcmp(faults[i].name, name) != 0)
		i++;
	return (enum fault)i;
}

int faults_usual_errno(enum fault fault)
{
	return faults[fault].err;
}

static bool fails(enum fault fault)
{
	unsigned int n = armed[fault].calls++;
	bool hit = armed[fault].every
			   ? n % armed[fault].every == armed[fault].every - 1
			   : n >= armed[fault].skip &&
				     n - armed[fault].skip < armed[fault].count;

	if (hit) {
		armed[fault].hits++;
		errno = armed[fault].err;
	}
	return hit;
}

/* A function of libc fails with @bad and errno. */
#define WRAP(fault, type, bad, name, params, args)                             \
	type __real_##name params;                                             \
	type __wrap_##name params;                                             \
	type __wrap_##name params                                              \
	{                                                                      \
		return fails(fault) ? (bad) : __real_##name args;              \
	}                                                                      \
	_Static_assert(1, "")

WRAP(FAULT_MEMFD_CREATE, int, -1, memfd_create,
     (const char *name, unsigned int flags), (name, flags));
WRAP(FAULT_MMAP, void *, MAP_FAILED, mmap,
     (void *at, size_t n, int prot, int flags, int fd, off_t offset),
     (at, n, prot, flags, fd, offset));
WRAP(FAULT_MUNMAP, int, -1, munmap, (void *at, size_t n), (at, n));
WRAP(FAULT_MADVISE, int, -1, madvise, (void *at, size_t n, int advice),
     (at, n, advice));
WRAP(FAULT_FALLOCATE, int, -1, fallocate,
     (int fd, int mode, off_t offset, off_t n), (fd, mode, offset, n));
WRAP(FAULT_SENDMSG, ssize_t, -1, sendmsg,
     (int fd, const struct msghdr *msg, int flags), (fd, msg, flags));
WRAP(FAULT_RECVMSG, ssize_t, -1, recvmsg,
     (int fd, struct msghdr *msg, int flags), (fd, msg, flags));
WRAP(FAULT_ACCEPT4, int, -1, accept4,
     (int fd, struct sockaddr *address, socklen_t *n, int flags),
     (fd, address, n, flags));
WRAP(FAULT_GETSOCKOPT, int, -1, getsockopt,
     (int fd, int level, int name, void *value, socklen_t *n),
     (fd, level, name, value, n));
WRAP(FAULT_EPOLL_CREATE1, int, -1, epoll_create1, (int flags), (flags));
WRAP(FAULT_EPOLL_CTL, int, -1, epoll_ctl,
     (int epoll_fd, int op, int fd, struct epoll_event *event),
     (epoll_fd, op, fd, event));
WRAP(FAULT_EPOLL_WAIT, int, -1, epoll_wait,
     (int epoll_fd, struct epoll_event *events, int n, int timeout),
     (epoll_fd, events, n, timeout));
WRAP(FAULT_INOTIFY_ADD_WATCH, int, -1, inotify_add_watch,
     (int fd, const char *path, uint32_t mask), (fd, path, mask));

WRAP(FAULT_FTRUNCATE, int, -1, ftruncate, (int fd, off_t size), (fd, size));
WRAP(FAULT_PWRITEV, ssize_t, -1, pwritev,
     (int fd, const struct iovec *iov, int n, off_t offset),
     (fd, iov, n, offset));
WRAP(FAULT_FSETXATTR, int, -1, fsetxattr,
     (int fd, const char *name, const void *value, size_t n, int flags),
     (fd, name, value, n, flags));
WRAP(FAULT_INOTIFY_INIT1, int, -1, inotify_init1, (int flags), (flags));
WRAP(FAULT_EVENTFD, int, -1, eventfd, (unsigned int value, int flags),
     (value, flags));
WRAP(FAULT_TIMERFD_CREATE, int, -1, timerfd_create, (int clock, int flags),
     (clock, flags));
WRAP(FAULT_PTHREAD_CREATE, int, errno, pthread_create,
     (pthread_t * thread, const pthread_attr_t *attr, void *(*fn)(void *),
      void *arg),
     (thread, attr, fn, arg));

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
	long arg[6];
	va_list args;

	/* As libc's own does: what was not passed is not looked at. */
	va_start(args, number);
	for (int i = 0; i < 6; i++)
		arg[i] = va_arg(args, long);
	va_end(args);
	if (number == SYS_process_madvise && fails(FAULT_PROCESS_MADVISE))
		return -1;
	return __real_syscall(number, arg[0], arg[1], arg[2], arg[3], arg[4],
			      arg[5]);
}

int __real_fcntl(int fd, int cmd, ...);
int __wrap_fcntl(int fd, int cmd, ...);
int __wrap_fcntl(int fd, int cmd, ...)
{
	va_list ap;
	void *arg;

	va_start(ap, cmd);
	arg = va_arg(ap, void *); /* wide enough for every command's */
	va_end(ap);
	if (cmd == F_SETLEASE && (int)(intptr_t)arg == F_WRLCK &&
	    fails(FAULT_LEASE))
		return -1;
	if (cmd == F_OFD_SETLK && fails(FAULT_CLAIM))
		return -1;
	return __real_fcntl(fd, cmd, arg);
}

/* Those of liburing return a negated errno. */
WRAP(FAULT_URING_SETUP, int, -errno, io_uring_queue_init_params,
     (unsigned int entries, struct io_uring *ring,
      struct io_uring_params *params),
     (entries, ring, params));
WRAP(FAULT_URING_REGISTER, int, -errno, io_uring_register,
     (unsigned int fd, unsigned int opcode, const void *arg, unsigned int n),
     (fd, opcode, arg, n));
WRAP(FAULT_URING_BUF_RING, int, -errno, io_uring_register_buf_ring,
     (struct io_uring * ring, struct io_uring_buf_reg *reg, unsigned int flags),
     (ring, reg, flags));
WRAP(FAULT_URING_PROBE, struct io_uring_probe *, NULL, io_uring_get_probe_ring,
     (struct io_uring * ring), (ring));
WRAP(FAULT_URING_SUBMIT, int, -errno, io_uring_submit, (struct io_uring * ring),
     (ring));
WRAP(FAULT_URING_WAIT, int, -errno, io_uring_submit_and_wait_timeout,
     (struct io_uring * ring, struct io_uring_cqe **cqe, unsigned int n,
      struct __kernel_timespec *timeout, sigset_t *sigmask),
     (ring, cqe, n, timeout, sigmask));
WRAP(FAULT_URING_GET_EVENTS, int, -errno, io_uring_get_events,
     (struct io_uring * ring), (ring));
