/* SPDX-License-Identifier: MIT */
#include "run/target.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "run/util.h"

#define PAGE_BYTES 4096u /* the smallest; only a step width */

int target_read(pid_t tid, uint64_t address, void *to, size_t n_bytes)
{
	struct iovec local = {to, n_bytes};
	struct iovec remote = {(void *)(uintptr_t)address, n_bytes};
	ssize_t n;

	if (n_bytes == 0)
		return 0;
	n = process_vm_readv(tid, &local, 1, &remote, 1, 0);
	if (n < 0)
		return -errno;
	return (size_t)n == n_bytes ? 0 : -EFAULT;
}

int target_write(pid_t tid, uint64_t address, const void *from, size_t n_bytes)
{
	struct iovec local = {(void *)(uintptr_t)from, n_bytes};
	struct iovec remote = {(void *)(uintptr_t)address, n_bytes};
	ssize_t n;

	if (n_bytes == 0)
		return 0;
	n = process_vm_writev(tid, &local, 1, &remote, 1, 0);
	if (n < 0)
		return -errno;
	return (size_t)n == n_bytes ? 0 : -EFAULT;
}

int target_read_string(pid_t tid, uint64_t address, char *to,
		       size_t capacity_bytes)
{
	size_t used = 0;

	/* Page by page: the string may end just before unreadable memory. */
	while (used < capacity_bytes) {
		size_t step = PAGE_BYTES - (address + used) % PAGE_BYTES;
		const char *end;
		int r;

		if (step > capacity_bytes - used)
			step = capacity_bytes - used;
		r = target_read(tid, address + used, to + used, step);
		if (r)
			return r;
		end = memchr(to + used, '\0', step);
		if (end)
			return (int)(end - to);
		used += step;
	}
	return -ENAMETOOLONG;
}

int target_read_link(pid_t tid, const char *what, char *to,
		     size_t capacity_bytes)
{
	char path[64];
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)tid, what);
	n = readlink(path, to, capacity_bytes - 1);
	if (n < 0)
		return -errno;
	to[n] = '\0';
	return (int)n;
}

int target_fd_link(pid_t tid, int fd, char *to, size_t capacity_bytes)
{
	char what[32];

	(void)snprintf(what, sizeof(what), "fd/%d", fd);
	return target_read_link(tid, what, to, capacity_bytes);
}

int target_fd_stat(pid_t tid, int fd, struct stat *ret)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)tid, fd);
	return stat(path, ret) ? -errno : 0;
}

/* The whole of a small file of /proc, NUL-terminated and cut at the capacity.
 */
static int read_proc(pid_t tid, const char *what, char *to,
		     size_t capacity_bytes)
{
	_cleanup_(fd_closep) int fd = -1;
	char path[64];
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)tid, what);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, to, capacity_bytes - 1);
	if (n < 0)
		return -errno;
	to[n] = '\0';
	return 0;
}

int target_fd_flags(pid_t tid, int fd, unsigned int *ret_flags)
{
	char what[32], text[1024];
	const char *at;
	int r;

	(void)snprintf(what, sizeof(what), "fdinfo/%d", fd);
	r = read_proc(tid, what, text, sizeof(text));
	if (r)
		return r;
	at = strstr(text, "flags:");
	if (!at)
		return -EINVAL;
	*ret_flags = (unsigned int)strtoul(at + strlen("flags:"), NULL, 8);
	return 0;
}

int target_status(pid_t tid, const char *key, long *ret)
{
	return target_status_field(tid, key, 0, ret);
}

int target_status_field(pid_t tid, const char *key, unsigned int index,
			long *ret)
{
	char text[4096], *next;
	const char *at = text;
	size_t key_length = strlen(key);
	int r;

	r = read_proc(tid, "status", text, sizeof(text));
	if (r)
		return r;
	while (at && (strncmp(at, key, key_length) || at[key_length] != ':')) {
		at = strchr(at, '\n');
		at = at ? at + 1 : NULL;
	}
	if (!at)
		return -ENOENT;
	next = text + (at - text) + key_length + 1;
	do
		*ret = strtol(next, &next, 10);
	while (index-- > 0);
	return 0;
}

pid_t target_tgid(pid_t tid)
{
	long tgid;

	return target_status(tid, "Tgid", &tgid) ? tid : (pid_t)tgid;
}

int target_fd_copy(pid_t tid, int fd)
{
	_cleanup_(fd_closep) int pidfd = -1;
	long copy;

	/* Threads share their descriptors, but for rare ones; see fd_link. */
	pidfd = (int)syscall(SYS_pidfd_open, tid, 0);
	if (pidfd < 0)
		pidfd = (int)syscall(SYS_pidfd_open, target_tgid(tid), 0);
	if (pidfd < 0)
		return -errno;
	copy = syscall(SYS_pidfd_getfd, pidfd, fd, 0);
	return copy < 0 ? -errno : (int)copy;
}

void target_comm(pid_t tid, char *to, size_t capacity_bytes)
{
	if (read_proc(tid, "comm", to, capacity_bytes))
		(void)snprintf(to, capacity_bytes, "?");
	to[strcspn(to, "\n")] = '\0';
}
