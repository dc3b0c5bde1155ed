/* SPDX-License-Identifier: MIT */
#include "base/objtrack_internal.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/*
 * A record exists per known object, in a hash table by kind and key whose
 * buckets share a number of locks. A lock also covers a short list of the
 * records last freed under it, which tells a double free and a stale handle
 * from an object never seen.
 */

#define N_BUCKETS 4096u
#define N_SHARDS  64u /* divides N_BUCKETS */
#define N_GRAVES  16u /* per shard */

struct shard {
	pthread_mutex_t lock;
	struct tracked grave[N_GRAVES];
	unsigned int next_grave;
	uint64_t n_tracked;
} __attribute__((aligned(SLAB_CACHE_LINE_BYTES)));

struct worker_count {
	_Atomic uint64_t transitions; /* written by its worker alone */
} __attribute__((aligned(SLAB_CACHE_LINE_BYTES)));

struct tracker {
	struct objtrack public;
	_Atomic uint64_t misuses;
	struct objtrack_params params;
	struct slab_cache *cache;
	struct record_pool *pool;
	struct tracked **buckets;
	struct shard *shards;
	struct worker_count *counts;
};

/* @t: the object before the call; @now: the call, NULL at shutdown. */
static void report(struct tracker *track, enum objtrack_misuse misuse,
		   const struct tracked *t, const struct objtrack_step *now)
{
	_cleanup_(strbuf_finip) struct strbuf sb = STRBUF_INIT;
	struct objtrack_report report = {
		.misuse = misuse,
		.kind = track->params.kinds[t->kind],
		.key = t->key,
		.state = t->state,
	};

	atomic_fetch_add(&track->misuses, 1);
	if (!track->params.report)
		return;
	strbuf_append(&sb, "%s: %s %#llx: ", objtrack_misuse_name(misuse),
		      report.kind, (unsigned long long)t->key);
	objtrack_render_history(&sb, t);
	strbuf_append_string(&sb, "; now ");
	if (now)
		objtrack_render_step(&sb, *now);
	else
		strbuf_append_string(&sb, "shutdown");
	report.text = strbuf_string(&sb);
	track->params.report(track->params.ctx, &report);
}

static unsigned int bucket_of(unsigned int kind, uint64_t key)
{
	uint64_t h =
		(key ^ (uint64_t)kind << 56) * UINT64_C(0x9e3779b97f4a7c15);

	return (unsigned int)(h >> 40) % N_BUCKETS;
}

static struct shard *lock_shard(const struct tracker *track,
				unsigned int bucket)
{
	struct shard *shard = &track->shards[bucket % N_SHARDS];

	pthread_mutex_lock(&shard->lock);
	return shard;
}

static void unlock_shard(struct shard *shard)
{
	pthread_mutex_unlock(&shard->lock);
}

static struct tracked *as_tracked(struct record *record)
{
	return (struct tracked *)(void *)record;
}

/* Return: the link that points at the object, or at the bucket's end. */
static struct tracked **find(const struct tracker *track, unsigned int bucket,
			     unsigned int kind, uint64_t key)
{
	struct tracked **slot = &track->buckets[bucket];

	while (*slot && ((*slot)->key != key || (*slot)->kind != kind))
		slot = (struct tracked **)(void *)&(*slot)->link.next;
	return slot;
}

static void add_step(struct tracked *t, struct objtrack_step step)
{
	t->step[t->n_steps % OBJTRACK_HISTORY] = step;
	if (t->n_steps < UINT8_MAX)
		t->n_steps++;
	else /* keeps the order of what is kept */
		t->n_steps = (uint8_t)(UINT8_MAX - OBJTRACK_HISTORY + 1);
}

