/* SPDX-License-Identifier: MIT */
#include "floor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <dmaheap/protocol.h>

#include "bench.h"

#define REQUEST_BYTES                                                          \
	(sizeof(struct dmaheap_header) + sizeof(struct dmaheap_alloc_req))
#define REPLY_BYTES                                                            \
	(sizeof(struct dmaheap_header) + sizeof(struct dmaheap_alloc_reply) +  \
	 sizeof(struct dmaheap_alloc_report))

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* since 6.1 */
#endif
#define HUGE_BYTES ((size_t)2 << 20)

union control {
	char buf[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

struct buffer {
	int own;
	int inotify;
	char path[32];
};

void *floor_map(int fd, size_t len_bytes, int flags)
{
	char *base = mmap(NULL, len_bytes + HUGE_BYTES, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char *p = (char *)(((uintptr_t)base + HUGE_BYTES - 1) &
			   ~(uintptr_t)(HUGE_BYTES - 1));

	if (base == MAP_FAILED ||
	    mmap(p, len_bytes, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_FIXED | flags, fd, 0) == MAP_FAILED)
		bench_fail("mmap");
	if (p > base)
		munmap(base, (size_t)(p - base));
	munmap(p + len_bytes, (size_t)(base + HUGE_BYTES - p));
	return p;
}

static void make_buffer(struct buffer *b, size_t len_bytes)
{
	int fd = memfd_create("floor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	char path[32];
	void *p;

	if (fd < 0 || ftruncate(fd, (off_t)len_bytes) < 0)
		bench_fail("memfd");
	p = floor_map(fd, len_bytes, 0);
	memset(p, 0, len_bytes);
	/* What is large is of 2 MiB folios, where the kernel makes them. */
	if (len_bytes >= HUGE_BYTES)
		(void)madvise(p, len_bytes, MADV_COLLAPSE);
	munmap(p, len_bytes);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	b->own = open(path, O_RDWR | O_CLOEXEC);
	close(fd);
	(void)snprintf(b->path, sizeof(b->path), "/proc/self/fd/%d", b->own);
	if (fcntl(b->own, F_ADD_SEALS,
		  F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		bench_fail("seals");
	b->inotify = inotify_init1(IN_CLOEXEC);
	if (inotify_add_watch(b->inotify, b->path,
			      IN_CLOSE_WRITE | IN_CLOSE_NOWRITE) < 0)
		bench_fail("inotify");
}

static void reply(int sock, int fd)
{
	char bytes[REPLY_BYTES] = "";
	union control control;
	struct iovec iov = {.iov_base = bytes, .iov_len = sizeof(bytes)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control.buf,
			     .msg_controllen = sizeof(control.buf)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	if (sendmsg(sock, &msg, MSG_NOSIGNAL) < 0)
		exit(EXIT_FAILURE);
}

/* Waits until nobody else has the buffer open. */
static void await_release(const struct buffer *b)
{
	_Alignas(struct inotify_event) char events[4096];

	do {
		if (read(b->inotify, events, sizeof(events)) < 0)
			bench_fail("inotify");
		/* The event comes just before the count drops. */
		while (fcntl(b->own, F_SETLEASE, F_WRLCK) < 0 &&
		       errno == EAGAIN)
			;
	} while (fcntl(b->own, F_SETLEASE, F_UNLCK) < 0);
}

static void hand_out(int sock, const struct buffer *b)
{
	int fd = open(b->path, O_RDWR | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		bench_fail("reopen");
	reply(sock, fd);
	close(fd);
}

static _Noreturn void serve(int sock, size_t len_bytes, unsigned int cpu)
{
	char request[REQUEST_BYTES];
	struct buffer b;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGIO, SIG_IGN);
	if (!bench_pin(0, cpu))
		bench_fail("pinning");
	make_buffer(&b, len_bytes);
	while (recv(sock, request, sizeof(request), 0) > 0) {
		hand_out(sock, &b);
		await_release(&b);
	}
	_exit(EXIT_SUCCESS);
}

void floor_start(struct floor_server *f, size_t len_bytes, unsigned int cpu)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		bench_fail("socketpair");
	f->pid = fork();
	if (f->pid < 0)
		bench_fail("fork");
	if (f->pid == 0) {
		close(pair[1]);
		serve(pair[0], len_bytes, cpu);
	}
	close(pair[0]);
	f->sock = pair[1];
}

void floor_stop(struct floor_server *f)
{
	close(f->sock);
	waitpid(f->pid, NULL, 0);
}

struct served {
	int sock;
	bool handed_out;
	struct buffer buffer;
};

/* Return: false once the client is gone. */
static bool serve_one(struct served *s)
{
	char request[REQUEST_BYTES];

	if (recv(s->sock, request, sizeof(request), 0) <= 0)
		return false;
	/* A client closes before it asks again. */
	if (s->handed_out)
		await_release(&s->buffer);
	s->handed_out = true;
	hand_out(s->sock, &s->buffer);
	return true;
}

static _Noreturn void serve_crowd(struct served *served, unsigned int n)
{
	struct epoll_event events[FLOOR_CROWD_MAX];
	int epoll_fd = epoll_create1(EPOLL_CLOEXEC), n_ready;
	unsigned int n_left = n;

	for (unsigned int i = 0; i < n; i++) {
		struct epoll_event e = {.events = EPOLLIN,
					.data.ptr = &served[i]};

		if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, served[i].sock, &e) < 0)
			bench_fail("epoll");
	}
	while (n_left > 0) {
		n_ready = epoll_wait(epoll_fd, events, FLOOR_CROWD_MAX, -1);
		for (int i = 0; i < n_ready; i++) {
			struct served *s = events[i].data.ptr;

			if (serve_one(s))
				continue;
			close(s->sock);
			n_left--;
		}
	}
	_exit(EXIT_SUCCESS);
}

void floor_crowd_start(struct floor_crowd *c, unsigned int n_clients,
		       size_t len_bytes)
{
	struct served served[FLOOR_CROWD_MAX] = {0};
	int pair[2];

	c->n_clients = n_clients;
	for (unsigned int i = 0; i < n_clients; i++) {
		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
			       pair) < 0)
			bench_fail("socketpair");
		served[i].sock = pair[0];
		c->sock[i] = pair[1];
	}
	c->pid = fork();
	if (c->pid < 0)
		bench_fail("fork");
	if (c->pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGIO, SIG_IGN);
		for (unsigned int i = 0; i < n_clients; i++) {
			close(c->sock[i]);
			make_buffer(&served[i].buffer, len_bytes);
		}
		serve_crowd(served, n_clients);
	}
	for (unsigned int i = 0; i < n_clients; i++)
		close(served[i].sock);
}

void floor_crowd_stop(struct floor_crowd *c)
{
	for (unsigned int i = 0; i < c->n_clients; i++)
		close(c->sock[i]);
	waitpid(c->pid, NULL, 0);
}

int floor_alloc(int sock)
{
	char request[REQUEST_BYTES] = "", bytes[REPLY_BYTES];
	union control control;
	struct iovec iov = {.iov_base = bytes, .iov_len = sizeof(bytes)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control.buf,
			     .msg_controllen = sizeof(control.buf)};
	struct cmsghdr *c;
	int fd;

	if (send(sock, request, sizeof(request), MSG_NOSIGNAL) < 0 ||
	    recvmsg(sock, &msg, MSG_CMSG_CLOEXEC) < 0)
		bench_fail("floor");
	c = CMSG_FIRSTHDR(&msg);
	if (!c)
		bench_fail("floor: no fd");
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}
