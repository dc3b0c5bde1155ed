/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Call: one system call of the program that waits for the supervisor's answer.
 *
 * Each call is answered once: by one of call_continue(), call_return(),
 * call_fail(), call_return_fd(). An answer to a caller that has died meanwhile
 * is lost, which is right.
 *
 * Ownership: the listener is borrowed; fds passed in are borrowed.
 * Threads:   a call belongs to the thread that received it.
 */

#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct call {
	int listener;
	const struct seccomp_notif *req;
};

/* The calling thread, as the supervisor's /proc numbers it. */
static inline pid_t call_tid(const struct call *call)
{
	return (pid_t)call->req->pid;
}

static inline uint64_t call_arg(const struct call *call, unsigned int i)
{
	return call->req->data.args[i];
}

/* An argument that the kernel reads as an int. */
static inline int call_int(const struct call *call, unsigned int i)
{
	return (int)(uint32_t)call->req->data.args[i];
}

/*
 * Whether the caller still waits. What was read of a process by its number is
 * to be trusted only if this says so afterwards: the number may be another's.
 */
bool call_is_alive(const struct call *call);

/* The kernel does the call as if nobody had looked. */
void call_continue(const struct call *call);

void call_return(const struct call *call, int64_t value);

/* @err is an errno, > 0. */
void call_fail(const struct call *call, int err);

/**
 * call_add_fd() - put a copy of @fd at the caller's lowest free number
 * @fd_flags: 0 or O_CLOEXEC
 *
 * The call still needs its answer.
 * Return: the number there, or -EMFILE, -ENOENT (the caller is gone).
 */
int call_add_fd(const struct call *call, int fd, int fd_flags);

/* call_add_fd() and the new number as the answer, at once; or the error. */
void call_return_fd(const struct call *call, int fd, int fd_flags);
