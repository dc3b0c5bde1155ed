/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Codec: bytes of one received message to a checked request, and the headers of
 * replies. What it lets through holds every rule of docs/protocol.md that can
 * be checked without knowing the daemon's state.
 *
 * Units:     *_bytes; errors are errno values > 0.
 * Ownership: a request borrows the bytes it was parsed from.
 * Threads:   no state, no I/O.
 */

#include <dmaheap/protocol.h>

#include "base/base.h"

/* Outcomes of codec_parse_*(); see base/err.h. */
enum {
	CODEC_E_OK_,
	/* Not a message of this protocol: nobody can be answered, close. */
	CODEC_E_BROKEN,
	/* A message with a fault: an error reply, the connection lives. */
	CODEC_E_BAD,
};

struct codec_error {
	int err;        /* EINVAL, E2BIG, EOPNOTSUPP, EPROTONOSUPPORT */
	char text[192]; /* a sentence that names the field */
};

struct codec_request {
	struct dmaheap_header header;
	/* The opcode's struct, zero-extended; names end in NULs only. */
	union {
		struct dmaheap_hello_req hello;
		struct dmaheap_alloc_req alloc;
		struct dmaheap_set_name_req set_name;
		struct dmaheap_buffers_req buffers;
		struct dmaheap_node_req node;
		struct dmaheap_adopt_req adopt;
		struct dmaheap_release_req release;
		struct dmaheap_pressure_req pressure;
		struct dmaheap_inject_req inject;
		struct dmaheap_policy_req policy;
		struct dmaheap_shrink_req shrink;
		struct dmaheap_trace_req trace;
	} body;
	const char *tail; /* POLICY SET: printable lines, no NUL; else NULL */
	size_t tail_bytes;
};

/**
 * codec_parse_header() - check the header of a message
 * @bytes:   the whole message, of any alignment
 * @n_bytes: as received
 * @n_fds:   fds that came with it
 * @ret:     receives the header, also for CODEC_E_BAD (the reply needs it)
 * @error:   filled for CODEC_E_BROKEN and CODEC_E_BAD
 *
 * Broken: shorter than a header, another magic, payload_bytes that is not what
 * came. Bad: version, opcode, flags, status, n_fds.
 *
 * Return: 0, CODEC_E_BROKEN or CODEC_E_BAD. Never negative.
 */
int codec_parse_header(const void *bytes, size_t n_bytes, size_t n_fds,
		       struct dmaheap_header *ret, struct codec_error *error)
	_must_check_;

/**
 * codec_parse_body() - check the payload of a message
 * @header:  as codec_parse_header() gave it, with 0
 * @payload: header->payload_bytes bytes of any alignment
 * @ret:     receives the request on success
 * @error:   filled for CODEC_E_BAD
 *
 * Return: 0 or CODEC_E_BAD. Never negative.
 */
int codec_parse_body(const struct dmaheap_header *header, const void *payload,
		     struct codec_request *ret, struct codec_error *error)
	_must_check_;

/* Both of the above; ret->header is filled for CODEC_E_BAD too. Return: as
 * these. */
int codec_parse(const void *bytes, size_t n_bytes, size_t n_fds,
		struct codec_request *ret, struct codec_error *error)
	_must_check_;

/* Fills the header of the reply to @request; @status is 0 or negative. */
void codec_reply_header(struct dmaheap_header *ret,
			const struct dmaheap_header *request, int status,
			size_t payload_bytes, size_t n_fds);

/* Return: "ALLOC" and so on, or NULL for an unknown opcode. */
const char *codec_opcode_name(unsigned int opcode);

/* Return: whether only administrators may ask this. */
bool codec_is_admin(const struct codec_request *request);