/* What an operation does to an object that is known, by its state. */
static const struct {
	enum objtrack_state to;
	uint8_t allowed; /* bits of states */
} ops[] = {
	[OBJTRACK_OP_INIT] = {OBJTRACK_INITIALISED, 0},
	[OBJTRACK_OP_ACTIVATE] = {OBJTRACK_ACTIVE, 1u << OBJTRACK_INITIALISED},
	[OBJTRACK_OP_USE] = {OBJTRACK_ACTIVE, 1u << OBJTRACK_ACTIVE},
	[OBJTRACK_OP_DEACTIVATE] = {OBJTRACK_INITIALISED,
				    1u << OBJTRACK_ACTIVE},
	[OBJTRACK_OP_DESTROY] = {OBJTRACK_DESTROYED,
				 1u << OBJTRACK_INITIALISED |
					 1u << OBJTRACK_ACTIVE},
	[OBJTRACK_OP_FREE] = {OBJTRACK_NONE, 1u << OBJTRACK_INITIALISED |
						     1u << OBJTRACK_DESTROYED},
};

static enum objtrack_misuse misuse_of_known(enum objtrack_op op, uint8_t state)
{
	if (state == OBJTRACK_DESTROYED)
		return OBJTRACK_USE_AFTER_DESTROY;
	else if (op == OBJTRACK_OP_INIT)
		return OBJTRACK_DOUBLE_INIT;
	else if (op == OBJTRACK_OP_FREE)
		return OBJTRACK_FREE_OF_ACTIVE;
	return OBJTRACK_WRONG_STATE;
}

/* One call and what came of it; passed around under the shard's lock. */
struct call {
	struct objtrack_step step;
	unsigned int kind;
	uint64_t key;
	struct tracked before; /* the object, for a report */
	bool is_misuse;
	enum objtrack_misuse misuse;
	struct record *spare; /* in: for an object that is new; out: unused */
};

static void note_misuse(struct call *call, enum objtrack_misuse misuse)
{
	call->is_misuse = true;
	call->misuse = misuse;
}

static void do_unknown(struct shard *shard, struct tracked **slot,
		       struct call *call)
{
	struct tracked *t;

	if (call->step.op != OBJTRACK_OP_INIT) {
		bool is_free = call->step.op == OBJTRACK_OP_FREE;

		note_misuse(call, OBJTRACK_UNKNOWN_OBJECT);
		for (unsigned int i = 0; i < N_GRAVES; i++) {
			const struct tracked *g = &shard->grave[i];

			if (g->n_steps && g->key == call->key &&
			    g->kind == call->kind) {
				call->before = *g;
				note_misuse(call,
					    is_free ? OBJTRACK_DOUBLE_FREE
						    : OBJTRACK_USE_AFTER_FREE);
			}
		}
		return;
	}
	t = as_tracked(TAKE_PTR(call->spare));
	*t = (struct tracked){
		.key = call->key,
		.kind = (uint8_t)call->kind,
		.state = OBJTRACK_INITIALISED,
	};
	add_step(t, call->step);
	*slot = t;
	shard->n_tracked++;
}

static void bury(struct shard *shard, struct tracked *t)
{
	/* A number that is used again must not be found twice. */
	for (unsigned int i = 0; i < N_GRAVES; i++)
		if (shard->grave[i].key == t->key &&
		    shard->grave[i].kind == t->kind)
			shard->grave[i].n_steps = 0;
	shard->grave[shard->next_grave] = *t;
	shard->next_grave = (shard->next_grave + 1) % N_GRAVES;
}

static void do_known(struct shard *shard, struct tracked **slot,
		     struct call *call)
{
	enum objtrack_op op = call->step.op;
	struct tracked *t = *slot;

	if (!(ops[op].allowed & 1u << t->state)) {
		call->before = *t;
		note_misuse(call, misuse_of_known(op, t->state));
	}
	t->state = (uint8_t)ops[op].to;
	if (op != OBJTRACK_OP_USE)
		add_step(t, call->step);
	if (op == OBJTRACK_OP_FREE) {
		*slot = as_tracked(t->link.next);
		bury(shard, t);
		shard->n_tracked--;
		call->spare = &t->link;
	}
}

static struct tracker *tracker_of(const struct objtrack *track)
{
	/* It is the first member, so that NULL stays NULL. */
	_Static_assert(offsetof(struct tracker, public) == 0, "the cast");
	return (struct tracker *)(uintptr_t)track;
}

