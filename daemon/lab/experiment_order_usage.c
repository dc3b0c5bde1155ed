/* SPDX-License-Identifier: MIT */
#include "lab/experiment_order_usage.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "heap/system_heap.h"
#include "lab/experiment_model.h"
#include "mm/node.h"

#define NODE_BYTES  GIB(1)
#define FRAME_NS    (NSEC_PER_SEC / 30)
#define HELD_MAX    8u
#define RANDOM_SEED 7u

const char *const usage_policies[USAGE_POLICIES] = {"8,4,0", "8,0,0", "9,4,0",
						    "0-only"};
const char *const usage_iommus[USAGE_IOMMUS] = {"4 KiB", "64 KiB", "2 MiB"};

static struct iommu_params iommu_of(unsigned int i)
{
	return iommu_default(KIB(4), i >= 1 ? KIB(64) : 0, i >= 2 ? MIB(2) : 0);
}

/* A node in one state with one heap; pools off, as the source had them. */
struct setting {
	struct node *node;
	struct heap_set *heaps;
	struct heap *heap;
};

static void setting_fini(struct setting *s)
{
	s->heaps = heap_set_free(s->heaps);
	s->node = node_free(s->node);
}

static int policy_of(const char *name, struct policy *ret)
{
	if (!strcmp(name, "9,4,0")) {
		/* 940-high with the flags of the others: order 4 reclaims */
		if (!policy_shipped(ret, "8,4,0") ||
		    policy_set(ret, "orders", "9 4 0", NULL) ||
		    policy_set(ret, "gfp.9", "HIGH_ORDER", NULL))
			return -EINVAL;
	} else if (!policy_shipped(ret, name)) {
		return -EINVAL;
	}
	return policy_set(ret, "pool.limit", "0", NULL) ? -EINVAL : 0;
}

static int make_node(const struct usage_params *p, enum usage_state state,
		     struct node **ret, struct strbuf *why)
{
	const struct node_params params = {
		.size_bytes = NODE_BYTES,
		.occupants = "kernel:8% slab:4% file:20% anon:20%",
		.swap = NODE_SWAP_NONE,
		.costs = p->costs,
		.seed = p->seed,
	};
	struct node_error err;
	int r = node_new(ret, &params, &err);

	if (r == NODE_E_INVALID)
		strbuf_append(why, "%s", err.text);
	if (r)
		return r > 0 ? -EINVAL : r;
	if (state == USAGE_LOW)
		node_pressure_low_memory(*ret);
	return 0;
}

static int setting_init(struct setting *s, const struct usage_params *p,
			const char *policy_name, enum usage_state state,
			struct strbuf *why)
{
	struct policy policy;
	int r = policy_of(policy_name, &policy);

	*s = (struct setting){0};
	if (r == 0)
		r = make_node(p, state, &s->node, why);
	if (r == 0)
		r = heap_set_new(&s->heaps, s->node, NULL, NULL);
	if (r == 0)
		r = heap_new(&s->heap, s->heaps,
			     &(struct heap_params){.name = "system",
						   .policy = &policy});
	if (r)
		setting_fini(s);
	return r > 0 ? -EINVAL : r;
}

static void free_buffer(struct setting *s, struct buffer *buffer)
{
	heap_release(s->heap, buffer);
	(void)!heap_finish(s->heap, buffer, HEAP_FINISH_NODE);
}

/* One buffer in a fresh setting. */
static int fill_cell(const struct usage_params *p, const char *policy_name,
		     enum usage_state state, struct usage_cell *cell,
		     struct strbuf *why)
{
	struct heap_request req = {.len_bytes = p->buffer_bytes,
				   .start_ns = NSEC_PER_SEC};
	struct buffer *buffer;
	struct setting s;
	int r = setting_init(&s, p, policy_name, state, why);

	if (r)
		return r;
	r = heap_alloc(s.heap, &req, &buffer);
	cell->alloc_ns = req.spent_ns;
	cell->stall_ns = req.stall_ns;
	cell->failed = r > 0;
	if (r == 0) {
		memcpy(cell->composition, buffer->composition,
		       sizeof(cell->composition));
		for (unsigned int i = 0; i < USAGE_IOMMUS; i++) {
			struct iommu_params iommu = iommu_of(i);

			cell->iommu[i] = iommu_use(&iommu, buffer->runs,
						   buffer->n_runs, 4096);
		}
	}
	setting_fini(&s);
	return r < 0 ? r : 0;
}

