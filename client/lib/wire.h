/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Wire: one request packet out, one reply packet in, with their fds.
 *
 * Units:     *_bytes.
 * Ownership: wire_receive() gives the caller every fd of the reply, all
 *            close-on-exec; wire_close_fds() closes what is left of them. The
 *            payload points into the caller's buffer. Sent fds are borrowed.
 * Threads:   plain functions without state.
 *
 * Packets are received into memory of our own, never into a caller's struct:
 * a bad pointer would lose the message, or its fds.
 */

#include <stddef.h>
#include <stdint.h>

#include <dmaheap/protocol.h>

#include "lib/macros.h"

#define WIRE_FDS_MAX 64u /* ALLOC and ADOPT carry at most so many */

struct wire_request {
	uint16_t opcode;
	const void *payload; /* NULL when @payload_bytes is 0 */
	size_t payload_bytes;
	const int *fds;
	size_t n_fds; /* <= WIRE_FDS_MAX */
};

struct wire_reply {
	int32_t status;
	const uint8_t *payload;
	size_t payload_bytes;
	int fds[WIRE_FDS_MAX]; /* -1 once taken */
	size_t n_fds;
};

/**
 * wire_send() - send one request, waiting for room
 *
 * Return: 0, -ECONNRESET (the daemon has gone), or the errno of sendmsg().
 */
int wire_send(int sock, const struct wire_request *req, uint64_t seq)
	_must_check_;

/**
 * wire_receive() - wait for the reply to request @seq of @opcode
 * @buffer: DMAHEAP_MESSAGE_MAX_BYTES to receive into
 * @ret:    set on success only
 *
 * On failure everything that came is closed.
 *
 * Return: 0, -ECONNRESET (the daemon has gone), -EMFILE (the fds did not fit
 * into this process), -EPROTO (not a reply to this request), -EAGAIN (the
 * socket's timeout), or the errno of recvmsg().
 */
int wire_receive(int sock, uint16_t opcode, uint64_t seq, void *buffer,
		 struct wire_reply *ret) _must_check_;

/* Closes the fds that @reply still owns. */
void wire_close_fds(struct wire_reply *reply);

/* Copies a refusal's sentence to @to, cut to fit and ended. */
void wire_error_text(const struct wire_reply *reply, char *to, size_t to_bytes);