static void count_transition(struct tracker *track, unsigned int worker)
{
	_Atomic uint64_t *n = &track->counts[worker].transitions;

	atomic_store_explicit(n,
			      atomic_load_explicit(n, memory_order_relaxed) + 1,
			      memory_order_relaxed);
}

static bool out_of_memory(struct tracker *track, struct call *call)
{
	atomic_store(&track->public.enabled, false);
	report(track, OBJTRACK_OUT_OF_MEMORY, &call->before, &call->step);
	return false;
}

bool objtrack_do(struct objtrack *public, unsigned int worker,
		 enum objtrack_op op, unsigned int kind, uint64_t key,
		 struct objtrack_site *site)
{
	struct tracker *track = tracker_of(public);
	struct call call;
	struct tracked **slot;
	struct shard *shard;
	unsigned int bucket;

	assert(worker < track->params.n_workers &&
	       kind < track->params.n_kinds);

	count_transition(track, worker);
	call = (struct call){
		.step = {objtrack_site_number(site), (uint8_t)worker,
			 (uint8_t)op},
		.kind = kind,
		.key = key,
		.before = {.key = key, .kind = (uint8_t)kind},
	};
	if (op == OBJTRACK_OP_INIT) {
		call.spare = record_pool_get(track->pool, worker);
		if (!call.spare)
			return out_of_memory(track, &call);
	}
	bucket = bucket_of(kind, key);
	shard = lock_shard(track, bucket);
	slot = find(track, bucket, kind, key);
	if (*slot)
		do_known(shard, slot, &call);
	else
		do_unknown(shard, slot, &call);
	unlock_shard(shard);

	if (call.spare)
		record_pool_put(track->pool, worker, call.spare);
	if (call.is_misuse)
		report(track, call.misuse, &call.before, &call.step);
	return !call.is_misuse;
}

enum objtrack_state objtrack_state_of(const struct objtrack *public,
				      unsigned int kind, uint64_t key)
{
	const struct tracker *track = tracker_of(public);
	enum objtrack_state state;
	struct tracked **slot;
	struct shard *shard;
	unsigned int bucket = bucket_of(kind, key);

	if (!objtrack_is_enabled(public))
		return OBJTRACK_NONE;
	shard = lock_shard(track, bucket);
	slot = find(track, bucket, kind, key);
	state = *slot ? (*slot)->state : OBJTRACK_NONE;
	unlock_shard(shard);
	return state;
}

size_t objtrack_trim(struct objtrack *public)
{
	return objtrack_is_enabled(public)
		       ? record_pool_trim(tracker_of(public)->pool)
		       : 0;
}

static struct tracker *tracker_free(struct tracker *track);
DEFINE_CLEANUP(struct tracker *, tracker_free);

static int make_tables(struct tracker *track)
{
	unsigned int n_workers = track->params.n_workers;

	track->buckets = calloc(N_BUCKETS, sizeof(struct tracked *));
	track->shards = aligned_alloc(SLAB_CACHE_LINE_BYTES,
				      N_SHARDS * sizeof(*track->shards));
	track->counts = aligned_alloc(SLAB_CACHE_LINE_BYTES,
				      n_workers * sizeof(*track->counts));
	if (!track->buckets || !track->shards || !track->counts)
		return -ENOMEM;
	memset(track->shards, 0, N_SHARDS * sizeof(*track->shards));
	memset(track->counts, 0, n_workers * sizeof(*track->counts));
	for (unsigned int i = 0; i < N_SHARDS; i++)
		(void)pthread_mutex_init(&track->shards[i].lock, NULL);
	return 0;
}

static int make_pool(struct tracker *track)
{
	const struct slab_params params = {
		.size_bytes = sizeof(struct tracked),
		/* Records go through the pool, where poison is of no use. */
		.debug = SLAB_DEBUG_OFF,
		.page_ops = track->params.page_ops,
		.registry = track->params.registry,
	};
	int r = slab_cache_new(&track->cache, "tracked-object", &params);

	if (r)
		return r;
	return record_pool_new(&track->pool, track->cache,
			       track->params.n_workers,
			       track->params.slots_in_batches);
}

