/* SPDX-License-Identifier: MIT */
#include "ipc/codec.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/*
 * One row per opcode: how long its struct is here, how many fds it brings, and
 * the function that checks the struct's fields. Length, zero tail and the
 * number of fds are checked for all of them alike.
 */

#define INJECT_MAX_ERRNO    4095
#define INJECT_MAX_STALL_MS 3600000u /* an hour */
#define PPM                 1000000u

static int _printf_(3, 4)
	bad(struct codec_error *error, int err, const char *fmt, ...)
{
	va_list args;

	error->err = err;
	va_start(args, fmt);
	(void)vsnprintf(error->text, sizeof(error->text), fmt, args);
	va_end(args);
	return CODEC_E_BAD;
}

static int check_zero(uint64_t value, const char *field,
		      struct codec_error *error)
{
	if (value == 0)
		return 0;
	return bad(error, EINVAL, "%s is %" PRIu64 ", must be 0", field, value);
}

static int check_flags(uint32_t flags, uint32_t known, const char *field,
		       struct codec_error *error)
{
	if (!(flags & ~known))
		return 0;
	return bad(error, EINVAL, "%s has unknown bits 0x%" PRIx32, field,
		   flags & ~known);
}

static int check_max(uint32_t value, uint32_t max, const char *field,
		     struct codec_error *error)
{
	if (value <= max)
		return 0;
	return bad(error, EINVAL, "%s is %" PRIu32 ", at most %" PRIu32, field,
		   value, max);
}

static bool is_printable(unsigned char c)
{
	return c >= 0x20 && c != 0x7f;
}

/*
 * Bytes after the NUL must be zero as well: two requests that mean the same are
 * then the same bytes, and nothing travels along unseen.
 */
static int check_name(const char name[DMAHEAP_NAME_MAX_BYTES],
		      const char *field, struct codec_error *error)
{
	size_t n = strnlen(name, DMAHEAP_NAME_MAX_BYTES);

	if (n == DMAHEAP_NAME_MAX_BYTES)
		return bad(error, EINVAL,
			   "%s is not ended by a NUL within %u bytes", field,
			   DMAHEAP_NAME_MAX_BYTES);
	for (size_t i = 0; i < n; i++)
		if (!is_printable((unsigned char)name[i]))
			return bad(error, EINVAL,
				   "%s has the unprintable byte 0x%02x at %zu",
				   field, (unsigned char)name[i], i);
	for (size_t i = n; i < DMAHEAP_NAME_MAX_BYTES; i++)
		if (name[i])
			return bad(error, EINVAL,
				   "%s has bytes after its end, at %zu", field,
				   i);
	return 0;
}

static int check_hello(struct codec_request *req, struct codec_error *error)
{
	const struct dmaheap_hello_req *hello = &req->body.hello;
	int r;

	r = check_flags(hello->features, 0, "hello.features", error);
	if (r == 0)
		r = check_zero(hello->reserved, "hello.reserved", error);
	if (r == 0)
		r = check_name(hello->client_name, "hello.client_name", error);
	return r;
}

static int check_alloc(struct codec_request *req, struct codec_error *error)
{
	const struct dmaheap_alloc_req *alloc = &req->body.alloc;
	int r;

	if (alloc->len_bytes == 0)
		return bad(error, EINVAL, "alloc.len_bytes is 0");
	if (alloc->heap_flags)
		return bad(error, EINVAL,
			   "alloc.heap_flags has unknown bits 0x%" PRIx64,
			   alloc->heap_flags);
	r = check_flags(alloc->fd_flags, O_CLOEXEC | O_ACCMODE,
			"alloc.fd_flags", error);
	if (r)
		return r;
	if ((alloc->fd_flags & O_ACCMODE) == O_ACCMODE)
		return bad(error, EINVAL,
			   "alloc.fd_flags has access mode 3, must be "
			   "O_RDONLY, O_WRONLY or O_RDWR");
	if (alloc->count == 0 || alloc->count > DMAHEAP_ALLOC_MAX_COUNT)
		return bad(error, EINVAL,
			   "alloc.count is %" PRIu32 ", must be 1 to %u",
			   alloc->count, DMAHEAP_ALLOC_MAX_COUNT);
	return check_name(alloc->heap_name, "alloc.heap_name", error);
}

