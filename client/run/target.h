/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Target: a process of the run as the supervisor sees it: its memory, its
 * descriptors, its directories.
 *
 * Memory goes through process_vm_readv() and process_vm_writev(), which honour
 * the pages' protection as the kernel's own copying does; /proc/PID/mem would
 * write to read-only memory.
 *
 * Everything here races with the death of the process: see call_is_alive().
 *
 * Units:     *_bytes.
 * Ownership: fds returned are the caller's.
 * Threads:   no state.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Return: 0; -EFAULT unless all of it could be read; -EPERM, -ESRCH. */
int target_read(pid_t tid, uint64_t address, void *to, size_t n_bytes);

/* Return: 0; -EFAULT unless all of it could be written; -EPERM, -ESRCH. */
int target_write(pid_t tid, uint64_t address, const void *from, size_t n_bytes);

/**
 * target_read_string() - copy a string
 * @capacity_bytes: of @to, with the NUL
 *
 * Return: its length; -EFAULT (not readable up to its NUL), -ENAMETOOLONG (no
 * NUL within the capacity), -EPERM, -ESRCH.
 */
int target_read_string(pid_t tid, uint64_t address, char *to,
		       size_t capacity_bytes);

/**
 * target_read_link() - readlink() of /proc/<tid>/<what>
 *
 * Return: the length, NUL-terminated, cut at the capacity; or a negated errno.
 */
int target_read_link(pid_t tid, const char *what, char *to,
		     size_t capacity_bytes);

/* target_read_link() of fd @fd. */
int target_fd_link(pid_t tid, int fd, char *to, size_t capacity_bytes);

/* stat() of what fd @fd is open on. Return: 0 or a negated errno. */
int target_fd_stat(pid_t tid, int fd, struct stat *ret);

/* The status flags of fd @fd as /proc shows them, O_CLOEXEC among them. */
int target_fd_flags(pid_t tid, int fd, unsigned int *ret_flags);

/* Return: a copy of the target's fd @fd (close-on-exec), or a negated errno. */
int target_fd_copy(pid_t tid, int fd);

/* The number after "@key:" in /proc/<tid>/status. Return: 0 or negated errno.
 */
int target_status(pid_t tid, const char *key, long *ret);

/* The same for the number at @index, 0 for the first. */
int target_status_field(pid_t tid, const char *key, unsigned int index,
			long *ret);

/* The process that thread @tid belongs to; @tid itself when it is gone. */
pid_t target_tgid(pid_t tid);

/* The thread's name, for messages; "?" when it is gone. */
void target_comm(pid_t tid, char *to, size_t capacity_bytes);
