/* SPDX-License-Identifier: MIT */
#include "lab/replay.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/parse.h"
#include "lab/id_map.h"
#include "lab/trace.h"
#include "mm/node.h"

/*
 * The trace's ids are names for buffers of the replay. A buffer that the record
 * got and the replay did not has no entry; one that only the replay got is
 * given back at once, since nobody will.
 */

struct replay {
	struct node *node;
	struct heap_set *heaps;
	struct lab_table *out;
	struct replay_counts *counts;
	const struct lab_overrides *overrides;
	struct policy instead; /* of the record's, if @overrides has one */
	struct conf_error *err;
	struct id_map ids;
	uint32_t n_in_set[LAB_HEAPS_MAX];
	uint64_t first_id; /* the smallest of the record's; 0: none yet */
};

static int remember(struct replay *r, uint64_t id, struct buffer *buffer)
{
	buffer->owner = (void *)(uintptr_t)id;
	return id_map_set(&r->ids, id, buffer);
}

static struct id_slot *find_id(const struct replay *r, uint64_t id)
{
	return id_map_find(&r->ids, id);
}

static void forget_parked(void *ctx, struct buffer *buffer)
{
	struct id_slot *slot = find_id(ctx, (uint64_t)(uintptr_t)buffer->owner);

	if (slot)
		slot->buffer = NULL;
}

static const struct heap_set_ops replay_ops = {.unpark = forget_parked};

static int find_heap(const struct replay *r, const struct trace_event *event,
		     struct heap **ret, uint32_t *ret_set)
{
	const struct conf_entry *entry;
	struct heap *heap;
	int e = trace_need(event, "heap", &entry, r->err);

	if (e)
		return e;
	heap = heap_set_find(r->heaps, entry->value);
	if (!heap)
		return conf_entry_error(entry, r->err,
					"no such heap in the trace so far");
	*ret = heap;
	*ret_set = 1;
	while (heap_set_get(r->heaps, *ret_set - 1) != heap)
		++*ret_set;
	return 0;
}

static void ignore_orders(const struct replay *r, struct policy *policy)
{
	struct policy other = r->instead;

	if (r->overrides->n_policies == 0)
		return;
	memcpy(other.pool_limit_bytes, policy->pool_limit_bytes,
	       sizeof(other.pool_limit_bytes));
	memcpy(other.pool_mark_bytes, policy->pool_mark_bytes,
	       sizeof(other.pool_mark_bytes));
	other.pool_refill = policy->pool_refill;
	*policy = other;
}

/* All keys but @name_key are a policy's. */
static int read_policy(const struct replay *r, const struct trace_event *event,
		       const char *name_key, struct policy *policy)
{
	struct policy_error why;

	for (size_t i = 0; i < event->n_keys; i++) {
		const struct conf_entry *entry = &event->keys[i];

		if (!strcmp(entry->key, name_key))
			continue;
		if (policy_set(policy, entry->key, entry->value, &why))
			return conf_entry_error(entry, r->err, "%s", why.text);
	}
	ignore_orders(r, policy);
	return 0;
}

static int on_heap(struct replay *r, const struct trace_event *event)
{
	struct policy policy = policy_default();
	const struct conf_entry *name;
	struct heap *heap;
	int e = trace_need(event, "name", &name, r->err);

	if (!e)
		e = read_policy(r, event, "name", &policy);
	if (e)
		return e;
	if (heap_set_get(r->heaps, LAB_HEAPS_MAX - 1))
		return trace_error(event, r->err, "more than %u heaps",
				   LAB_HEAPS_MAX);
	e = heap_new(&heap, r->heaps,
		     &(struct heap_params){.name = name->value,
					   .policy = &policy});
	if (e > 0)
		return conf_entry_error(name, r->err,
					"not a heap's name, or there twice");
	if (!e && heap_set_get(r->heaps, 0) == heap)
		r->out->steps = policy;
	return e;
}

static int on_policy(struct replay *r, const struct trace_event *event)
{
	struct policy policy;
	struct heap *heap;
	uint32_t set;
	int e = find_heap(r, event, &heap, &set);

	if (e)
		return e;
	policy = *heap_policy(heap);
	e = read_policy(r, event, "heap", &policy);
	if (!e)
		heap_set_policy(heap, &policy);
	return e;
}

