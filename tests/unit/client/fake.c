/* SPDX-License-Identifier: MIT */
#include "unit/client/fake.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define DIE_IF(cond)                                                           \
	do {                                                                   \
		if (cond) {                                                    \
			perror("fake: " #cond);                                \
			abort();                                               \
		}                                                              \
	} while (0)

static char dir[64];

const char *fake_dir(void)
{
	if (!dir[0]) {
		strcpy(dir, "/tmp/dmaheap-fake.XXXXXX");
		DIE_IF(!mkdtemp(dir));
	}
	return dir;
}

void fake_dir_remove(void)
{
	if (dir[0])
		rmdir(dir);
}

unsigned int fake_count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned int n = 0;

	DIE_IF(!d);
	while (readdir(d))
		n++;
	closedir(d);
	return n - 3; /* ".", ".." and the directory itself */
}

bool fake_settle_fds(unsigned int want)
{
	for (unsigned int i = 0; i < 2000; i++) {
		if (fake_count_fds() == want)
			return true;
		usleep(1000);
	}
	return false;
}

int fake_buffer(uint64_t len_bytes, const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	DIE_IF(fd < 0);
	DIE_IF(ftruncate(fd, (off_t)len_bytes) < 0);
	DIE_IF(fcntl(fd, F_ADD_SEALS,
		     F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0);
	return fd;
}

static void answer_hello(struct fake *f)
{
	struct dmaheap_hello_reply hello = {.page_size_bytes = 4096,
					    .instance_id = f->instance_id,
					    .daemon_pid = getpid(),
					    .daemon_version = "fake"};

	memcpy(f->reply.payload, &hello, sizeof(hello));
	f->reply.payload_bytes = sizeof(hello);
}

static void answer_alloc(struct fake *f)
{
	struct dmaheap_alloc_req req;
	struct dmaheap_alloc_reply head = {
		.record_bytes = sizeof(struct dmaheap_alloc_report)};
	uint8_t *at = f->reply.payload + sizeof(head);

	memcpy(&req, f->req.payload, sizeof(req));
	head.n_records = req.count;
	memcpy(f->reply.payload, &head, sizeof(head));
	for (uint32_t i = 0; i < req.count; i++) {
		struct dmaheap_alloc_report report =
			{.id = atomic_fetch_add(&f->n_allocs, 1) + 1,
			 .size_bytes = (req.len_bytes + 4095) & ~4095ull};

		memcpy(at, &report, sizeof(report));
		at += sizeof(report);
		f->reply.fds[f->reply.n_fds++] =
			fake_buffer(report.size_bytes, "dmaheap:system:1");
	}
	f->reply.payload_bytes = (size_t)(at - f->reply.payload);
}

static void answer(struct fake *f)
{
	f->reply.payload_bytes = f->reply.n_fds = f->reply.cut_bytes = 0;
	f->reply.hang_up = f->reply.silent = false;
	f->reply.header = f->req.header;
	f->reply.header.flags = DMAHEAP_F_REPLY;
	if (f->req.header.opcode == DMAHEAP_OP_HELLO)
		answer_hello(f);
	else if (f->req.header.opcode == DMAHEAP_OP_ALLOC)
		answer_alloc(f);
	else if (f->req.header.opcode == DMAHEAP_OP_ADOPT)
		atomic_fetch_add(&f->n_adopted, f->req.header.n_fds);
	f->reply.header.n_fds = (uint32_t)f->reply.n_fds;
	f->reply.header.payload_bytes = (uint32_t)f->reply.payload_bytes;
	if (f->hook)
		f->hook(&f->req, &f->reply, f->ctx);
}

static void send_reply(struct fake *f, int sock)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(FAKE_FDS_MAX * sizeof(int))];
	} control = {0};
	struct iovec iov[2] = {
		{&f->reply.header, sizeof(f->reply.header)},
		{f->reply.payload, f->reply.payload_bytes},
	};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};

	if (f->reply.cut_bytes > 0) {
		iov[0].iov_len = f->reply.cut_bytes;
		msg.msg_iovlen = 1;
	}
	if (f->reply.n_fds > 0) {
		struct cmsghdr *c = &control.align;

		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(f->reply.n_fds * sizeof(int));
		memcpy(CMSG_DATA(c), f->reply.fds,
		       f->reply.n_fds * sizeof(int));
		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(f->reply.n_fds * sizeof(int));
	}
	sendmsg(sock, &msg, MSG_NOSIGNAL);
	for (size_t i = 0; i < f->reply.n_fds; i++)
		close(f->reply.fds[i]);
}

