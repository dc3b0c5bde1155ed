/* SPDX-License-Identifier: MIT */
/*
 * Random requests against quotas, heaps and node as the server drives them. The
 * first four bytes choose the node, each further four are one step:
 * operation, which object, and an amount. After every step the sums must be
 * right, and every few steps, and in the end, every invariant must hold.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "fuzz.h"
#include "heap/system_heap.h"
#include "mm/node.h"
#include "server/quota.h"

#define MAX_BUFFERS    64u
#define MAX_STEPS      80u
#define STEPS_TO_CHECK 32u
#define STEP_BYTES     4u
#define PAGE_BYTES     4096u

struct entry {
	struct buffer *buffer; /* NULL: free */
	struct quota_charge charge;
};

static struct node *node;
static struct heap_set *set;
static struct heap *heaps[2];
static struct quota *quota;
static struct entry entries[MAX_BUFFERS];
static uint64_t now_ns;

/* ---- the world ---- */

static void unpark(void *ctx, struct buffer *buffer)
{
	struct entry *e = buffer->owner;

	(void)ctx;
	FUZZ_REQUIRE(e && e->buffer == buffer);
	FUZZ_REQUIRE(buffer->state == BUFFER_PARKED);
	e->buffer = NULL;
}

static const struct heap_set_ops ops = {.unpark = unpark};

static void make_node(const uint8_t *data)
{
	static const char *const occupants[] = {
		"",
		"file:30% anon:20%",
		"kernel:10% slab:5%",
		"dirty:20% mlocked:10% active:10%",
	};
	struct node_params params = {
		.size_bytes = MIB(16),
		.swap = (enum node_swap)(data[1] % 3),
		.compaction_proactiveness = data[1] % 101u,
		.compact_unevictable_denied = data[2] & 1,
		.n_cpus = 1 + data[2] % 4u,
		.seed = data[3],
	};
	struct node_error error;
	int r;

	(void)snprintf(params.occupants, sizeof(params.occupants), "%s",
		       occupants[data[3] % 4]);
	r = node_new(&node, &params, &error);
	if (r == NODE_E_INVALID)
		fprintf(stderr, "node_new: %s\n", error.text);
	FUZZ_REQUIRE(r == 0);
}

static void make_world(const uint8_t *data)
{
	static const char *const policies[] = {"840-high", "840-mid", "800",
					       "940-high", "0-only"};
	struct policy policy;
	struct heap_params params = {.name = "system",
				     .aliases = "reserved",
				     .policy = &policy};
	struct quota_rules rules = {
		.limits = {.bytes = MIB(8), .buffers = 40, .connections = 10}};

	make_node(data);
	FUZZ_REQUIRE(heap_set_new(&set, node, &ops, NULL) == 0);
	FUZZ_REQUIRE(policy_shipped(&policy, policies[data[0] % 5]));
	FUZZ_REQUIRE(heap_new(&heaps[0], set, &params) == 0);
	params.name = "other";
	params.aliases = NULL;
	FUZZ_REQUIRE(policy_shipped(&policy, policies[data[1] % 5]));
	FUZZ_REQUIRE(heap_new(&heaps[1], set, &params) == 0);
	FUZZ_REQUIRE(quota_new(&quota) == 0);
	quota_set_rules(quota, &rules);
	now_ns = 0;
}

static void check_sums(void)
{
	struct node_page_counts c;
	uint64_t sum;

	node_page_counts(node, &c);
	sum = c.free_pages + c.allocated_pages;
	for (int i = 0; i < NODE_OCCUPANTS; i++)
		sum += c.occupant_pages[i];
	FUZZ_REQUIRE(sum + c.reserved_pages == c.total_pages);
	FUZZ_REQUIRE(heap_set_pages(set) == c.allocated_pages);
}

static void check_all(void)
{
	const char *what = "";

	if (!node_check(node, &what))
		fprintf(stderr, "node_check: %s\n", what);
	FUZZ_REQUIRE(node_check(node, NULL));
	FUZZ_REQUIRE(heap_set_check(set));
}

/* ---- steps ---- */

static struct entry *free_entry(void)
{
	for (size_t i = 0; i < MAX_BUFFERS; i++)
		if (!entries[i].buffer)
			return &entries[i];
	return NULL;
}

