/* SPDX-License-Identifier: MIT */
#ifndef DMAHEAP_PROTOCOL_H
#define DMAHEAP_PROTOCOL_H

/*
 * The wire between dmaheapd and its clients: one message per AF_UNIX
 * SOCK_SEQPACKET packet, little-endian, fixed structs.  docs/protocol.md says
 * what each message means; this header says how it is laid out.
 *
 * Units:     *_bytes, *_ns (nanoseconds), *_ms; order is log2 of pages.
 * Ownership: a received fd belongs to the receiver; a sent fd stays the
 *            sender's to close.
 * Threads:   constants and plain structs only.
 *
 * Rules that hold for every message:
 * - a message is a struct dmaheap_header, the opcode's struct, and where the
 *   opcode says so a tail (records or text);
 * - header.payload_bytes counts everything after the header;
 * - a request struct that is shorter than the one here is zero-extended, a
 *   longer one is accepted when its tail is zero, else -E2BIG;
 * - flag bits and reserved fields without a meaning must be zero, else -EINVAL;
 * - a reply carries the request's seq and opcode and DMAHEAP_F_REPLY; status is
 *   0 or a negated errno, and then the payload is one sentence of UTF-8 text
 *   (no NUL) that names the limit or field, its value and the config key.
 */

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#define DMAHEAP_STATIC_ASSERT_ static_assert
#else
#define DMAHEAP_STATIC_ASSERT_ _Static_assert
#endif

#define DMAHEAP_PROTOCOL_MAGIC	      0x48414d44u /* "DMAH" */
#define DMAHEAP_PROTOCOL_VERSION      1u
#define DMAHEAP_MESSAGE_MAX_BYTES     32768u /* header and payload */
#define DMAHEAP_NAME_MAX_BYTES	      32u /* heap, buffer, policy; with NUL */
#define DMAHEAP_ALLOC_MAX_COUNT	      64u
#define DMAHEAP_ADOPT_MAX_COUNT	      64u
#define DMAHEAP_ORDER_COUNT	      11u /* orders 0..10 */
#define DMAHEAP_ERROR_TEXT_MAX_BYTES  512u
#define DMAHEAP_INJECT_ANY_ID	      0xffffffffu /* any uid, any pid */

/* struct dmaheap_header.flags */
#define DMAHEAP_F_REPLY 0x1u

struct dmaheap_header {
	uint32_t magic;
	uint16_t version;
	uint16_t opcode; /* enum dmaheap_opcode */
	uint32_t flags;
	uint32_t payload_bytes;
	uint64_t seq; /* chosen by the client, returned in the reply */
	uint32_t n_fds;
	int32_t status; /* 0 in requests */
};
DMAHEAP_STATIC_ASSERT_(sizeof(struct dmaheap_header) == 32, "wire layout");

enum dmaheap_opcode {
	DMAHEAP_OP_HELLO = 1,
	DMAHEAP_OP_ALLOC = 2,
	DMAHEAP_OP_HEAPS = 3,
	DMAHEAP_OP_SET_NAME = 4,
	DMAHEAP_OP_BUFFERS = 5,
	DMAHEAP_OP_STATS = 6,
	DMAHEAP_OP_NODE = 7,
	DMAHEAP_OP_QUOTA = 8,
	DMAHEAP_OP_ADOPT = 9,
	DMAHEAP_OP_RELEASE = 10,
	/* administrative from here; POLICY with DMAHEAP_POLICY_SHOW is not */
	DMAHEAP_OP_PRESSURE = 32,
	DMAHEAP_OP_INJECT = 33,
	DMAHEAP_OP_POLICY = 34,
	DMAHEAP_OP_SHRINK = 35,
	DMAHEAP_OP_RELOAD = 36,
	DMAHEAP_OP_TRACE = 37,
};

/* HELLO: must be the first request of a connection. */
struct dmaheap_hello_req {
	uint32_t features; /* must be 0 */
	uint32_t reserved;
	char client_name[DMAHEAP_NAME_MAX_BYTES];
};
DMAHEAP_STATIC_ASSERT_(sizeof(struct dmaheap_hello_req) == 40, "wire layout");