static void render_blocks(const uint32_t composition[POLICY_ORDER_COUNT],
			  char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (unsigned int o = POLICY_ORDER_COUNT; o-- > 0;) {
		if (composition[o] && used < size)
			used += (size_t)snprintf(text + used, size - used,
						 "%s%u:%" PRIu32,
						 used ? "," : "", o,
						 composition[o]);
	}
}

/* Compares with the record's result, where the line has one. */
static void compare(struct replay *r, const struct trace_event *event,
		    const struct lab_row *row)
{
	const struct conf_entry *status = trace_find(event, "status");
	const struct conf_entry *blocks = trace_find(event, "blocks");
	const struct conf_entry *spent = trace_find(event, "spent_ns");
	bool recorded_failure = status && strcmp(status->value, "0") != 0;
	char text[11 * 14];
	uint64_t spent_ns;

	r->counts->n_allocs++;
	if (!status && !blocks && !spent)
		return;
	r->counts->n_compared++;
	if (recorded_failure != row->failed)
		return;
	render_blocks(row->composition, text, sizeof(text));
	if (!row->failed && blocks && strcmp(blocks->value, text) != 0)
		return;
	r->counts->n_same++;
	if (spent && !parse_u64(spent->value, &spent_ns) &&
	    spent_ns == row->latency_ns)
		r->counts->n_same_time++;
}

static int add_row(struct replay *r, const struct trace_event *event,
		   uint32_t set, const struct heap_request *req,
		   const struct buffer *buffer)
{
	struct lab_row *row = lab_table_add(r->out);

	if (!row)
		return err_raise(-ENOMEM);
	*row = (struct lab_row){
		.set = set,
		.n = ++r->n_in_set[set - 1],
		.failed = !buffer,
		.len_bytes = buffer ? buffer->len_bytes : req->len_bytes,
		.start_ns = req->start_ns,
		.latency_ns = req->spent_ns,
		.stall_ns = req->stall_ns,
	};
	if (buffer)
		memcpy(row->composition, buffer->composition,
		       sizeof(row->composition));
	compare(r, event, row);
	return 0;
}

/* The id that the record gave, 0: none. */
static int recorded_id(struct replay *r, const struct trace_event *event,
		       uint64_t *ret)
{
	const struct conf_entry *entry = trace_find(event, "id");
	int e;

	*ret = 0;
	if (!entry)
		return 0;
	e = conf_entry_u64(entry, 1, UINTPTR_MAX, ret, r->err);
	if (!e && (r->first_id == 0 || *ret < r->first_id))
		r->first_id = *ret;
	if (!e && find_id(r, *ret))
		return conf_entry_error(entry, r->err,
					"a buffer of that id is still there");
	return e;
}

static int end_now(struct buffer *buffer)
{
	heap_release(buffer->heap, buffer);
	return heap_finish(buffer->heap, buffer, HEAP_FINISH_NODE);
}

static int alloc_for(struct replay *r, const struct trace_event *event,
		     struct heap *heap, uint32_t set, uint64_t id,
		     struct heap_request *req)
{
	struct buffer *buffer = NULL;
	int e;

	if (r->counts->n_allocs == 0)
		lab_table_begin(r->out, r->node);
	e = heap_alloc(heap, req, &buffer);
	if (e < 0)
		return err_trace(e);
	e = add_row(r, event, set, req, buffer);
	if (e || !buffer)
		return e;
	return id ? remember(r, id, buffer) : end_now(buffer);
}

static int on_alloc(struct replay *r, const struct trace_event *event)
{
	static const char *const keys[] = {"id",       "heap",     "uid",
					   "size",     "status",   "blocks",
					   "spent_ns", "stall_ns", NULL};
	struct heap_request req = {.start_ns = event->time_ns};
	uint64_t id, uid = 0;
	struct heap *heap;
	uint32_t set;
	int e = trace_only(event, keys, r->err);

	if (!e)
		e = find_heap(r, event, &heap, &set);
	if (!e)
		e = recorded_id(r, event, &id);
	if (!e)
		e = trace_need_u64(event, "uid", UINT32_MAX, &uid, r->err);
	if (!e)
		e = trace_need_u64(event, "size", UINT64_MAX >> 1,
				   &req.len_bytes, r->err);
	if (e)
		return e;
	if (req.len_bytes == 0)
		return trace_error(event, r->err, "size is 0");
	req.uid = (uint32_t)uid;
	return alloc_for(r, event, heap, set, id, &req);
}