static void add_times(struct usage_recording *rec, const struct usage_times *t,
		      const uint32_t composition[POLICY_ORDER_COUNT])
{
	rec->sight = rec->n_measured ? MIN(rec->sight, t->folios.sight)
				     : t->folios.sight;
	rec->n_measured++;
	rec->n_as_asked +=
		usage_compare(composition, &t->folios) == USAGE_AS_ASKED;
	for (unsigned int i = 0; i < POLICY_ORDER_COUNT; i++) {
		rec->asked[i] += composition[i];
		rec->got[i] += t->folios.of_order[i];
	}
	rec->map_ns += t->map_ns;
	rec->touch_ns += t->touch_ns;
	rec->write_ns += t->write_ns;
	rec->read_ns += t->read_ns;
	rec->unmap_ns += t->unmap_ns;
}

/* One frame: allocate, map for the device and the CPU, write, read, unmap. */
static int record_frame(struct setting *s, const struct usage_params *p,
			unsigned int n, struct usage_host *host,
			struct usage_recording *rec, struct buffer **ret,
			struct strbuf *why)
{
	const struct iommu_params iommu = iommu_of(1);
	struct heap_request req = {.len_bytes = p->frame_bytes,
				   .start_ns = (n + 1) * FRAME_NS};
	struct iommu_usage usage;
	struct usage_times times;
	int r = heap_alloc(s->heap, &req, ret);

	rec->alloc_ns += req.spent_ns;
	rec->stall_ns += req.stall_ns;
	rec->worst_alloc_ns = MAX(rec->worst_alloc_ns, req.spent_ns);
	if (r) {
		*ret = NULL;
		rec->n_failed++;
		return r < 0 ? r : 0;
	}
	usage = iommu_use(&iommu, (*ret)->runs, (*ret)->n_runs, 4096);
	rec->iommu_ns += usage.map_ns + usage.unmap_ns;
	for (unsigned int i = 0; i < POLICY_ORDER_COUNT; i++)
		rec->blocks[i] += (*ret)->composition[i];
	if (!host || n % p->measure_every)
		return 0;
	r = usage_measure(host, (*ret)->composition, RANDOM_SEED, &times, why);
	if (r == 0)
		add_times(rec, &times, (*ret)->composition);
	return r;
}

static int record(const struct usage_params *p, const char *policy_name,
		  struct usage_host *host, struct usage_recording *rec,
		  struct strbuf *why)
{
	struct buffer *held[HELD_MAX] = {NULL};
	struct setting s;
	int r = setting_init(&s, p, policy_name, USAGE_LOW, why);

	assert(p->n_held > 0 && p->n_held <= HELD_MAX);
	if (r)
		return r;
	for (unsigned int n = 0; r == 0 && n < p->n_frames; n++) {
		struct buffer **slot = &held[n % p->n_held];

		if (*slot)
			free_buffer(&s, *slot);
		r = record_frame(&s, p, n, host, rec, slot, why);
	}
	setting_fini(&s);
	return r;
}

int usage_run(struct usage_result *result, struct usage_host *host,
	      struct strbuf *why)
{
	const struct usage_params *p = &result->params;
	int r = 0;

	for (unsigned int i = 0; r == 0 && i < USAGE_POLICIES; i++) {
		for (unsigned int s = 0; r == 0 && s < USAGE_STATES; s++) {
			struct usage_cell *cell = &result->cell[i][s];

			r = fill_cell(p, usage_policies[i], s, cell, why);
			if (r || !host || cell->failed)
				continue;
			r = usage_measure(host, cell->composition, RANDOM_SEED,
					  &cell->times, why);
			cell->measured = r == 0;
		}
		if (r == 0)
			r = record(p, usage_policies[i], host,
				   &result->recording[i], why);
	}
	return r;
}

static int run(const struct experiment_options *options, struct report *report,
	       struct strbuf *why)
{
	_cleanup_(usage_host_freep) struct usage_host *host = NULL;
	_cleanup_(strbuf_finip) struct strbuf backing = STRBUF_INIT;
	struct usage_result result = {
		.params = {.seed = options->seed,
			   .buffer_bytes = MIB(10),
			   .frame_bytes = MIB(12), /* 4K video, NV12 */
			   .n_frames = 60,
			   .n_held = 4,
			   .measure_every = 3,
			   .manage_thp = options->manage_thp},
	};
	int r;

	result.params.profile = experiment_profile(&result.params.costs);
	r = usage_host_new(&host, options->manage_thp, &backing);
	if (r == 0)
		usage_host_describe(host, &backing);
	(void)snprintf(result.backing, sizeof(result.backing), "%s",
		       strbuf_string(&backing));
	r = usage_run(&result, host, why);
	if (r == 0)
		usage_report(&result, report);
	return r;
}

const struct experiment experiment_order_usage = {
	.name = "order-usage",
	.title = "what using smaller blocks costs afterwards (2023)",
	.run = run,
};