/* struct dmaheap_hello_reply.features */
#define DMAHEAP_FEATURE_EXACT_LIFETIME 0x1u /* else RELEASE is needed */
#define DMAHEAP_FEATURE_ADMIN	       0x2u /* this peer may administer */

struct dmaheap_hello_reply {
	uint32_t features;
	uint32_t page_size_bytes;
	uint64_t instance_id; /* another number after each daemon start */
	int32_t daemon_pid;
	uint32_t reserved;
	char daemon_version[DMAHEAP_NAME_MAX_BYTES];
};
DMAHEAP_STATIC_ASSERT_(sizeof(struct dmaheap_hello_reply) == 56, "wire layout");

/* ALLOC: all @count buffers or none. */
struct dmaheap_alloc_req {
	uint64_t len_bytes;  /* rounded up to the page size by the daemon */
	uint64_t heap_flags; /* must be 0 */
	uint32_t fd_flags;   /* O_CLOEXEC and one access mode, not 3 */
	uint32_t count;	     /* 1..DMAHEAP_ALLOC_MAX_COUNT */
	char heap_name[DMAHEAP_NAME_MAX_BYTES];
};
DMAHEAP_STATIC_ASSERT_(sizeof(struct dmaheap_alloc_req) == 56, "wire layout");

/* Where a buffer's blocks came from. */
enum dmaheap_source {
	DMAHEAP_SOURCE_NODE = 0,
	DMAHEAP_SOURCE_POOL = 1,
	DMAHEAP_SOURCE_PARKED = 2,
	DMAHEAP_SOURCE_MIXED = 3, /* pool and node */
	DMAHEAP_SOURCE_ADOPTED = 4,
};

enum dmaheap_backing {
	DMAHEAP_BACKING_AUTO = 0, /* only ever as "asked" */
	DMAHEAP_BACKING_PLAIN = 1,
	DMAHEAP_BACKING_COLLAPSE = 2,
	DMAHEAP_BACKING_FOLIO = 3,
	DMAHEAP_BACKING_HUGETLB = 4,
};

/* Why the heap left an order for a smaller one. */
enum dmaheap_fallback {
	DMAHEAP_FALLBACK_NONE = 0,	/* not tried, or never failed */
	DMAHEAP_FALLBACK_TOO_LARGE = 1, /* the rest of the buffer is smaller */
	DMAHEAP_FALLBACK_NO_BLOCK = 2,	/* no free block of this order or above */
	DMAHEAP_FALLBACK_WATERMARK = 3, /* free, but below the watermark */
	DMAHEAP_FALLBACK_RECLAIM = 4,	/* reclaim and compaction failed too */
	DMAHEAP_FALLBACK_INJECTED = 5,
};

/* One buffer of an ALLOC reply; fd i of the message belongs to record i. */
struct dmaheap_alloc_report {
	uint64_t id;
	uint64_t size_bytes;
	uint32_t blocks[DMAHEAP_ORDER_COUNT];	/* by order */
	uint8_t fallback[DMAHEAP_ORDER_COUNT];	/* enum dmaheap_fallback */
	uint8_t source;				/* enum dmaheap_source */
	uint8_t backing_asked;			/* enum dmaheap_backing */
	uint8_t backing_got;
	uint8_t reserved[6];
	/* measured on the daemon's clock */
	uint64_t measured_total_ns;   /* request received to reply ready */
	uint64_t measured_queue_ns;   /* waiting for its turn or a worker */
	uint64_t measured_node_ns;    /* computing the model */
	uint64_t measured_populate_ns;
	uint64_t waited_stall_ns;     /* timer that waited out the stall */
	/* computed by the model */
	uint64_t modelled_node_ns;    /* the device's whole latency */
	uint64_t modelled_stall_ns;   /* of it in reclaim and compaction */
	char backing_reason[64];      /* why not a better backing, or "" */
};
DMAHEAP_STATIC_ASSERT_(sizeof(struct dmaheap_alloc_report) == 200,
		       "wire layout");