static int find_buffer(struct replay *r, const struct trace_event *event,
		       struct id_slot **ret, uint64_t *ret_id)
{
	uint64_t id = 0;
	int e = trace_need_u64(event, "id", UINTPTR_MAX, &id, r->err);

	if (e)
		return e;
	*ret_id = id;
	*ret = id ? find_id(r, id) : NULL;
	if (!*ret)
		r->counts->n_unknown++;
	return 0;
}

static int on_take(struct replay *r, const struct trace_event *event)
{
	static const char *const keys[] = {"id", "heap", "uid", NULL};
	struct id_slot *slot;
	uint64_t id;
	int e = trace_only(event, keys, r->err);

	if (!e)
		e = find_buffer(r, event, &slot, &id);
	if (e)
		return e;
	/* Ids rise: a smaller one was parked before the trace began. */
	if (!slot && (r->first_id == 0 || id < r->first_id))
		r->counts->n_missing++;
	if (!slot || slot->buffer->state != BUFFER_PARKED)
		return 0;
	r->counts->n_taken++;
	heap_take_parked(slot->buffer->heap, slot->buffer);
	return 0;
}

static int on_release(struct replay *r, const struct trace_event *event)
{
	static const char *const keys[] = {"id", NULL};
	struct id_slot *slot;
	uint64_t id;
	int e = trace_only(event, keys, r->err);

	if (!e)
		e = find_buffer(r, event, &slot, &id);
	if (!e && slot && slot->buffer->state == BUFFER_LIVE)
		heap_release(slot->buffer->heap, slot->buffer);
	return e;
}

static int on_finish(struct replay *r, const struct trace_event *event)
{
	static const char *const keys[] = {"id", "how", NULL};
	static const char *const names[] = {
		[HEAP_FINISH_PARK] = "park",
		[HEAP_FINISH_POOL] = "pool",
		[HEAP_FINISH_NODE] = "node",
	};
	const struct conf_entry *entry;
	struct id_slot *slot;
	uint64_t id;
	struct buffer *buffer;
	unsigned int how;
	int e = trace_only(event, keys, r->err);

	if (!e)
		e = trace_need(event, "how", &entry, r->err);
	if (!e)
		e = conf_entry_enum(entry, names, ARRAY_SIZE(names), &how,
				    r->err);
	if (!e)
		e = find_buffer(r, event, &slot, &id);
	if (e || !slot || slot->buffer->state != BUFFER_RELEASED)
		return e;
	buffer = slot->buffer;
	e = heap_finish(buffer->heap, buffer, (enum heap_finish)how);
	if (e || how != HEAP_FINISH_PARK)
		slot->buffer = NULL;
	return e == HEAP_E_NOT_PARKED ? 0 : e;
}

static int on_shrink(struct replay *r, const struct trace_event *event)
{
	static const char *const keys[] = {"heap", "to", NULL};
	struct heap *heap;
	uint64_t to = 0;
	uint32_t set;
	int e = trace_only(event, keys, r->err);

	if (!e)
		e = find_heap(r, event, &heap, &set);
	if (!e)
		e = trace_need_u64(event, "to", UINT64_MAX, &to, r->err);
	if (!e)
		(void)heap_shrink(heap, to);
	return e;
}

static int on_refill(struct replay *r, const struct trace_event *event)
{
	static const char *const keys[] = {"heap", NULL};
	struct heap *heap;
	uint32_t set;
	int e = trace_only(event, keys, r->err);

	if (!e)
		e = find_heap(r, event, &heap, &set);
	if (!e)
		(void)heap_refill(heap, event->time_ns);
	return e;
}

static int on_pressure(struct replay *r, const struct trace_event *event)
{
	static const char *const keys[] = {"kind", "leave", "max_order", NULL};
	static const char *const names[] = {"low-memory", "fill", "fragment",
					    "release"};
	const struct conf_entry *entry;
	uint64_t value = 0;
	unsigned int kind;
	int e = trace_only(event, keys, r->err);

	if (!e)
		e = trace_need(event, "kind", &entry, r->err);
	if (!e)
		e = conf_entry_enum(entry, names, ARRAY_SIZE(names), &kind,
				    r->err);
	if (!e && kind == 1)
		e = trace_need_u64(event, "leave", UINT64_MAX, &value, r->err);
	if (!e && kind == 2)
		e = trace_need_u64(event, "max_order", NODE_MAX_ORDER, &value,
				   r->err);
	if (e)
		return e;
	if (kind == 0)
		node_pressure_low_memory(r->node);
	else if (kind == 1)
		node_pressure_fill(r->node, value);
	else if (kind == 2)
		node_pressure_fragment(r->node, (unsigned int)value);
	else
		node_pressure_release(r->node);
	return 0;
}

