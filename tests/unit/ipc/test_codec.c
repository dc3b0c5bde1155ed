/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "ipc/codec.h"
#include "support/test.h"

/* A message under construction: header, body, and room for what comes after. */
struct draft {
	struct dmaheap_header header;
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
		unsigned char bytes[512];
	} body;
};

static const struct {
	uint16_t opcode;
	size_t body_bytes;
	uint32_t n_fds;
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
	{DMAHEAP_OP_ADOPT, sizeof(struct dmaheap_adopt_req), 1, false},
	{DMAHEAP_OP_RELEASE, sizeof(struct dmaheap_release_req), 0, false},
	{DMAHEAP_OP_PRESSURE, sizeof(struct dmaheap_pressure_req), 0, true},
	{DMAHEAP_OP_INJECT, sizeof(struct dmaheap_inject_req), 0, true},
	{DMAHEAP_OP_POLICY, sizeof(struct dmaheap_policy_req), 0, false},
	{DMAHEAP_OP_SHRINK, sizeof(struct dmaheap_shrink_req), 0, true},
	{DMAHEAP_OP_RELOAD, 0, 0, true},
	{DMAHEAP_OP_TRACE, sizeof(struct dmaheap_trace_req), 0, true},
};

static struct codec_request request;
static struct codec_error error;

static size_t body_bytes_of(uint16_t opcode)
{
	for (size_t i = 0; i < ARRAY_SIZE(opcodes); i++)
		if (opcodes[i].opcode == opcode)
			return opcodes[i].body_bytes;
	abort();
}

/* A request of @opcode that the codec accepts. */
static struct draft draft_of(uint16_t opcode)
{
	struct draft d;

	memset(&d, 0, sizeof(d));
	d.header.magic = DMAHEAP_PROTOCOL_MAGIC;
	d.header.version = DMAHEAP_PROTOCOL_VERSION;
	d.header.opcode = opcode;
	d.header.seq = 7;
	d.header.payload_bytes = (uint32_t)body_bytes_of(opcode);
	if (opcode == DMAHEAP_OP_ALLOC) {
		d.body.alloc.len_bytes = 4096;
		d.body.alloc.fd_flags = O_RDWR | O_CLOEXEC;
		d.body.alloc.count = 1;
		strcpy(d.body.alloc.heap_name, "system");
	}
	if (opcode == DMAHEAP_OP_SET_NAME || opcode == DMAHEAP_OP_ADOPT)
		d.header.n_fds = 1;
	return d;
}

static int parse(const struct draft *d)
{
	memset(&request, 0xa5, sizeof(request));
	memset(&error, 0, sizeof(error));
	return codec_parse(d, sizeof(d->header) + d->header.payload_bytes,
			   d->header.n_fds, &request, &error);
}

/* Expects an error reply with @err whose sentence names @field. */
static void expect_bad(const struct draft *d, int err, const char *field)
{
	int r = parse(d);

	CU_ASSERT_EQUAL(r, CODEC_E_BAD);
	CU_ASSERT_EQUAL(error.err, err);
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, field));
	if (r != CODEC_E_BAD || error.err != err || !strstr(error.text, field))
		printf("\n  wanted %d with '%s', got %d %d '%s'", err, field, r,
		       error.err, error.text);
	/* The reply needs these. */
	CU_ASSERT_EQUAL(request.header.seq, d->header.seq);
	CU_ASSERT_EQUAL(request.header.opcode, d->header.opcode);
}

static void expect_good(const struct draft *d)
{
	int r = parse(d);

	CU_ASSERT_EQUAL(r, 0);
	if (r)
		printf("\n  '%s'", error.text);
}

static void every_opcode_is_accepted(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(opcodes); i++) {
		struct draft d = draft_of(opcodes[i].opcode);

		expect_good(&d);
		CU_ASSERT_EQUAL(memcmp(&request.header, &d.header,
				       sizeof(d.header)),
				0);
		CU_ASSERT_EQUAL(memcmp(&request.body, &d.body,
				       opcodes[i].body_bytes),
				0);
		CU_ASSERT_PTR_NULL(request.tail);
		CU_ASSERT_EQUAL(codec_is_admin(&request), opcodes[i].is_admin);
		CU_ASSERT_PTR_NOT_NULL(codec_opcode_name(opcodes[i].opcode));
	}
}