static uint64_t len_of(uint16_t amount)
{
	/* Mostly small; now and then more than the node has. */
	return amount & 0x8000u
		       ? (1 + (uint64_t)(amount & 0x7fffu)) * PAGE_BYTES
		       : 1 + (uint64_t)amount * 64;
}

static bool charge(struct entry *e, uint32_t uid, uint64_t len_bytes)
{
	struct quota_charge want = {.bytes = len_bytes, .buffers = 1};
	struct quota_denial denial;
	char text[256];
	int r = quota_charge(quota, uid, &want, &e->charge, &denial);

	if (r == QUOTA_E_EXCEEDED) {
		quota_denial_text(&denial, text, sizeof(text));
		FUZZ_REQUIRE(text[0]);
	}
	return r == 0;
}

static void check_buffer(const struct buffer *b, uint64_t len_bytes)
{
	uint64_t whole = (len_bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;

	FUZZ_REQUIRE(b->len_bytes == whole);
	FUZZ_REQUIRE(composition_bytes(b->composition, PAGE_BYTES) == whole);
}

static void step_alloc(struct heap *heap, uint32_t uid, uint64_t len_bytes)
{
	struct heap_request req = {.uid = uid,
				   .len_bytes = len_bytes,
				   .start_ns = now_ns,
				   .cpu = uid};
	struct entry *e = free_entry();
	struct buffer *b;
	int r;

	if (!e || !charge(e, uid, len_bytes))
		return;
	b = heap_find_parked(heap, uid, len_bytes);
	if (b) {
		struct entry *parked = b->owner;

		heap_take_parked(heap, b);
		parked->charge = e->charge;
		e->charge = (struct quota_charge){0};
		check_buffer(b, len_bytes);
		return;
	}
	r = heap_alloc(heap, &req, &b);
	FUZZ_REQUIRE(r == 0 || r == HEAP_E_NO_MEMORY || r == HEAP_E_TOO_LARGE);
	FUZZ_REQUIRE(req.stall_ns <= req.spent_ns);
	if (r) {
		quota_charge_release(&e->charge);
		return;
	}
	check_buffer(b, len_bytes);
	b->owner = e;
	e->buffer = b;
	now_ns += req.spent_ns;
}

static void step_adopt(struct heap *heap, uint32_t uid, uint16_t amount)
{
	uint32_t composition[POLICY_ORDER_COUNT] = {[0] = amount & 7u,
						    [4] = (amount >> 3) & 3u,
						    [8] = amount >> 15};
	uint64_t len_bytes = composition_bytes(composition, PAGE_BYTES);
	struct entry *e = free_entry();
	struct buffer *b;
	int r;

	if (!e)
		return;
	if (amount & 0x4000u)
		len_bytes += PAGE_BYTES; /* does not add up */
	r = heap_adopt(heap, uid, amount, len_bytes, composition, &b);
	if (r) {
		FUZZ_REQUIRE(r == HEAP_E_COMPOSITION || r == HEAP_E_NO_MEMORY);
		return;
	}
	check_buffer(b, len_bytes);
	b->owner = e;
	e->buffer = b;
}

static void release(struct entry *e)
{
	if (!e->buffer || e->buffer->state != BUFFER_LIVE)
		return;
	heap_release(e->buffer->heap, e->buffer);
	quota_charge_release(&e->charge);
}

static void finish(struct entry *e, enum heap_finish how)
{
	struct buffer *b = e->buffer;
	int r;

	if (!b || b->state != BUFFER_RELEASED)
		return;
	r = heap_finish(b->heap, b, how);
	FUZZ_REQUIRE(r == 0 || r == HEAP_E_NOT_PARKED);
	if (r == HEAP_E_NOT_PARKED || how != HEAP_FINISH_PARK)
		e->buffer = NULL;
}

static void step_pressure(uint8_t kind, uint16_t amount)
{
	switch (kind % 6) {
	case 0:
		node_pressure_low_memory(node);
		break;
	case 1:
		node_pressure_fill(node, (uint64_t)amount * 256);
		break;
	case 2:
		node_pressure_fragment(node, amount % 11u);
		break;
	case 3:
		(void)node_occupy(node,
				  (enum node_occupant)(amount % NODE_OCCUPANTS),
				  amount);
		break;
	case 4:
		(void)node_vacate(node,
				  (enum node_occupant)(amount % NODE_OCCUPANTS),
				  amount);
		break;
	default:
		node_pressure_release(node);
		break;
	}
}

static void step_policy(struct heap *heap, uint8_t which, uint16_t amount)
{
	static const char *const keys[] = {"orders",       "gfp.4",
					   "gfp.8",        "pool.8.limit",
					   "pool.4.limit", "pool.limit",
					   "pool.refill",  "pool.4.mark",
					   "gfp.0",        "nonsense"};
	static const char *const values[] = {"8 4 0",      "8 0",
					     "9 4 0",      "0",
					     "10 8 8 2 0", "64K",
					     "1M",         "on",
					     "HIGH_ORDER", "MID_ORDER",
					     "none",       "off",
					     "4 8",        "LOW_ORDER|NORETRY"};
	struct policy policy = *heap_policy(heap);
	struct policy_error error = {0};
	int r = policy_set(&policy, keys[which % 10],
			   values[amount %
				  (sizeof(values) / sizeof(values[0]))],
			   &error);

	if (r == 0)
		heap_set_policy(heap, &policy);
	else
		FUZZ_REQUIRE(error.text[0]);
}

static void step_render(void)
{
	struct strbuf text = STRBUF_INIT;

	node_render_buddyinfo(node, &text);
	node_render_pagetypeinfo(node, &text);
	node_render_zoneinfo(node, &text);
	node_render_meminfo(node, &text);
	node_render_vmstat(node, &text);
	node_pressure_render(node, &text);
	policy_render(heap_policy(heaps[0]), &text);
	FUZZ_REQUIRE(!strbuf_failed(&text));
	strbuf_fini(&text);
}

static void step(const uint8_t *data)
{
	struct heap *heap = heaps[data[1] & 1];
	struct entry *e = &entries[data[1] % MAX_BUFFERS];
	uint16_t amount = (uint16_t)(data[2] | data[3] << 8);
	uint32_t uid = data[1] % 3u;

	switch (data[0] % 16) {
	case 0:
	case 1:
	case 2:
	case 3:
		step_alloc(heap, uid, len_of(amount));
		break;
	case 4:
	case 5:
		release(e);
		break;
	case 6:
	case 7:
		release(e);
		finish(e, (enum heap_finish)(amount % 3));
		break;
	case 8:
		finish(e, (enum heap_finish)(amount % 3));
		break;
	case 9:
		step_adopt(heap, uid, amount);
		break;
	case 10:
		(void)heap_shrink(heap, (uint64_t)amount * 64);
		break;
	case 11:
		now_ns += (uint64_t)amount * 1000 << (data[1] % 16);
		node_advance(node, now_ns);
		break;
	case 12:
		(void)heap_refill(heap, now_ns);
		break;
	case 13:
		step_pressure(data[1], amount);
		break;
	case 14:
		step_policy(heap, data[1], amount);
		break;
	default:
		step_render();
		break;
	}
	check_sums();
}

/* Everything is given back, and then nothing may be left. */
static void end_world(void)
{
	struct node_page_counts c;

	for (size_t i = 0; i < MAX_BUFFERS; i++) {
		release(&entries[i]);
		finish(&entries[i], HEAP_FINISH_NODE);
	}
	for (size_t i = 0; i < 2; i++)
		(void)heap_shrink(heaps[i], 0);
	for (size_t i = 0; i < MAX_BUFFERS; i++) {
		FUZZ_REQUIRE(!entries[i].buffer);
		FUZZ_REQUIRE(entries[i].charge.bytes == 0);
	}
	check_sums();
	check_all();
	set = heap_set_free(set);
	node_page_counts(node, &c);
	FUZZ_REQUIRE(c.allocated_pages == 0);
	quota = quota_free(quota);
	node = node_free(node);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	size_t n_steps = 0;

	if (n_bytes < STEP_BYTES)
		return 0;
	memset(entries, 0, sizeof(entries));
	make_world(data);
	for (size_t at = STEP_BYTES;
	     at + STEP_BYTES <= n_bytes && n_steps < MAX_STEPS;
	     at += STEP_BYTES) {
		step(data + at);
		if (++n_steps % STEPS_TO_CHECK == 0)
			check_all();
	}
	end_world();
	return 0;
}