static int check_set_name(struct codec_request *req, struct codec_error *error)
{
	return check_name(req->body.set_name.name, "set_name.name", error);
}

static int check_buffers(struct codec_request *req, struct codec_error *error)
{
	return check_flags(req->body.buffers.flags, 0, "buffers.flags", error);
}

static int check_node(struct codec_request *req, struct codec_error *error)
{
	int r;

	r = check_max(req->body.node.text, DMAHEAP_NODE_SLABINFO, "node.text",
		      error);
	if (r == 0)
		r = check_zero(req->body.node.reserved, "node.reserved", error);
	return r;
}

static int check_adopt(struct codec_request *req, struct codec_error *error)
{
	int r;

	r = check_flags(req->body.adopt.flags, 0, "adopt.flags", error);
	if (r == 0)
		r = check_zero(req->body.adopt.reserved, "adopt.reserved",
			       error);
	return r;
}

/* Each fd says what it holds, each kind once, no kind without its fd. */
static int check_fd_kinds(const struct dmaheap_pressure_req *pressure,
			  uint32_t n_fds, uint32_t first_kind,
			  uint32_t last_kind, struct codec_error *error)
{
	uint32_t seen = 0;

	for (uint32_t i = 0; i < ARRAY_SIZE(pressure->fd_kinds); i++) {
		uint32_t kind = pressure->fd_kinds[i];

		if ((i < n_fds) != (kind != 0))
			return bad(error, EINVAL,
				   "pressure.fd_kinds[%" PRIu32 "] is %" PRIu32
				   " with %" PRIu32 " fds",
				   i, kind, n_fds);
		if (kind == 0)
			continue;
		if (kind < first_kind || kind > last_kind)
			return bad(error, EINVAL,
				   "pressure.fd_kinds[%" PRIu32 "] is %" PRIu32
				   ", must be %" PRIu32 " to %" PRIu32,
				   i, kind, first_kind, last_kind);
		if (seen & (1u << kind))
			return bad(error, EINVAL,
				   "pressure.fd_kinds[%" PRIu32
				   "] repeats kind %" PRIu32,
				   i, kind);
		seen |= 1u << kind;
	}
	return 0;
}

static int check_pressure_fds(const struct codec_request *req,
			      struct codec_error *error)
{
	const struct dmaheap_pressure_req *pressure = &req->body.pressure;
	uint32_t n_fds = req->header.n_fds;

	if (pressure->kind == DMAHEAP_PRESSURE_LOAD) {
		if (n_fds == 0)
			return bad(error, EINVAL,
				   "n_fds is 0, LOAD brings 1 to 5");
		return check_fd_kinds(pressure, n_fds, DMAHEAP_TEXT_BUDDYINFO,
				      DMAHEAP_TEXT_VMSTAT, error);
	}
	if (pressure->kind == DMAHEAP_PRESSURE_PLAY) {
		if (n_fds != 1)
			return bad(error, EINVAL,
				   "n_fds is %" PRIu32 ", PLAY brings 1",
				   n_fds);
		return check_fd_kinds(pressure, n_fds, DMAHEAP_TEXT_SCENARIO,
				      DMAHEAP_TEXT_SCENARIO, error);
	}
	if (n_fds)
		return bad(error, EINVAL,
			   "n_fds is %" PRIu32 ", pressure of kind %" PRIu32
			   " brings none",
			   n_fds, pressure->kind);
	return check_fd_kinds(pressure, 0, 0, 0, error);
}

