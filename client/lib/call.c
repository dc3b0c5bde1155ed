/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include <dmaheap/dmaheap.h>

#include "lib/handle.h"

_public_ int dmaheap_connect(struct dmaheap **ret, const char *socket_path)
{
	return handle_new(ret, socket_path);
}

_public_ const char *dmaheap_connect_error(void)
{
	return handle_refusal();
}

_public_ const char *dmaheap_socket_path(const struct dmaheap *dh)
{
	return dh->path;
}

_public_ struct dmaheap *dmaheap_close(struct dmaheap *dh)
{
	return handle_free(dh);
}

_public_ int dmaheap_hello(struct dmaheap *dh, struct dmaheap_hello_reply *ret)
{
	int r;

	handle_lock(dh);
	r = handle_ensure_fresh(dh);
	if (r == 0)
		*ret = dh->hello;
	handle_unlock(dh);
	return r;
}

static int store_payload(struct dmaheap_message *msg,
			 const struct wire_reply *reply)
{
	size_t n = reply->payload_bytes;

	if (n > msg->reply_capacity_bytes)
		n = msg->reply_capacity_bytes;
	if (n > 0)
		memcpy(msg->reply, reply->payload, n);
	msg->reply_bytes = n;
	return n < reply->payload_bytes && msg->reply ? -EMSGSIZE : 0;
}

/* Passes the fds on as far as there is room; the rest stay @reply's. */
static void store_fds(struct dmaheap_message *msg, struct wire_reply *reply)
{
	while (msg->n_reply_fds < reply->n_fds &&
	       msg->n_reply_fds < msg->reply_fds_capacity) {
		size_t i = msg->n_reply_fds++;

		msg->reply_fds[i] = reply->fds[i];
		reply->fds[i] = -1;
	}
}

static int take_answer(struct dmaheap_message *msg, struct wire_reply *reply)
{
	if (reply->status < 0) {
		wire_error_text(reply, msg->error, sizeof(msg->error));
		return reply->status;
	}
	store_fds(msg, reply);
	return store_payload(msg, reply);
}

_public_ int dmaheap_call(struct dmaheap *dh, struct dmaheap_message *msg)
{
	struct wire_request req = {.opcode = msg->opcode,
				   .payload = msg->payload,
				   .payload_bytes = msg->payload_bytes,
				   .fds = msg->fds,
				   .n_fds = msg->n_fds};
	struct wire_reply reply;
	int r;

	msg->reply_bytes = 0;
	msg->n_reply_fds = 0;
	msg->error[0] = '\0';
	if (msg->n_fds > WIRE_FDS_MAX ||
	    msg->payload_bytes >
		    DMAHEAP_MESSAGE_MAX_BYTES - sizeof(struct dmaheap_header))
		return -EINVAL;

	handle_lock(dh);
	r = handle_request(dh, &req, &reply);
	if (r == 0) {
		r = take_answer(msg, &reply);
		wire_close_fds(&reply);
	}
	handle_unlock(dh);
	return r;
}
