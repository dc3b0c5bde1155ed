/* SPDX-License-Identifier: MIT */
#include "support/raw.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define FDS_MAX 253 /* SCM_MAX_FD */

int raw_connect(const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -errno;
}

int raw_send(int sock, const void *bytes, size_t n_bytes, const int *fds,
	     size_t n_fds)
{
	union {
		char buf[CMSG_SPACE(FDS_MAX * sizeof(int))];
		struct cmsghdr align;
	} u;
	struct iovec iov = {.iov_base = (void *)(uintptr_t)bytes,
			    .iov_len = n_bytes};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *h;

	if (n_fds) {
		memset(&u, 0, sizeof(u));
		m.msg_control = u.buf;
		m.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		h = CMSG_FIRSTHDR(&m);
		h->cmsg_level = SOL_SOCKET;
		h->cmsg_type = SCM_RIGHTS;
		h->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(h), fds, n_fds * sizeof(int));
	}
	return sendmsg(sock, &m, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int raw_receive_fd(int sock)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} u;
	char byte;
	struct iovec iov = {.iov_base = &byte, .iov_len = 1};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = u.buf,
			   .msg_controllen = sizeof(u.buf)};
	int fd;

	if (recvmsg(sock, &m, MSG_CMSG_CLOEXEC) != 1 || !CMSG_FIRSTHDR(&m))
		return -1;
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
	return fd;
}

int raw_request(int sock, uint16_t opcode, const void *payload, size_t n_bytes,
		const int *fds, size_t n_fds)
{
	char packet[DMAHEAP_MESSAGE_MAX_BYTES];
	struct dmaheap_header h = {
		.magic = DMAHEAP_PROTOCOL_MAGIC,
		.version = DMAHEAP_PROTOCOL_VERSION,
		.opcode = opcode,
		.payload_bytes = (uint32_t)n_bytes,
		.seq = 1,
		.n_fds = (uint32_t)n_fds,
	};

	memcpy(packet, &h, sizeof(h));
	if (n_bytes)
		memcpy(packet + sizeof(h), payload, n_bytes);
	return raw_send(sock, packet, sizeof(h) + n_bytes, fds, n_fds);
}

int raw_receive(int sock, struct raw_reply *ret)
{
	union {
		char buf[CMSG_SPACE(FDS_MAX * sizeof(int))];
		struct cmsghdr align;
	} u;
	struct iovec iov[] = {
		{.iov_base = &ret->header, .iov_len = sizeof(ret->header)},
		{.iov_base = ret->payload, .iov_len = sizeof(ret->payload)},
	};
	struct msghdr m = {.msg_iov = iov,
			   .msg_iovlen = 2,
			   .msg_control = u.buf,
			   .msg_controllen = sizeof(u.buf)};
	ssize_t n = recvmsg(sock, &m, MSG_CMSG_CLOEXEC);
	struct cmsghdr *h;

	ret->payload_bytes = 0;
	ret->n_fds = 0;
	if (n < 0)
		return -errno;
	h = CMSG_FIRSTHDR(&m);
	if (h && h->cmsg_type == SCM_RIGHTS) {
		ret->n_fds = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(ret->fds, CMSG_DATA(h), ret->n_fds * sizeof(int));
	}
	if ((size_t)n < sizeof(ret->header))
		return -ECONNRESET;
	ret->payload_bytes = (size_t)n - sizeof(ret->header);
	return 0;
}

int raw_call(int sock, uint16_t opcode, const void *payload, size_t n_bytes,
	     struct raw_reply *ret)
{
	int r = raw_request(sock, opcode, payload, n_bytes, NULL, 0);

	if (!r)
		r = raw_receive(sock, ret);
	return r ? r : ret->header.status;
}

int raw_open(const char *path)
{
	static struct raw_reply reply;
	struct dmaheap_hello_req hello = {.client_name = "raw"};
	int sock = raw_connect(path), r;

	if (sock < 0)
		return sock;
	r = raw_call(sock, DMAHEAP_OP_HELLO, &hello, sizeof(hello), &reply);
	if (!r)
		return sock;
	close(sock);
	return r;
}