static int check_pressure(struct codec_request *req, struct codec_error *error)
{
	const struct dmaheap_pressure_req *pressure = &req->body.pressure;
	int r;

	r = check_max(pressure->kind, DMAHEAP_PRESSURE_PLAY, "pressure.kind",
		      error);
	if (r == 0)
		r = check_flags(pressure->flags, DMAHEAP_PRESSURE_KEEP,
				"pressure.flags", error);
	if (r == 0)
		r = check_zero(pressure->reserved, "pressure.reserved", error);
	if (r == 0 && pressure->kind != DMAHEAP_PRESSURE_FILL)
		r = check_zero(pressure->leave_bytes, "pressure.leave_bytes",
			       error);
	if (r == 0)
		r = pressure->kind == DMAHEAP_PRESSURE_FRAGMENT
			    ? check_max(pressure->max_order,
					DMAHEAP_ORDER_COUNT - 1,
					"pressure.max_order", error)
			    : check_zero(pressure->max_order,
					 "pressure.max_order", error);
	if (r == 0)
		r = check_pressure_fds(req, error);
	return r;
}

static int check_inject(struct codec_request *req, struct codec_error *error)
{
	const struct dmaheap_inject_req *inject = &req->body.inject;
	int r;

	r = check_flags(inject->flags,
			DMAHEAP_INJECT_KEEP | DMAHEAP_INJECT_CLEAR,
			"inject.flags", error);
	if (r == 0)
		r = check_max(inject->fail_rate_ppm, PPM,
			      "inject.fail_rate_ppm", error);
	if (r == 0)
		r = check_max(inject->stall_ms, INJECT_MAX_STALL_MS,
			      "inject.stall_ms", error);
	if (r)
		return r;
	if (inject->fail_nth && inject->fail_rate_ppm)
		return bad(error, EINVAL,
			   "inject.fail_nth and inject.fail_rate_ppm exclude "
			   "each other");
	if (inject->err < 0 || inject->err > INJECT_MAX_ERRNO)
		return bad(error, EINVAL,
			   "inject.err is %" PRId32 ", must be 0 to %d",
			   inject->err, INJECT_MAX_ERRNO);
	return check_name(inject->heap_name, "inject.heap_name", error);
}

static int check_policy_text(const struct codec_request *req,
			     struct codec_error *error)
{
	for (size_t i = 0; i < req->tail_bytes; i++) {
		unsigned char c = (unsigned char)req->tail[i];

		if (c != '\n' && c != '\t' && !is_printable(c))
			return bad(error, EINVAL,
				   "policy text has the unprintable byte "
				   "0x%02x at %zu",
				   c, i);
	}
	return 0;
}

static int check_policy(struct codec_request *req, struct codec_error *error)
{
	const struct dmaheap_policy_req *policy = &req->body.policy;
	int r;

	r = check_max(policy->op, DMAHEAP_POLICY_SET, "policy.op", error);
	if (r == 0)
		r = check_zero(policy->reserved, "policy.reserved", error);
	if (r == 0)
		r = check_name(policy->heap_name, "policy.heap_name", error);
	if (r)
		return r;
	if ((policy->op == DMAHEAP_POLICY_SET) != (req->tail_bytes > 0))
		return bad(error, EINVAL,
			   "policy text is %zu bytes: SET needs one, SHOW has "
			   "none",
			   req->tail_bytes);
	return check_policy_text(req, error);
}

static int check_shrink(struct codec_request *req, struct codec_error *error)
{
	return check_name(req->body.shrink.heap_name, "shrink.heap_name",
			  error);
}

static int check_trace(struct codec_request *req, struct codec_error *error)
{
	int r;

	r = check_flags(req->body.trace.flags, 0, "trace.flags", error);
	if (r == 0)
		r = check_zero(req->body.trace.reserved, "trace.reserved",
			       error);
	return r;
}

struct opcode_row {
	const char *name;
	size_t body_bytes;
	uint32_t min_fds;
	uint32_t max_fds;
	bool has_tail;
	bool is_admin;
	int (*check)(struct codec_request *req, struct codec_error *error);
};

