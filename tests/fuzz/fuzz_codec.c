/* SPDX-License-Identifier: MIT */
/* A message: the first byte says how many fds came, the rest are its bytes. */
#include <errno.h>
#include <string.h>

#include "fuzz.h"
#include "ipc/codec.h"

static void check_name(const char *name)
{
	size_t n = strnlen(name, DMAHEAP_NAME_MAX_BYTES);

	FUZZ_REQUIRE(n < DMAHEAP_NAME_MAX_BYTES);
	for (size_t i = 0; i < n; i++)
		FUZZ_REQUIRE((unsigned char)name[i] >= 0x20);
}

/* What the rest of the daemon takes for granted. */
static void check_request(const struct codec_request *req, size_t n_fds)
{
	FUZZ_REQUIRE(codec_opcode_name(req->header.opcode));
	FUZZ_REQUIRE(req->header.n_fds == n_fds);
	FUZZ_REQUIRE((req->tail != NULL) == (req->tail_bytes > 0));
	switch (req->header.opcode) {
	case DMAHEAP_OP_HELLO:
		check_name(req->body.hello.client_name);
		break;
	case DMAHEAP_OP_ALLOC:
		FUZZ_REQUIRE(req->body.alloc.len_bytes > 0);
		FUZZ_REQUIRE(req->body.alloc.count >= 1);
		FUZZ_REQUIRE(req->body.alloc.count <= DMAHEAP_ALLOC_MAX_COUNT);
		FUZZ_REQUIRE((req->body.alloc.fd_flags & 3u) != 3u);
		check_name(req->body.alloc.heap_name);
		break;
	case DMAHEAP_OP_SET_NAME:
		FUZZ_REQUIRE(n_fds == 1);
		check_name(req->body.set_name.name);
		break;
	case DMAHEAP_OP_ADOPT:
		FUZZ_REQUIRE(n_fds >= 1 && n_fds <= DMAHEAP_ADOPT_MAX_COUNT);
		break;
	case DMAHEAP_OP_PRESSURE:
		for (size_t i = 0; i < 8; i++)
			FUZZ_REQUIRE((req->body.pressure.fd_kinds[i] != 0) ==
				     (i < n_fds));
		break;
	case DMAHEAP_OP_POLICY:
		check_name(req->body.policy.heap_name);
		FUZZ_REQUIRE((req->body.policy.op == DMAHEAP_POLICY_SET) ==
			     (req->tail_bytes > 0));
		break;
	default:
		break;
	}
	(void)codec_is_admin(req);
}

/* The same message as the codec understood it must be understood alike. */
static void check_again(const struct codec_request *req, size_t n_fds)
{
	char bytes[DMAHEAP_MESSAGE_MAX_BYTES];
	struct codec_request again;
	struct codec_error error;
	struct dmaheap_header header = req->header;
	size_t n = sizeof(header);

	if (req->tail_bytes) {
		memcpy(bytes + n, &req->body, sizeof(req->body.policy));
		n += sizeof(req->body.policy);
		if (req->tail_bytes > sizeof(bytes) - n)
			return;
		memcpy(bytes + n, req->tail, req->tail_bytes);
		n += req->tail_bytes;
	} else if (header.opcode != DMAHEAP_OP_POLICY) {
		/* Zero-extended as far as any struct goes. */
		memcpy(bytes + n, &req->body, sizeof(req->body));
		n += sizeof(req->body);
	} else {
		memcpy(bytes + n, &req->body, sizeof(req->body.policy));
		n += sizeof(req->body.policy);
	}
	header.payload_bytes = (uint32_t)(n - sizeof(header));
	memcpy(bytes, &header, sizeof(header));
	FUZZ_REQUIRE(codec_parse(bytes, n, n_fds, &again, &error) == 0);
	FUZZ_REQUIRE(memcmp(&again.body, &req->body, sizeof(req->body)) == 0);
}

static void check_reply(const struct codec_request *req)
{
	struct dmaheap_header reply;

	codec_reply_header(&reply, &req->header, -EINVAL, 0, 0);
	FUZZ_REQUIRE(reply.seq == req->header.seq);
	FUZZ_REQUIRE(reply.opcode == req->header.opcode);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	struct codec_request req;
	struct codec_error error = {0};
	size_t n_fds;
	int r;

	if (n_bytes == 0)
		return 0;
	n_fds = data[0];
	r = codec_parse(data + 1, n_bytes - 1, n_fds, &req, &error);
	if (r == 0) {
		check_request(&req, n_fds);
		check_again(&req, n_fds);
	} else {
		FUZZ_REQUIRE(r == CODEC_E_BROKEN || r == CODEC_E_BAD);
		FUZZ_REQUIRE(error.err > 0);
		FUZZ_REQUIRE(error.text[0]);
		FUZZ_REQUIRE(strnlen(error.text, sizeof(error.text)) <
			     sizeof(error.text));
	}
	if (r != CODEC_E_BROKEN)
		check_reply(&req);
	return 0;
}
