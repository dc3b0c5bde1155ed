/* SPDX-License-Identifier: MIT */
#include "live_frames.h"

#include <fcntl.h>
#include <string.h>

#include <dmaheap/protocol.h>

/* Bytes of each opcode's struct; 0 for those without. */
static const struct {
	uint16_t opcode;
	uint16_t body_bytes;
	uint8_t n_fds;
	bool is_admin;
} opcodes[] = {
	{DMAHEAP_OP_HELLO, sizeof(struct dmaheap_hello_req), 0, false},
	{DMAHEAP_OP_ALLOC, sizeof(struct dmaheap_alloc_req), 0, false},
	{DMAHEAP_OP_HEAPS, 0, 0, false},
	{DMAHEAP_OP_SET_NAME, sizeof(struct dmaheap_set_name_req), 1, false},
	{DMAHEAP_OP_BUFFERS, sizeof(struct dmaheap_buffers_req), 0, false},
	{DMAHEAP_OP_STATS, 0, 0, false},
	{DMAHEAP_OP_NODE, sizeof(struct dmaheap_node_req), 0, false},
	{DMAHEAP_OP_QUOTA, 0, 0, false},
	{DMAHEAP_OP_ADOPT, sizeof(struct dmaheap_adopt_req), 2, false},
	{DMAHEAP_OP_RELEASE, sizeof(struct dmaheap_release_req), 0, false},
	{DMAHEAP_OP_PRESSURE, sizeof(struct dmaheap_pressure_req), 0, true},
	{DMAHEAP_OP_INJECT, sizeof(struct dmaheap_inject_req), 0, true},
	{DMAHEAP_OP_POLICY, sizeof(struct dmaheap_policy_req), 0, true},
	{DMAHEAP_OP_SHRINK, sizeof(struct dmaheap_shrink_req), 0, true},
	{DMAHEAP_OP_TRACE, sizeof(struct dmaheap_trace_req), 0, true},
	{DMAHEAP_OP_RELOAD, 0, 0, true},
};
#define N_OPCODES (sizeof(opcodes) / sizeof(opcodes[0]))

void frame_hello(struct frame *frame)
{
	struct dmaheap_header header = {.magic = DMAHEAP_PROTOCOL_MAGIC,
					.version = DMAHEAP_PROTOCOL_VERSION,
					.opcode = DMAHEAP_OP_HELLO,
					.payload_bytes = sizeof(
						struct dmaheap_hello_req),
					.seq = 1};
	struct dmaheap_hello_req hello = {.client_name = "mutator"};

	*frame = (struct frame){.n_bytes = sizeof(header) + sizeof(hello)};
	memcpy(frame->bytes, &header, sizeof(header));
	memcpy(frame->bytes + sizeof(header), &hello, sizeof(hello));
}

/* A request that the codec and most of the daemon find nothing wrong with. */
static void make_valid(struct frame *frame, struct rng *rng, bool with_admin)
{
	struct dmaheap_header header = {.magic = DMAHEAP_PROTOCOL_MAGIC,
					.version = DMAHEAP_PROTOCOL_VERSION,
					.seq = rng_next(rng)};
	struct dmaheap_alloc_req alloc = {.len_bytes =
						  1 + rng_below(rng, 65536),
					  .fd_flags = O_RDWR | O_CLOEXEC,
					  .count = 1 +
						   (uint32_t)rng_below(rng, 3),
					  .heap_name = "system"};
	size_t i;

	do
		i = rng_below(rng, N_OPCODES);
	while (opcodes[i].is_admin && !with_admin);
	memset(frame, 0, sizeof(*frame));
	header.opcode = opcodes[i].opcode;
	header.payload_bytes = opcodes[i].body_bytes;
	header.n_fds = opcodes[i].n_fds;
	frame->n_fds = opcodes[i].n_fds;
	frame->n_bytes = sizeof(header) + header.payload_bytes;
	memcpy(frame->bytes, &header, sizeof(header));
	if (header.opcode == DMAHEAP_OP_ALLOC)
		memcpy(frame->bytes + sizeof(header), &alloc, sizeof(alloc));
	else if (header.opcode == DMAHEAP_OP_SET_NAME ||
		 header.opcode == DMAHEAP_OP_SHRINK)
		memcpy(frame->bytes + sizeof(header) + header.payload_bytes -
			       DMAHEAP_NAME_MAX_BYTES,
		       "system", 6);
}

static void set_payload_bytes(struct frame *frame)
{
	uint32_t n = (uint32_t)(frame->n_bytes - sizeof(struct dmaheap_header));

	memcpy(frame->bytes + offsetof(struct dmaheap_header, payload_bytes),
	       &n, sizeof(n));
}

/* Changes what follows the header, which stays true to it. */
static void mutate_payload(struct frame *frame, struct rng *rng)
{
	size_t head = sizeof(struct dmaheap_header);
	uint64_t n_changes = 1 + rng_below(rng, 4);

	if (frame->n_bytes == head || rng_below(rng, 8) == 0) {
		size_t n = 1 + rng_below(rng, 64);

		for (size_t i = 0; i < n; i++)
			frame->bytes[frame->n_bytes++] =
				(uint8_t)(rng_below(rng, 2) ? rng_next(rng)
							    : 0);
	} else if (rng_below(rng, 8) == 0) {
		frame->n_bytes = head + rng_below(rng, frame->n_bytes - head);
	}
	while (n_changes-- && frame->n_bytes > head) {
		size_t at = head + rng_below(rng, frame->n_bytes - head);
		uint8_t flip = (uint8_t)(1u << rng_below(rng, 8));

		if (rng_below(rng, 2))
			flip = (uint8_t)rng_next(rng);
		frame->bytes[at] = frame->bytes[at] ^ flip;
	}
	set_payload_bytes(frame);
}

static void mutate_header(struct frame *frame, struct rng *rng)
{
	/* Not the magic: that is what garbage is for. */
	size_t at = 4 + rng_below(rng, sizeof(struct dmaheap_header) - 4);

	frame->bytes[at] =
		frame->bytes[at] ^ (uint8_t)(1u + rng_below(rng, 255));
	if (rng_below(rng, 4) == 0)
		frame->n_fds = (unsigned int)rng_below(rng, 4);
}

static void make_garbage(struct frame *frame, struct rng *rng)
{
	frame->n_bytes = rng_below(rng, 200);
	for (size_t i = 0; i < frame->n_bytes; i++)
		frame->bytes[i] = (uint8_t)rng_next(rng);
	frame->n_fds = rng_below(rng, 16) ? 0 : 3;
}

enum frame_kind frame_make(struct frame *frame, struct rng *rng,
			   bool with_admin)
{
	uint64_t dice = rng_below(rng, 100);

	make_valid(frame, rng, with_admin);
	if (dice < 15)
		return FRAME_VALID;
	if (dice < 80) {
		mutate_payload(frame, rng);
		return FRAME_PAYLOAD;
	}
	if (dice < 92) {
		mutate_header(frame, rng);
		return FRAME_HEADER;
	}
	make_garbage(frame, rng);
	return FRAME_GARBAGE;
}