static const struct opcode_row opcodes[] = {
	[DMAHEAP_OP_HELLO] = {.name = "HELLO",
			      .body_bytes = sizeof(struct dmaheap_hello_req),
			      .check = check_hello},
	[DMAHEAP_OP_ALLOC] = {.name = "ALLOC",
			      .body_bytes = sizeof(struct dmaheap_alloc_req),
			      .check = check_alloc},
	[DMAHEAP_OP_HEAPS] = {.name = "HEAPS"},
	[DMAHEAP_OP_SET_NAME] = {.name = "SET_NAME",
				 .body_bytes =
					 sizeof(struct dmaheap_set_name_req),
				 .min_fds = 1,
				 .max_fds = 1,
				 .check = check_set_name},
	[DMAHEAP_OP_BUFFERS] = {.name = "BUFFERS",
				.body_bytes =
					sizeof(struct dmaheap_buffers_req),
				.check = check_buffers},
	[DMAHEAP_OP_STATS] = {.name = "STATS"},
	[DMAHEAP_OP_NODE] = {.name = "NODE",
			     .body_bytes = sizeof(struct dmaheap_node_req),
			     .check = check_node},
	[DMAHEAP_OP_QUOTA] = {.name = "QUOTA"},
	[DMAHEAP_OP_ADOPT] = {.name = "ADOPT",
			      .body_bytes = sizeof(struct dmaheap_adopt_req),
			      .min_fds = 1,
			      .max_fds = DMAHEAP_ADOPT_MAX_COUNT,
			      .check = check_adopt},
	[DMAHEAP_OP_RELEASE] = {.name = "RELEASE",
				.body_bytes =
					sizeof(struct dmaheap_release_req)},
	[DMAHEAP_OP_PRESSURE] = {.name = "PRESSURE",
				 .body_bytes =
					 sizeof(struct dmaheap_pressure_req),
				 .max_fds = DMAHEAP_TEXT_VMSTAT,
				 .is_admin = true,
				 .check = check_pressure},
	[DMAHEAP_OP_INJECT] = {.name = "INJECT",
			       .body_bytes = sizeof(struct dmaheap_inject_req),
			       .is_admin = true,
			       .check = check_inject},
	[DMAHEAP_OP_POLICY] = {.name = "POLICY",
			       .body_bytes = sizeof(struct dmaheap_policy_req),
			       .has_tail = true,
			       .is_admin = true,
			       .check = check_policy},
	[DMAHEAP_OP_SHRINK] = {.name = "SHRINK",
			       .body_bytes = sizeof(struct dmaheap_shrink_req),
			       .is_admin = true,
			       .check = check_shrink},
	[DMAHEAP_OP_RELOAD] = {.name = "RELOAD", .is_admin = true},
	[DMAHEAP_OP_TRACE] = {.name = "TRACE",
			      .body_bytes = sizeof(struct dmaheap_trace_req),
			      .is_admin = true,
			      .check = check_trace},
};

static const struct opcode_row *find_opcode(unsigned int opcode)
{
	if (opcode >= ARRAY_SIZE(opcodes) || !opcodes[opcode].name)
		return NULL;
	return &opcodes[opcode];
}

const char *codec_opcode_name(unsigned int opcode)
{
	const struct opcode_row *row = find_opcode(opcode);

	return row ? row->name : NULL;
}

bool codec_is_admin(const struct codec_request *request)
{
	const struct opcode_row *row = find_opcode(request->header.opcode);

	assert(row); /* a request was parsed */
	if (request->header.opcode == DMAHEAP_OP_POLICY)
		return request->body.policy.op != DMAHEAP_POLICY_SHOW;
	return row->is_admin;
}

static int broken(struct codec_error *error, const char *text)
{
	error->err = EPROTO;
	(void)snprintf(error->text, sizeof(error->text), "%s", text);
	return CODEC_E_BROKEN;
}

static int check_header(const struct dmaheap_header *header, size_t n_fds,
			struct codec_error *error)
{
	const struct opcode_row *row;

