/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Tracks the lifetimes of objects and reports misuse, as lib/debugobjects.c
 * does: double init, use of an unknown or a destroyed object, double free, free
 * of an active one, and what is left at shutdown. A report tells both
 * histories: how the object came to its state, and who does what now.
 *
 * Its records come from a pool of two levels, see base/record_pool.h.
 *
 * Units:     slots are batches of OBJTRACK_BATCH records of 40 bytes.
 * Ownership: the tracker owns its records, never the objects: a key is an
 *            address or an id, and is not followed.
 * Threads:   any worker at any time, each with its own number < n_workers;
 *            reports are called without a lock held.
 *
 * A tracker made to be off is NULL, so that a call costs one comparison.
 */

#include <stdatomic.h>

#include "base/base.h"
#include "base/record_pool.h"
#include "base/slab.h"

#define OBJTRACK_BATCH         RECORD_POOL_BATCH
#define OBJTRACK_RECORD_BYTES  40u
#define OBJTRACK_SLOTS_DEFAULT 8u
#define OBJTRACK_SLOTS_MAX     64u
#define OBJTRACK_KINDS_MAX     32u
#define OBJTRACK_WORKERS_MAX   64u
#define OBJTRACK_HISTORY       5u

enum objtrack_state {
	OBJTRACK_NONE, /* not known */
	OBJTRACK_INITIALISED,
	OBJTRACK_ACTIVE,
	OBJTRACK_DESTROYED, /* may only be freed */
};

enum objtrack_op {
	OBJTRACK_OP_INIT,       /* none -> initialised */
	OBJTRACK_OP_ACTIVATE,   /* initialised -> active */
	OBJTRACK_OP_USE,        /* active, and stays so */
	OBJTRACK_OP_DEACTIVATE, /* active -> initialised */
	OBJTRACK_OP_DESTROY,    /* initialised or active -> destroyed */
	OBJTRACK_OP_FREE,       /* initialised or destroyed -> none */
};

enum objtrack_misuse {
	OBJTRACK_DOUBLE_INIT,
	OBJTRACK_UNKNOWN_OBJECT, /* never seen, or freed long ago */
	OBJTRACK_DOUBLE_FREE,    /* freed not long ago */
	OBJTRACK_USE_AFTER_FREE, /* a stale handle */
	OBJTRACK_USE_AFTER_DESTROY,
	OBJTRACK_FREE_OF_ACTIVE,
	OBJTRACK_WRONG_STATE,
	OBJTRACK_LEAK,
	OBJTRACK_OUT_OF_MEMORY, /* of records: the tracker turned itself off */
};

/* A place in the code. Use the macros below. */
struct objtrack_site {
	const char *file;
	const char *function;
	int line;
	_Atomic uint16_t number; /* 0 until first used */
};

struct objtrack_report {
	enum objtrack_misuse misuse;
	const char *kind;
	uint64_t key;
	enum objtrack_state state; /* before the call */
	const char *text;          /* one line with both histories; the
				      callback's until it returns */
};

struct objtrack_params {
	bool enabled; /* false: objtrack_new() makes none */
	unsigned int slots_in_batches; /* per worker, <= OBJTRACK_SLOTS_MAX */
	unsigned int n_workers;        /* > 0 */
	const char *const *kinds; /* names of the kinds, kept by the caller */
	unsigned int n_kinds;
	void (*report)(void *ctx, const struct objtrack_report *report);
	void *ctx;
	struct slab_registry *registry; /* lists the record cache, or NULL */
	struct slab_page_ops page_ops;  /* of the record cache */
};

/* The rest of it is private. */
struct objtrack {
	_Atomic bool enabled;
};

/* *@ret is NULL, on success too, if @params says that nothing is tracked.
 * Return: 0, -EINVAL (a parameter out of range), -ENOMEM. */
int objtrack_new(struct objtrack **ret, const struct objtrack_params *params)
	_must_check_;

/* Reports every object that is left as a leak. Return: NULL, always. */
struct objtrack *objtrack_free(struct objtrack *track);
DEFINE_CLEANUP(struct objtrack *, objtrack_free);

/* Return: true if it tracks; it may turn itself off (OUT_OF_MEMORY). @track may
 * be NULL. */
static inline bool objtrack_is_enabled(const struct objtrack *track)
{
	return track &&
	       atomic_load_explicit(&track->enabled, memory_order_relaxed);
}

/* Use the macros. @track is enabled. Return: true if it was right. */
bool objtrack_do(struct objtrack *track, unsigned int worker,
		 enum objtrack_op op, unsigned int kind, uint64_t key,
		 struct objtrack_site *site);

#define objtrack_op_(track, worker, op, kind, key)                             \
	({                                                                     \
		static struct objtrack_site objtrack_site_ = {__FILE__,        \
							      __func__,        \
							      __LINE__, 0};    \
		struct objtrack *objtrack_ = (track);                          \
		!unlikely(objtrack_is_enabled(objtrack_)) ||                   \
			objtrack_do(objtrack_, (worker), (op), (kind),         \
				    (uint64_t)(key), &objtrack_site_);         \
	})

/*
 * Each: @track may be NULL; @kind is an index into params.kinds; @key is an
 * address or a number, unique within its kind while the object lives.
 * Return: true if it was right (or nothing tracks), false if misuse was
 * reported. After a misuse the tracker follows the caller's view of the object.
 */
#define objtrack_init(track, worker, kind, key)                                \
	objtrack_op_(track, worker, OBJTRACK_OP_INIT, kind, key)
#define objtrack_activate(track, worker, kind, key)                            \
	objtrack_op_(track, worker, OBJTRACK_OP_ACTIVATE, kind, key)
#define objtrack_use(track, worker, kind, key)                                 \
	objtrack_op_(track, worker, OBJTRACK_OP_USE, kind, key)
#define objtrack_deactivate(track, worker, kind, key)                          \
	objtrack_op_(track, worker, OBJTRACK_OP_DEACTIVATE, kind, key)
#define objtrack_destroy(track, worker, kind, key)                             \
	objtrack_op_(track, worker, OBJTRACK_OP_DESTROY, kind, key)
#define objtrack_forget(track, worker, kind, key)                              \
	objtrack_op_(track, worker, OBJTRACK_OP_FREE, kind, key)

/**
 * objtrack_trim() - give surplus records back to the slab cache
 *
 * The hot path never does: records that find the global pool full wait for
 * this, called now and then (the daemon: when idle). First tops the pool up.
 *
 * Return: the number of records given back.
 */
size_t objtrack_trim(struct objtrack *track);

struct objtrack_stats {
	uint64_t tracked; /* objects known now */
	uint64_t transitions;
	uint64_t misuses;
	uint64_t backing_allocs; /* records from the slab cache, ever: these
				    happen in the hot path */
	uint64_t backing_frees;  /* records given back to it, ever */
	uint64_t global_gets, global_puts; /* batches moved, ever */
	uint64_t pool_records;             /* free, in the global pool */
	uint64_t worker_records;           /* free, with the workers */
	uint64_t surplus_records;  /* free, waiting for objtrack_trim() */
	uint64_t worker_bytes_max; /* what the slots of one worker may hold */
};

void objtrack_get_stats(const struct objtrack *track,
			struct objtrack_stats *ret);

/* Return: the state of an object; OBJTRACK_NONE when not known. */
enum objtrack_state objtrack_state_of(const struct objtrack *track,
				      unsigned int kind, uint64_t key);

/* Return: "double free", ... */
const char *objtrack_misuse_name(enum objtrack_misuse misuse);

/* Verifies every invariant; no other thread may be inside. */
bool objtrack_check(const struct objtrack *track);