static void shorter_structs_are_zero_extended(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(opcodes); i++) {
		struct draft d = draft_of(opcodes[i].opcode);

		/* Cut back to the last byte that is not zero. */
		while (d.header.payload_bytes &&
		       !d.body.bytes[d.header.payload_bytes - 1])
			d.header.payload_bytes--;
		memset(d.body.bytes + d.header.payload_bytes, 0xff,
		       sizeof(d.body.bytes) - d.header.payload_bytes);
		expect_good(&d);
		for (size_t k = d.header.payload_bytes;
		     k < opcodes[i].body_bytes; k++)
			CU_ASSERT_EQUAL(((unsigned char *)&request.body)[k], 0);
	}
}

static void longer_structs_need_a_zero_tail(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(opcodes); i++) {
		struct draft d = draft_of(opcodes[i].opcode);

		if (opcodes[i].opcode == DMAHEAP_OP_POLICY)
			continue; /* what follows is text */
		d.header.payload_bytes += 24;
		expect_good(&d);
		d.body.bytes[d.header.payload_bytes - 1] = 1;
		expect_bad(&d, E2BIG, codec_opcode_name(opcodes[i].opcode));
	}
}

static void alignment_does_not_matter(void)
{
	struct draft d = draft_of(DMAHEAP_OP_ALLOC);
	unsigned char bytes[sizeof(d) + 1];
	size_t n = sizeof(d.header) + d.header.payload_bytes;

	memcpy(bytes + 1, &d, sizeof(d));
	CU_ASSERT_EQUAL(codec_parse(bytes + 1, n, 0, &request, &error), 0);
	CU_ASSERT_EQUAL(request.body.alloc.len_bytes, 4096);
}

static void broken_frames_are_told_apart(void)
{
	struct draft d = draft_of(DMAHEAP_OP_HELLO);
	size_t n = sizeof(d.header) + d.header.payload_bytes;

	for (size_t k = 0; k < sizeof(d.header); k++)
		CU_ASSERT_EQUAL(codec_parse(&d, k, 0, &request, &error),
				CODEC_E_BROKEN);
	CU_ASSERT_EQUAL(codec_parse(&d, n - 1, 0, &request, &error),
			CODEC_E_BROKEN);
	CU_ASSERT_EQUAL(codec_parse(&d, n + 1, 0, &request, &error),
			CODEC_E_BROKEN);
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "payload_bytes"));
	d.header.magic++;
	CU_ASSERT_EQUAL(codec_parse(&d, n, 0, &request, &error),
			CODEC_E_BROKEN);
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "magic"));
}

static void faults_of_the_header_are_answered(void)
{
	struct draft d = draft_of(DMAHEAP_OP_HELLO);

	d.header.version = 2;
	expect_bad(&d, EPROTONOSUPPORT, "version");
	d = draft_of(DMAHEAP_OP_HELLO);
	d.header.flags = DMAHEAP_F_REPLY;
	expect_bad(&d, EINVAL, "flags");
	d = draft_of(DMAHEAP_OP_HELLO);
	d.header.status = -1;
	expect_bad(&d, EINVAL, "status");
	for (unsigned int opcode = 0; opcode < 0x10000; opcode++) {
		if (codec_opcode_name(opcode))
			continue;
		d = draft_of(DMAHEAP_OP_HELLO);
		d.header.opcode = (uint16_t)opcode;
		if (codec_parse(&d, sizeof(d.header) + d.header.payload_bytes,
				0, &request, &error) != CODEC_E_BAD ||
		    error.err != EOPNOTSUPP)
			CU_FAIL("an unknown opcode was not refused");
	}
	CU_ASSERT_PTR_NOT_NULL(strstr(error.text, "opcode"));
}

static void fds_are_counted(void)
{
	static const struct {
		uint16_t opcode;
		uint32_t n_fds;
	} wrong[] = {
		{DMAHEAP_OP_HELLO, 1},    {DMAHEAP_OP_ALLOC, 1},
		{DMAHEAP_OP_SET_NAME, 0}, {DMAHEAP_OP_SET_NAME, 2},
		{DMAHEAP_OP_ADOPT, 0},    {DMAHEAP_OP_ADOPT, 65},
		{DMAHEAP_OP_PRESSURE, 6}, {DMAHEAP_OP_RELOAD, 1},
	};
	struct draft d;

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		d = draft_of(wrong[i].opcode);
		d.header.n_fds = wrong[i].n_fds;
		expect_bad(&d, EINVAL, "n_fds");
	}
	d = draft_of(DMAHEAP_OP_SET_NAME);
	CU_ASSERT_EQUAL(codec_parse(&d,
				    sizeof(d.header) + d.header.payload_bytes,
				    0, &request, &error),
			CODEC_E_BAD); /* says 1, none came */
	d = draft_of(DMAHEAP_OP_ADOPT);
	d.header.n_fds = DMAHEAP_ADOPT_MAX_COUNT;
	expect_good(&d);
}