struct dmaheap_alloc_reply {
	uint32_t n_records; /* equals the header's n_fds */
	uint32_t record_bytes;
	/* followed by the records */
};

/* HEAPS: no request body. */
#define DMAHEAP_HEAP_UNCACHED 0x1u

struct dmaheap_heap_record {
	char name[DMAHEAP_NAME_MAX_BYTES];
	char policy[DMAHEAP_NAME_MAX_BYTES];
	char aliases[128]; /* separated by single spaces */
	uint32_t flags;	   /* DMAHEAP_HEAP_* */
	uint32_t reserved;
};
DMAHEAP_STATIC_ASSERT_(sizeof(struct dmaheap_heap_record) == 200,
		       "wire layout");

struct dmaheap_records_reply { /* HEAPS, QUOTA */
	uint32_t n_records;
	uint32_t record_bytes;
	/* followed by the records */
};

/* SET_NAME: one fd, the buffer. An empty name clears it. */
struct dmaheap_set_name_req {
	char name[DMAHEAP_NAME_MAX_BYTES]; /* at most 31 bytes and a NUL */
};

/* BUFFERS: in rising order of id, from the first id above @after_id. */
struct dmaheap_buffers_req {
	uint64_t after_id;
	uint32_t max_records; /* 0: as many as fit */
	uint32_t flags;	      /* must be 0 */
};

enum dmaheap_buffer_state {
	DMAHEAP_BUFFER_LIVE = 0,
	DMAHEAP_BUFFER_RELEASED = 1, /* last reference gone, not yet pooled */
	DMAHEAP_BUFFER_PARKED = 2,
};

struct dmaheap_buffer_record {
	uint64_t id;
	uint64_t size_bytes;
	uint64_t age_ns;
	uint64_t dev; /* st_dev and st_ino of the memfd */
	uint64_t ino;
	uint32_t uid;
	int32_t pid; /* of the process that asked; 0: not visible here */
	uint32_t blocks[DMAHEAP_ORDER_COUNT];
	uint8_t state;	       /* enum dmaheap_buffer_state */
	uint8_t backing;       /* enum dmaheap_backing */
	uint8_t owner_is_dead; /* the process @pid has ended */
	uint8_t reserved;
	char heap[DMAHEAP_NAME_MAX_BYTES];
	char name[DMAHEAP_NAME_MAX_BYTES];
};
DMAHEAP_STATIC_ASSERT_(sizeof(struct dmaheap_buffer_record) == 160,
		       "wire layout");

struct dmaheap_buffers_reply {
	uint32_t n_records;
	uint32_t record_bytes;
	uint32_t more; /* 1: ask again after the last id */
	uint32_t reserved;
	/* followed by the records */
};

/* STATS: no request body; the reply carries one fd, see stats.h. */
struct dmaheap_stats_reply {
	uint64_t segment_bytes;
};

/* NODE: a text in the format of the kernel's file of that name. */
enum dmaheap_node_text {
	DMAHEAP_NODE_BUDDYINFO = 0,
	DMAHEAP_NODE_PAGETYPEINFO = 1,
	DMAHEAP_NODE_VMSTAT = 2,
	DMAHEAP_NODE_ZONEINFO = 3,
	DMAHEAP_NODE_SLABINFO = 4,
};

struct dmaheap_node_req {
	uint32_t text; /* enum dmaheap_node_text */
	uint32_t reserved;
	uint64_t offset_bytes; /* 0 renders afresh; more continues that text */
};

struct dmaheap_text_reply { /* NODE and POLICY */
	uint64_t total_bytes;
	uint64_t offset_bytes;
	/* followed by as much of the text as fits */
};

/* QUOTA: no request body. */
struct dmaheap_quota_record {
	uint32_t uid;
	uint32_t reserved;
	uint64_t bytes_used;
	uint64_t bytes_limit;
	uint64_t buffers_used;
	uint64_t buffers_limit;
	uint64_t connections_used;
	uint64_t connections_limit;
	uint64_t requests_per_s_limit; /* 0: none */
	uint64_t denied;	       /* requests refused so far */
};
DMAHEAP_STATIC_ASSERT_(sizeof(struct dmaheap_quota_record) == 72,
		       "wire layout");