static const struct {
	const char *name;
	int (*fn)(struct replay *r, const struct trace_event *event);
} events[] = {
	{"heap", on_heap},         {"policy", on_policy},
	{"alloc", on_alloc},       {"take", on_take},
	{"release", on_release},   {"finish", on_finish},
	{"shrink", on_shrink},     {"refill", on_refill},
	{"pressure", on_pressure},
};

static int replay_event(struct replay *r, const struct trace_event *event)
{
	for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
		if (strcmp(events[i].name, event->name) != 0)
			continue;
		node_advance(r->node, event->time_ns);
		return events[i].fn(r, event);
	}
	return trace_error(event, r->err,
			   "no such event; allowed are heap, policy, alloc, "
			   "take, release, finish, shrink, refill, pressure");
}

static int replay_open(struct replay *r, struct trace_reader *reader)
{
	struct trace_event event;
	struct conf_section section = {.kind = "node", .name = ""};
	int e = trace_read_node(reader, &event, r->err);

	if (e)
		return e;
	/* Lists have commas here and blanks in a configuration. */
	for (size_t i = 0; i < event.n_keys; i++) {
		char *value = (char *)(uintptr_t)event.keys[i].value;

		for (char *c = value; *c; c++) {
			if (*c == ',')
				*c = ' ';
		}
	}
	section.file = event.file;
	section.line = event.line;
	section.entries = event.keys;
	section.n_entries = event.n_keys;
	e = lab_node_from_section(&r->node, &section, r->overrides,
				  r->out->profile, r->err);
	if (e)
		return e;
	e = heap_set_new(&r->heaps, r->node, &replay_ops, r);
	if (e)
		return err_fold(e);
	return lab_table_alloc_vmstat(r->out);
}

static void replay_results(struct replay *r)
{
	struct node_page_counts counts;
	struct heap *heap = heap_set_get(r->heaps, 0);

	node_page_counts(r->node, &counts);
	r->out->node_bytes =
		counts.total_pages * node_params(r->node)->page_size_bytes;
	r->out->seed = node_params(r->node)->seed;
	for (unsigned int i = 0; i < node_vmstat_count(); i++)
		r->out->vmstat[i] = node_vmstat_value(r->node, i);
	if (heap) {
		heap_get_stats(heap, &r->out->heap);
		(void)snprintf(r->out->policy, sizeof(r->out->policy), "%s",
			       heap_policy(heap)->name);
		(void)snprintf(r->out->policy_name, sizeof(r->out->policy_name),
			       "%s", heap_policy(heap)->name);
	}
}

int replay_run(struct lab_table *ret, struct replay_counts *counts,
	       const char *file, char *text,
	       const struct lab_overrides *overrides, struct conf_error *err)
{
	struct replay r = {.out = ret,
			   .counts = counts,
			   .overrides = overrides,
			   .err = err};
	struct trace_reader reader;
	struct trace_event event;
	int e;

	*counts = (struct replay_counts){0};
	(void)snprintf(ret->scenario, sizeof(ret->scenario), "replay");
	(void)snprintf(ret->condition, sizeof(ret->condition), "trace");
	if (overrides->n_policies &&
	    !lab_policies_find(overrides->own, overrides->policies[0],
			       &r.instead))
		return lab_policies_unknown(overrides->policies[0], NULL, err);
	e = trace_open(&reader, file, text, err);
	if (!e)
		e = replay_open(&r, &reader);
	while (!e) {
		e = trace_read(&reader, &event, err);
		if (!e)
			e = replay_event(&r, &event);
	}
	if (e == TRACE_E_END) {
		replay_results(&r);
		e = 0;
	}
	r.heaps = heap_set_free(r.heaps);
	r.node = node_free(r.node);
	id_map_fini(&r.ids);
	return e;
}