static void hello_is_checked(void)
{
	struct draft d = draft_of(DMAHEAP_OP_HELLO);

	d.body.hello.features = 1;
	expect_bad(&d, EINVAL, "hello.features");
	d = draft_of(DMAHEAP_OP_HELLO);
	d.body.hello.reserved = 1;
	expect_bad(&d, EINVAL, "hello.reserved");
}

static void names_end_and_are_printable(void)
{
	struct draft d = draft_of(DMAHEAP_OP_HELLO);

	strcpy(d.body.hello.client_name, "caf\xc3\xa9 7 ~");
	expect_good(&d);
	memset(d.body.hello.client_name, 'x', DMAHEAP_NAME_MAX_BYTES - 1);
	expect_good(&d);
	memset(d.body.hello.client_name, 'x', DMAHEAP_NAME_MAX_BYTES);
	expect_bad(&d, EINVAL, "hello.client_name");
	memset(d.body.hello.client_name, 0, DMAHEAP_NAME_MAX_BYTES);
	strcpy(d.body.hello.client_name, "a\nb");
	expect_bad(&d, EINVAL, "0x0a at 1");
	strcpy(d.body.hello.client_name, "a\x7f");
	expect_bad(&d, EINVAL, "0x7f");
	strcpy(d.body.hello.client_name, "ab");
	d.body.hello.client_name[DMAHEAP_NAME_MAX_BYTES - 1] = 'x';
	expect_bad(&d, EINVAL, "after its end, at 31");
	d = draft_of(DMAHEAP_OP_ALLOC);
	d.body.alloc.heap_name[0] = '\t';
	expect_bad(&d, EINVAL, "alloc.heap_name");
	d = draft_of(DMAHEAP_OP_SET_NAME);
	d.body.set_name.name[0] = '\t';
	expect_bad(&d, EINVAL, "set_name.name");
	d = draft_of(DMAHEAP_OP_SHRINK);
	d.body.shrink.heap_name[0] = '\t';
	expect_bad(&d, EINVAL, "shrink.heap_name");
	d = draft_of(DMAHEAP_OP_INJECT);
	d.body.inject.heap_name[0] = '\t';
	expect_bad(&d, EINVAL, "inject.heap_name");
}

static void alloc_is_checked(void)
{
	static const uint32_t modes[] = {O_RDONLY, O_WRONLY, O_RDWR};
	struct draft d = draft_of(DMAHEAP_OP_ALLOC);

	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		d.body.alloc.fd_flags = modes[i];
		expect_good(&d);
	}
	d.body.alloc.fd_flags = O_ACCMODE;
	expect_bad(&d, EINVAL, "access mode 3");
	d.body.alloc.fd_flags = O_RDWR | O_NONBLOCK;
	expect_bad(&d, EINVAL, "alloc.fd_flags");
	d = draft_of(DMAHEAP_OP_ALLOC);
	d.body.alloc.len_bytes = 0;
	expect_bad(&d, EINVAL, "alloc.len_bytes");
	d = draft_of(DMAHEAP_OP_ALLOC);
	d.body.alloc.heap_flags = UINT64_C(1) << 63;
	expect_bad(&d, EINVAL, "alloc.heap_flags");
	d = draft_of(DMAHEAP_OP_ALLOC);
	d.body.alloc.count = 0;
	expect_bad(&d, EINVAL, "alloc.count");
	d.body.alloc.count = DMAHEAP_ALLOC_MAX_COUNT;
	expect_good(&d);
	d.body.alloc.count++;
	expect_bad(&d, EINVAL, "alloc.count");
}

static void reserved_fields_must_be_zero(void)
{
	struct draft d = draft_of(DMAHEAP_OP_BUFFERS);

	d.body.buffers.flags = 1;
	expect_bad(&d, EINVAL, "buffers.flags");
	d = draft_of(DMAHEAP_OP_NODE);
	d.body.node.reserved = 1;
	expect_bad(&d, EINVAL, "node.reserved");
	d = draft_of(DMAHEAP_OP_NODE);
	d.body.node.text = DMAHEAP_NODE_SLABINFO;
	expect_good(&d);
	d.body.node.text++;
	expect_bad(&d, EINVAL, "node.text");
	d = draft_of(DMAHEAP_OP_ADOPT);
	d.body.adopt.flags = 1;
	expect_bad(&d, EINVAL, "adopt.flags");
	d = draft_of(DMAHEAP_OP_ADOPT);
	d.body.adopt.reserved = 1;
	expect_bad(&d, EINVAL, "adopt.reserved");
	d = draft_of(DMAHEAP_OP_TRACE);
	d.body.trace.flags = 1;
	expect_bad(&d, EINVAL, "trace.flags");
	d = draft_of(DMAHEAP_OP_TRACE);
	d.body.trace.reserved = 1;
	expect_bad(&d, EINVAL, "trace.reserved");
}