/* Return: false at the end of the connection. */
static bool receive(struct fake *f, int sock)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(FAKE_FDS_MAX * sizeof(int))];
	} control;
	struct iovec iov[2] = {
		{&f->req.header, sizeof(f->req.header)},
		{f->req.payload, sizeof(f->req.payload)},
	};
	struct msghdr msg = {.msg_iov = iov,
			     .msg_iovlen = 2,
			     .msg_control = control.bytes,
			     .msg_controllen = sizeof(control.bytes)};
	struct cmsghdr *c;
	ssize_t n;

	memset(f->req.payload, 0, 256);
	n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	if (n < (ssize_t)sizeof(f->req.header))
		return false;
	f->req.payload_bytes = (size_t)n - sizeof(f->req.header);
	f->req.n_fds = 0;
	c = CMSG_FIRSTHDR(&msg);
	if (c) {
		f->req.n_fds = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(f->req.fds, CMSG_DATA(c), f->req.n_fds * sizeof(int));
	}
	return true;
}

static bool serve(struct fake *f, int sock)
{
	if (!receive(f, sock))
		return false;
	atomic_fetch_add(&f->n_requests, 1);
	answer(f);
	for (size_t i = 0; i < f->req.n_fds; i++)
		close(f->req.fds[i]);
	if (f->reply.hang_up || f->reply.silent) {
		for (size_t i = 0; i < f->reply.n_fds; i++)
			close(f->reply.fds[i]);
		return !f->reply.hang_up;
	}
	send_reply(f, sock);
	return true;
}

static void accept_one(struct fake *f)
{
	for (unsigned int i = 0; i < FAKE_CONNECTIONS_MAX; i++) {
		if (f->connections[i] >= 0)
			continue;
		f->connections[i] =
			accept4(f->listener, NULL, NULL, SOCK_CLOEXEC);
		atomic_fetch_add(&f->n_connections, 1);
		return;
	}
	fprintf(stderr, "fake: too many connections\n");
	abort();
}

static void *run(void *arg)
{
	struct fake *f = arg;

	for (;;) {
		struct pollfd p[2 + FAKE_CONNECTIONS_MAX] =
			{{.fd = f->stop_pipe[0], .events = POLLIN},
			 {.fd = f->listener, .events = POLLIN}};

		for (unsigned int i = 0; i < FAKE_CONNECTIONS_MAX; i++)
			p[2 + i] = (struct pollfd){.fd = f->connections[i],
						   .events = POLLIN};
		poll(p, 2 + FAKE_CONNECTIONS_MAX, -1);
		if (p[0].revents)
			return NULL;
		for (unsigned int i = 0; i < FAKE_CONNECTIONS_MAX; i++) {
			if (p[2 + i].revents && !serve(f, f->connections[i])) {
				close(f->connections[i]);
				f->connections[i] = -1;
			}
		}
		if (p[1].revents)
			accept_one(f);
	}
}

struct fake *fake_start(const char *name, uint64_t instance_id, fake_hook hook,
			void *ctx)
{
	struct fake *f = calloc(1, sizeof(*f));
	struct sockaddr_un addr = {.sun_family = AF_UNIX};

	DIE_IF(!f);
	snprintf(f->path, sizeof(f->path), "%s/%s", fake_dir(), name);
	strcpy(addr.sun_path, f->path);
	f->instance_id = instance_id;
	f->hook = hook;
	f->ctx = ctx;
	for (unsigned int i = 0; i < FAKE_CONNECTIONS_MAX; i++)
		f->connections[i] = -1;
	f->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	DIE_IF(f->listener < 0);
	unlink(f->path);
	DIE_IF(bind(f->listener, (struct sockaddr *)&addr, sizeof(addr)) < 0);
	DIE_IF(listen(f->listener, 16) < 0);
	DIE_IF(pipe2(f->stop_pipe, O_CLOEXEC) < 0);
	DIE_IF(pthread_create(&f->thread, NULL, run, f) != 0);
	return f;
}

struct fake *fake_stop(struct fake *f)
{
	DIE_IF(write(f->stop_pipe[1], "", 1) != 1);
	pthread_join(f->thread, NULL);
	for (unsigned int i = 0; i < FAKE_CONNECTIONS_MAX; i++)
		if (f->connections[i] >= 0)
			close(f->connections[i]);
	close(f->listener);
	close(f->stop_pipe[0]);
	close(f->stop_pipe[1]);
	unlink(f->path);
	free(f);
	return NULL;
}
