/* SPDX-License-Identifier: MIT */
#include "lib/wire.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the wire is little-endian and so must this machine be"
#endif

#define ERRNO_MAX 4095

union wire_control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(WIRE_FDS_MAX * sizeof(int))];
};

static bool is_gone(int err)
{
	return err == EPIPE || err == ECONNRESET || err == ENOTCONN ||
	       err == ECONNREFUSED;
}

static void attach_fds(struct msghdr *msg, union wire_control *control,
		       const int *fds, size_t n_fds)
{
	struct cmsghdr *cmsg = &control->align; /* the first and only one */

	msg->msg_control = control->bytes;
	msg->msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
	memcpy(CMSG_DATA(cmsg), fds, n_fds * sizeof(int));
}

int wire_send(int sock, const struct wire_request *req, uint64_t seq)
{
	struct dmaheap_header header = {
		.magic = DMAHEAP_PROTOCOL_MAGIC,
		.version = DMAHEAP_PROTOCOL_VERSION,
		.opcode = req->opcode,
		.payload_bytes = (uint32_t)req->payload_bytes,
		.seq = seq,
		.n_fds = (uint32_t)req->n_fds,
	};
	struct iovec iov[2] = {
		{.iov_base = &header, .iov_len = sizeof(header)},
		{.iov_base = (void *)(uintptr_t)req->payload,
		 .iov_len = req->payload_bytes},
	};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};
	union wire_control control = {0};
	ssize_t n;

	if (req->n_fds > 0)
		attach_fds(&msg, &control, req->fds, req->n_fds);
	do {
		n = sendmsg(sock, &msg, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return is_gone(errno) ? -ECONNRESET : -errno;
	return 0; /* a packet goes as a whole or not at all */
}

/* Moves the fds of every SCM_RIGHTS message into @reply. */
static void collect_fds(struct msghdr *msg, struct wire_reply *reply)
{
	struct cmsghdr *cmsg;

	for (cmsg = CMSG_FIRSTHDR(msg); cmsg; cmsg = CMSG_NXTHDR(msg, cmsg)) {
		size_t n;

		if (cmsg->cmsg_level != SOL_SOCKET ||
		    cmsg->cmsg_type != SCM_RIGHTS)
			continue;
		/* The control buffer has no room for more than the array. */
		n = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(reply->fds + reply->n_fds, CMSG_DATA(cmsg),
		       n * sizeof(int));
		reply->n_fds += n;
	}
}

void wire_close_fds(struct wire_reply *reply)
{
	for (size_t i = 0; i < reply->n_fds; i++)
		if (reply->fds[i] >= 0)
			close(reply->fds[i]);
	reply->n_fds = 0;
}

/* A connection is refused before any request was read, hence with seq 0. */
static bool is_refusal(const struct dmaheap_header *h)
{
	return h->opcode == DMAHEAP_OP_HELLO && h->seq == 0 && h->status < 0;
}

static bool header_is_good(const struct dmaheap_header *h, uint16_t opcode,
			   uint64_t seq, size_t payload_bytes, size_t n_fds)
{
	return h->magic == DMAHEAP_PROTOCOL_MAGIC &&
	       h->version == DMAHEAP_PROTOCOL_VERSION && h->opcode == opcode &&
	       h->flags == DMAHEAP_F_REPLY &&
	       h->payload_bytes == payload_bytes &&
	       (h->seq == seq || is_refusal(h)) && h->n_fds == n_fds &&
	       h->status <= 0 && h->status >= -ERRNO_MAX;
}

/* Turns one received packet into @reply, or says what is wrong with it. */
static int parse_reply(const struct msghdr *msg, size_t n_bytes,
		       uint16_t opcode, uint64_t seq, struct wire_reply *reply)
{
	const uint8_t *bytes = msg->msg_iov->iov_base;
	struct dmaheap_header header;

	if (n_bytes < sizeof(header) || (msg->msg_flags & MSG_TRUNC))
		return -EPROTO;
	/* Before the count is compared: it cannot be right here. */
	if (msg->msg_flags & MSG_CTRUNC)
		return -EMFILE;
	memcpy(&header, bytes, sizeof(header));
	if (!header_is_good(&header, opcode, seq, n_bytes - sizeof(header),
			    reply->n_fds))
		return -EPROTO;
	reply->status = header.status;
	reply->payload = bytes + sizeof(header);
	reply->payload_bytes = n_bytes - sizeof(header);
	return 0;
}

static ssize_t receive(int sock, struct msghdr *msg)
{
	ssize_t n;

	do {
		n = recvmsg(sock, msg, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	return n;
}

int wire_receive(int sock, uint16_t opcode, uint64_t seq, void *buffer,
		 struct wire_reply *ret)
{
	struct iovec iov = {.iov_base = buffer,
			    .iov_len = DMAHEAP_MESSAGE_MAX_BYTES};
	union wire_control control;
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control.bytes,
			     .msg_controllen = sizeof(control.bytes)};
	struct wire_reply reply = {0};
	ssize_t n;
	int r;

	n = receive(sock, &msg);
	/* One who closes with something unread resets first; what was sent
	 * before that is still here. */
	if (n < 0 && errno == ECONNRESET)
		n = receive(sock, &msg);
	if (n < 0)
		return is_gone(errno) ? -ECONNRESET : -errno;
	collect_fds(&msg, &reply);
	if (n == 0 && reply.n_fds == 0)
		return -ECONNRESET;
	r = parse_reply(&msg, (size_t)n, opcode, seq, &reply);
	if (r) {
		wire_close_fds(&reply);
		return r;
	}
	*ret = reply;
	return 0;
}

void wire_error_text(const struct wire_reply *reply, char *to, size_t to_bytes)
{
	size_t n = reply->payload_bytes;

	if (n > to_bytes - 1)
		n = to_bytes - 1;
	memcpy(to, reply->payload, n);
	to[n] = '\0';
}