	if (header->version != DMAHEAP_PROTOCOL_VERSION)
		return bad(error, EPROTONOSUPPORT,
			   "version is %u, this daemon speaks %u",
			   header->version, DMAHEAP_PROTOCOL_VERSION);
	row = find_opcode(header->opcode);
	if (!row)
		return bad(error, EOPNOTSUPP, "opcode %u is unknown",
			   header->opcode);
	if (header->flags)
		return bad(error, EINVAL,
			   "flags is 0x%" PRIx32 ", must be 0 in a request",
			   header->flags);
	if (header->status)
		return bad(error, EINVAL,
			   "status is %" PRId32 ", must be 0 in a request",
			   header->status);
	if (header->n_fds != n_fds)
		return bad(error, EINVAL, "n_fds is %" PRIu32 ", %zu came",
			   header->n_fds, n_fds);
	if (n_fds < row->min_fds || n_fds > row->max_fds)
		return bad(error, EINVAL,
			   "n_fds is %zu, %s brings %" PRIu32 " to %" PRIu32,
			   n_fds, row->name, row->min_fds, row->max_fds);
	return 0;
}

int codec_parse_header(const void *bytes, size_t n_bytes, size_t n_fds,
		       struct dmaheap_header *ret, struct codec_error *error)
{
	if (n_bytes < sizeof(*ret))
		return broken(error, "message is shorter than a header");
	memcpy(ret, bytes, sizeof(*ret));
	if (ret->magic != DMAHEAP_PROTOCOL_MAGIC)
		return broken(error, "header.magic is not that of dmaheap");
	if (ret->payload_bytes != n_bytes - sizeof(*ret))
		return broken(error, "header.payload_bytes is not what came");
	return check_header(ret, n_fds, error);
}

static int check_zero_tail(const struct opcode_row *row,
			   const unsigned char *payload, size_t n_bytes,
			   struct codec_error *error)
{
	for (size_t i = row->body_bytes; i < n_bytes; i++)
		if (payload[i])
			return bad(error, E2BIG,
				   "%s has %zu bytes, %zu are known, and byte "
				   "%zu beyond them is not 0",
				   row->name, n_bytes, row->body_bytes, i);
	return 0;
}

int codec_parse_body(const struct dmaheap_header *header, const void *payload,
		     struct codec_request *ret, struct codec_error *error)
{
	const struct opcode_row *row = find_opcode(header->opcode);
	size_t n = header->payload_bytes;
	int r;

	assert(row); /* codec_parse_header() let it through */
	ret->header = *header;
	ret->tail = NULL;
	ret->tail_bytes = 0;
	memset(&ret->body, 0, sizeof(ret->body));
	if (n)
		memcpy(&ret->body, payload, MIN(n, row->body_bytes));
	if (n > row->body_bytes) {
		if (row->has_tail) {
			ret->tail = (const char *)payload + row->body_bytes;
			ret->tail_bytes = n - row->body_bytes;
		} else {
			r = check_zero_tail(row, payload, n, error);
			if (r)
				return r;
		}
	}
	return row->check ? row->check(ret, error) : 0;
}

int codec_parse(const void *bytes, size_t n_bytes, size_t n_fds,
		struct codec_request *ret, struct codec_error *error)
{
	struct dmaheap_header header;
	int r;

	r = codec_parse_header(bytes, n_bytes, n_fds, &header, error);
	if (r != CODEC_E_BROKEN)
		ret->header = header;
	if (r)
		return r;
	return codec_parse_body(&header, (const char *)bytes + sizeof(header),
				ret, error);
}

void codec_reply_header(struct dmaheap_header *ret,
			const struct dmaheap_header *request, int status,
			size_t payload_bytes, size_t n_fds)
{
	assert(payload_bytes <= DMAHEAP_MESSAGE_MAX_BYTES - sizeof(*ret));
	*ret = (struct dmaheap_header){
		.magic = DMAHEAP_PROTOCOL_MAGIC,
		.version = DMAHEAP_PROTOCOL_VERSION,
		.opcode = request->opcode,
		.flags = DMAHEAP_F_REPLY,
		.payload_bytes = (uint32_t)payload_bytes,
		.seq = request->seq,
		.n_fds = (uint32_t)n_fds,
		.status = status,
	};
}