static struct draft pressure_of(uint32_t kind)
{
	struct draft d = draft_of(DMAHEAP_OP_PRESSURE);

	d.body.pressure.kind = kind;
	return d;
}

static void pressure_fields_belong_to_their_kind(void)
{
	struct draft d = pressure_of(DMAHEAP_PRESSURE_FILL);

	d.body.pressure.leave_bytes = 1;
	d.body.pressure.flags = DMAHEAP_PRESSURE_KEEP;
	expect_good(&d);
	d.body.pressure.max_order = 1;
	expect_bad(&d, EINVAL, "pressure.max_order");
	d = pressure_of(DMAHEAP_PRESSURE_FRAGMENT);
	d.body.pressure.max_order = 10;
	expect_good(&d);
	d.body.pressure.max_order = 11;
	expect_bad(&d, EINVAL, "pressure.max_order");
	d.body.pressure.max_order = 1;
	d.body.pressure.leave_bytes = 1;
	expect_bad(&d, EINVAL, "pressure.leave_bytes");
	d = pressure_of(DMAHEAP_PRESSURE_PLAY + 1);
	expect_bad(&d, EINVAL, "pressure.kind");
	d = pressure_of(DMAHEAP_PRESSURE_LOW_MEMORY);
	d.body.pressure.flags = 2;
	expect_bad(&d, EINVAL, "pressure.flags");
	d = pressure_of(DMAHEAP_PRESSURE_LOW_MEMORY);
	d.body.pressure.reserved = 2;
	expect_bad(&d, EINVAL, "pressure.reserved");
}

static void pressure_fds_have_a_kind_each(void)
{
	struct draft d = pressure_of(DMAHEAP_PRESSURE_LOAD);

	expect_bad(&d, EINVAL, "LOAD");
	d.header.n_fds = 2;
	d.body.pressure.fd_kinds[0] = DMAHEAP_TEXT_BUDDYINFO;
	expect_bad(&d, EINVAL, "fd_kinds[1]"); /* an fd without a kind */
	d.body.pressure.fd_kinds[1] = DMAHEAP_TEXT_VMSTAT;
	expect_good(&d);
	d.body.pressure.fd_kinds[2] = DMAHEAP_TEXT_MEMINFO;
	expect_bad(&d, EINVAL, "fd_kinds[2]"); /* a kind without an fd */
	d.body.pressure.fd_kinds[2] = 0;
	d.body.pressure.fd_kinds[1] = DMAHEAP_TEXT_BUDDYINFO;
	expect_bad(&d, EINVAL, "repeats");
	d.body.pressure.fd_kinds[1] = DMAHEAP_TEXT_SCENARIO;
	expect_bad(&d, EINVAL, "fd_kinds[1]");
	d.body.pressure.fd_kinds[1] = 255;
	expect_bad(&d, EINVAL, "fd_kinds[1]");

	d = pressure_of(DMAHEAP_PRESSURE_PLAY);
	expect_bad(&d, EINVAL, "PLAY");
	d.header.n_fds = 1;
	d.body.pressure.fd_kinds[0] = DMAHEAP_TEXT_SCENARIO;
	expect_good(&d);
	d.body.pressure.fd_kinds[0] = DMAHEAP_TEXT_BUDDYINFO;
	expect_bad(&d, EINVAL, "fd_kinds[0]");

	d = pressure_of(DMAHEAP_PRESSURE_STATUS);
	d.header.n_fds = 1;
	expect_bad(&d, EINVAL, "n_fds");
	d = pressure_of(DMAHEAP_PRESSURE_STATUS);
	d.body.pressure.fd_kinds[7] = 1;
	expect_bad(&d, EINVAL, "fd_kinds[7]");
}