/* ADOPT: 1..DMAHEAP_ADOPT_MAX_COUNT fds of buffers of an earlier daemon. */
struct dmaheap_adopt_req {
	uint32_t flags; /* must be 0 */
	uint32_t reserved;
};

struct dmaheap_adopt_record {
	uint64_t id; /* of the buffer in this daemon */
	int32_t status;
	uint32_t reserved;
};

/* RELEASE: only where FEATURE_EXACT_LIFETIME is missing. */
struct dmaheap_release_req {
	uint64_t id;
};

/* PRESSURE */
#define DMAHEAP_PRESSURE_KEEP 0x1u /* survives the connection */

enum dmaheap_pressure_kind {
	DMAHEAP_PRESSURE_STATUS = 0, /* reply: text */
	DMAHEAP_PRESSURE_RELEASE = 1,
	DMAHEAP_PRESSURE_LOW_MEMORY = 2,
	DMAHEAP_PRESSURE_FILL = 3,     /* leave @leave_bytes free */
	DMAHEAP_PRESSURE_FRAGMENT = 4, /* no free block above @max_order */
	DMAHEAP_PRESSURE_LOAD = 5,     /* fds: a snapshot's texts */
	DMAHEAP_PRESSURE_PLAY = 6,     /* one fd: a scenario's text */
};

/* What an fd of LOAD or PLAY holds; each is a memfd sealed against change. */
enum dmaheap_text_kind {
	DMAHEAP_TEXT_BUDDYINFO = 1,
	DMAHEAP_TEXT_PAGETYPEINFO = 2,
	DMAHEAP_TEXT_ZONEINFO = 3,
	DMAHEAP_TEXT_MEMINFO = 4,
	DMAHEAP_TEXT_VMSTAT = 5,
	DMAHEAP_TEXT_SCENARIO = 6,
};

struct dmaheap_pressure_req {
	uint32_t kind;
	uint32_t flags;
	uint64_t leave_bytes;
	uint32_t max_order;
	uint32_t reserved;
	uint8_t fd_kinds[8]; /* enum dmaheap_text_kind of fd i; 0: none */
};

/* INJECT: the sentence of a failure that was injected, and of no other, ends
 * with this text. */
#define DMAHEAP_INJECTED_TEXT "failure injected (dmaheapctl inject)"
#define DMAHEAP_INJECT_KEEP  0x1u
#define DMAHEAP_INJECT_CLEAR 0x2u

struct dmaheap_inject_req {
	uint32_t flags;
	uint32_t uid; /* DMAHEAP_INJECT_ANY_ID: any */
	uint32_t pid;
	uint32_t fail_nth;	/* 0: not by number */
	uint32_t fail_rate_ppm; /* 0: not by chance */
	int32_t err;		/* errno > 0 of the failure; 0: ENOMEM */
	uint32_t stall_ms;
	uint32_t count; /* ends after so many hits; 0: 1 with fail_nth, or never */
	char heap_name[DMAHEAP_NAME_MAX_BYTES]; /* "": any */
};

/* POLICY: SET is followed by lines KEY=VALUE; SHOW replies with them. */
enum dmaheap_policy_op {
	DMAHEAP_POLICY_SHOW = 0,
	DMAHEAP_POLICY_SET = 1,
};

struct dmaheap_policy_req {
	uint32_t op;
	uint32_t reserved;
	char heap_name[DMAHEAP_NAME_MAX_BYTES];
};

/* SHRINK: pools give blocks back to the node until they hold @to_bytes. */
struct dmaheap_shrink_req {
	uint64_t to_bytes;
	char heap_name[DMAHEAP_NAME_MAX_BYTES]; /* "": all heaps */
};

struct dmaheap_shrink_reply {
	uint64_t freed_bytes;
	uint64_t pool_bytes; /* left */
};

/* TRACE: the reply carries the reading end of a pipe of text lines. */
struct dmaheap_trace_req {
	uint32_t flags; /* must be 0 */
	uint32_t reserved;
};

#ifdef __cplusplus
}
#endif

#endif