static bool params_are_good(const struct objtrack_params *params)
{
	return params->n_workers > 0 &&
	       params->n_workers <= OBJTRACK_WORKERS_MAX &&
	       params->n_kinds <= OBJTRACK_KINDS_MAX &&
	       params->slots_in_batches <= OBJTRACK_SLOTS_MAX;
}

int objtrack_new(struct objtrack **ret, const struct objtrack_params *params)
{
	_cleanup_(tracker_freep) struct tracker *track = NULL;
	int r;

	if (!params_are_good(params))
		return -EINVAL;
	if (!params->enabled) {
		*ret = NULL;
		return 0;
	}
	track = calloc(1, sizeof(*track));
	if (!track)
		return -ENOMEM;
	track->params = *params;
	r = make_tables(track);
	if (r == 0)
		r = make_pool(track);
	if (r)
		return r;
	atomic_store(&track->public.enabled, true);
	*ret = (struct objtrack *)TAKE_PTR(track);
	return 0;
}

/* Everything still known is a leak, unless the tracker lost its view. */
static void end_bucket(struct tracker *track, struct tracked *t)
{
	bool tell = objtrack_is_enabled(&track->public);

	while (t) {
		struct tracked *next = as_tracked(t->link.next);

		if (tell)
			report(track, OBJTRACK_LEAK, t, NULL);
		record_pool_put(track->pool, 0, &t->link);
		t = next;
	}
}

static struct tracker *tracker_free(struct tracker *track)
{
	if (!track)
		return NULL;
	if (track->pool)
		for (unsigned int i = 0; i < N_BUCKETS; i++)
			end_bucket(track, track->buckets[i]);
	track->pool = record_pool_free(track->pool);
	track->cache = slab_cache_free(track->cache);
	free(track->buckets);
	free(track->shards);
	free(track->counts);
	free(track);
	return NULL;
}

struct objtrack *objtrack_free(struct objtrack *public)
{
	(void)tracker_free(tracker_of(public));
	return NULL;
}

void objtrack_get_stats(const struct objtrack *public,
			struct objtrack_stats *ret)
{
	const struct tracker *track = tracker_of(public);
	struct objtrack_stats stats = {0};
	struct record_pool_stats pool;

	*ret = stats;
	if (!track)
		return;
	record_pool_get_stats(track->pool, &pool);
	for (unsigned int i = 0; i < track->params.n_workers; i++)
		stats.transitions +=
			atomic_load_explicit(&track->counts[i].transitions,
					     memory_order_relaxed);
	for (unsigned int i = 0; i < N_SHARDS; i++) {
		struct shard *shard = lock_shard(track, i);

		stats.tracked += shard->n_tracked;
		unlock_shard(shard);
	}
	stats.misuses = atomic_load(&track->misuses);
	stats.backing_allocs = pool.backing_allocs;
	stats.backing_frees = pool.backing_frees;
	stats.global_gets = pool.global_gets;
	stats.global_puts = pool.global_puts;
	stats.pool_records = pool.global_records;
	stats.worker_records = pool.worker_records;
	stats.surplus_records = pool.surplus_records;
	stats.worker_bytes_max = (uint64_t)track->params.slots_in_batches *
				 OBJTRACK_BATCH * OBJTRACK_RECORD_BYTES;
	*ret = stats;
}

bool objtrack_check(const struct objtrack *public)
{
	const struct tracker *track = tracker_of(public);
	struct record_pool_stats pool;
	uint64_t n = 0, n_counted = 0;

	if (!track)
		return true;
	for (unsigned int i = 0; i < N_BUCKETS; i++) {
		for (struct tracked *t = track->buckets[i]; t;
		     t = as_tracked(t->link.next)) {
			if (bucket_of(t->kind, t->key) != i ||
			    t->state == OBJTRACK_NONE ||
			    t->state > OBJTRACK_DESTROYED ||
			    *find(track, i, t->kind, t->key) != t)
				return false;
			n++;
		}
	}
	for (unsigned int i = 0; i < N_SHARDS; i++)
		n_counted += track->shards[i].n_tracked;
	record_pool_get_stats(track->pool, &pool);
	return n == n_counted && n == pool.in_use &&
	       record_pool_check(track->pool) && slab_check(track->cache);
}
