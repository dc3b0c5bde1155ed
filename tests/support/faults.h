/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Makes calls into the kernel, and those of liburing, fail on demand. Programs
 * that link test_faults have the functions below wrapped by the linker; one
 * that also links test_faults_env takes its faults from the environment:
 *
 *   DMAHEAP_FAULTS="name:every[:errno] ..."   each @every-th call fails, with
 *                                             the number @errno or the one
 *                                             that is usual for the function;
 *                                             "malloc" stands for all memory
 *
 * Units:     calls.
 * Ownership: nothing is kept.
 * Threads:   counts the calls of all threads; arm before they start.
 */

enum fault {
	FAULT_MEMFD_CREATE,
	FAULT_MMAP,
	FAULT_MUNMAP,
	FAULT_MADVISE,
	FAULT_PROCESS_MADVISE, /* syscall() with its number */
	FAULT_FALLOCATE,
	FAULT_SENDMSG,
	FAULT_RECVMSG,
	FAULT_ACCEPT4,
	FAULT_GETSOCKOPT,
	FAULT_EPOLL_CREATE1,
	FAULT_EPOLL_CTL,
	FAULT_EPOLL_WAIT,
	FAULT_INOTIFY_ADD_WATCH,
	FAULT_FTRUNCATE,
	FAULT_PWRITEV,
	FAULT_FSETXATTR,
	FAULT_LEASE, /* fcntl() with F_SETLEASE and F_WRLCK */
	FAULT_CLAIM, /* fcntl() with F_OFD_SETLK */
	FAULT_INOTIFY_INIT1,
	FAULT_EVENTFD,
	FAULT_TIMERFD_CREATE,
	FAULT_PTHREAD_CREATE, /* returns the number */
	FAULT_URING_SETUP,    /* io_uring_queue_init_params() */
	FAULT_URING_REGISTER, /* io_uring_register() */
	FAULT_URING_BUF_RING, /* io_uring_register_buf_ring() */
	FAULT_URING_PROBE,    /* io_uring_get_probe_ring(): NULL */
	FAULT_URING_SUBMIT,   /* io_uring_submit() */
	FAULT_URING_WAIT,     /* io_uring_submit_and_wait_timeout() */
	FAULT_URING_GET_EVENTS,
	FAULT_COUNT_,
};

/* @count calls fail with @err (> 0), after @skip that do not. */
void faults_arm(enum fault fault, unsigned int skip, unsigned int count,
		int err);

/* Every @every-th call fails with @err; 0: none. */
void faults_arm_every(enum fault fault, unsigned int every, int err);

/* None fails any more. */
void faults_clear(void);

/* Return: how many calls have failed since @fault was armed. */
unsigned int faults_hits(enum fault fault);

/* Return: the fault of that name ("sendmsg", "uring_wait"), or
 * FAULT_COUNT_. */
enum fault faults_find(const char *name);

/* Return: the errno that is usual for @fault. */
int faults_usual_errno(enum fault fault);
