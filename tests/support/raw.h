/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The protocol by hand: for tests of what the library would never send.
 *
 * Units:     bytes.
 * Ownership: sockets are the caller's to close; fds are borrowed.
 * Threads:   no state.
 */

#include <dmaheap/protocol.h>
#include <stddef.h>

/* Return: a connected socket, or a negated errno. */
int raw_connect(const char *path);

/* Sends any bytes and fds as one packet. Return: 0 or a negated errno. */
int raw_send(int sock, const void *bytes, size_t n_bytes, const int *fds,
	     size_t n_fds);

/* Receives a packet of one byte and one fd. Return: the fd, or -1. */
int raw_receive_fd(int sock);

/* A request with a right header. Return: 0 or a negated errno. */
int raw_request(int sock, uint16_t opcode, const void *payload, size_t n_bytes,
		const int *fds, size_t n_fds);

struct raw_reply {
	struct dmaheap_header header;
	char payload[DMAHEAP_MESSAGE_MAX_BYTES];
	size_t payload_bytes;
	int fds[64];
	size_t n_fds;
};

/* Waits for a packet. Return: 0, -ECONNRESET at the end, or a negated errno. */
int raw_receive(int sock, struct raw_reply *ret);

/* raw_request() and raw_receive(). Return: the reply's status. */
int raw_call(int sock, uint16_t opcode, const void *payload, size_t n_bytes,
	     struct raw_reply *ret);

/* raw_connect() and HELLO. Return: as raw_connect(), or the status. */
int raw_open(const char *path);