static void inject_is_checked(void)
{
	struct draft d = draft_of(DMAHEAP_OP_INJECT);

	d.body.inject.flags = DMAHEAP_INJECT_KEEP;
	d.body.inject.fail_rate_ppm = 1000000;
	d.body.inject.err = 4095;
	d.body.inject.stall_ms = 3600000;
	expect_good(&d);
	d.body.inject.fail_rate_ppm++;
	expect_bad(&d, EINVAL, "inject.fail_rate_ppm");
	d.body.inject.fail_rate_ppm = 1;
	d.body.inject.fail_nth = 1;
	expect_bad(&d, EINVAL, "inject.fail_nth");
	d.body.inject.fail_nth = 0;
	d.body.inject.err = 4096;
	expect_bad(&d, EINVAL, "inject.err");
	d.body.inject.err = -1;
	expect_bad(&d, EINVAL, "inject.err");
	d.body.inject.err = 0;
	d.body.inject.stall_ms++;
	expect_bad(&d, EINVAL, "inject.stall_ms");
	d.body.inject.stall_ms = 0;
	d.body.inject.flags = 4;
	expect_bad(&d, EINVAL, "inject.flags");
}

static void policy_text_comes_with_set_alone(void)
{
	static const char text[] = "orders = 8 4 0\ngfp.4 = MID_ORDER\n";
	struct draft d = draft_of(DMAHEAP_OP_POLICY);
	size_t at = sizeof(struct dmaheap_policy_req);

	d.body.policy.op = DMAHEAP_POLICY_SET;
	expect_bad(&d, EINVAL, "policy text");
	memcpy(d.body.bytes + at, text, sizeof(text) - 1);
	d.header.payload_bytes += (uint32_t)sizeof(text) - 1;
	expect_good(&d);
	CU_ASSERT_EQUAL(request.tail_bytes, sizeof(text) - 1);
	CU_ASSERT_EQUAL(memcmp(request.tail, text, sizeof(text) - 1), 0);
	CU_ASSERT_TRUE(codec_is_admin(&request));
	d.body.bytes[at + 3] = 0;
	expect_bad(&d, EINVAL, "0x00 at 3");
	d.body.bytes[at + 3] = 'e';
	d.body.policy.op = DMAHEAP_POLICY_SHOW;
	expect_bad(&d, EINVAL, "policy text");
	d = draft_of(DMAHEAP_OP_POLICY);
	d.body.policy.op = 2;
	expect_bad(&d, EINVAL, "policy.op");
	d = draft_of(DMAHEAP_OP_POLICY);
	d.body.policy.reserved = 2;
	expect_bad(&d, EINVAL, "policy.reserved");
	d = draft_of(DMAHEAP_OP_POLICY);
	d.body.policy.heap_name[0] = 1;
	expect_bad(&d, EINVAL, "policy.heap_name");
}

static void replies_repeat_seq_and_opcode(void)
{
	struct draft d = draft_of(DMAHEAP_OP_QUOTA);
	struct dmaheap_header reply;

	d.header.seq = UINT64_MAX;
	codec_reply_header(&reply, &d.header, -ENOMEM, 12, 3);
	CU_ASSERT_EQUAL(reply.magic, DMAHEAP_PROTOCOL_MAGIC);
	CU_ASSERT_EQUAL(reply.version, DMAHEAP_PROTOCOL_VERSION);
	CU_ASSERT_EQUAL(reply.opcode, DMAHEAP_OP_QUOTA);
	CU_ASSERT_EQUAL(reply.flags, DMAHEAP_F_REPLY);
	CU_ASSERT_EQUAL(reply.seq, UINT64_MAX);
	CU_ASSERT_EQUAL(reply.status, -ENOMEM);
	CU_ASSERT_EQUAL(reply.payload_bytes, 12);
	CU_ASSERT_EQUAL(reply.n_fds, 3);
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"every opcode is accepted", every_opcode_is_accepted},
		{"shorter structs are zero-extended",
		 shorter_structs_are_zero_extended},
		{"longer structs need a zero tail",
		 longer_structs_need_a_zero_tail},
		{"alignment does not matter", alignment_does_not_matter},
		{"broken frames are told apart", broken_frames_are_told_apart},
		{"faults of the header are answered",
		 faults_of_the_header_are_answered},
		{"fds are counted", fds_are_counted},
		{"hello is checked", hello_is_checked},
		{"names end and are printable", names_end_and_are_printable},
		{"alloc is checked", alloc_is_checked},
		{"reserved fields must be zero", reserved_fields_must_be_zero},
		{"pressure fields belong to their kind",
		 pressure_fields_belong_to_their_kind},
		{"pressure fds have a kind each",
		 pressure_fds_have_a_kind_each},
		{"inject is checked", inject_is_checked},
		{"policy text comes with SET alone",
		 policy_text_comes_with_set_alone},
		{"replies repeat seq and opcode",
		 replies_repeat_seq_and_opcode},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "codec", .pTests = tests},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
