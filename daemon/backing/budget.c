/* SPDX-License-Identifier: MIT */
#include "backing/budget.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "backing/hostmem.h"
#include "base/err.h"

/*
 * Every byte of a buffer is in one of these: reserved (promised), in flight
 * (being filled: still among the reserved, perhaps in the readings already),
 * resident (in the readings for sure).
 */
struct budget {
	pthread_mutex_t lock; /* of the workers: check and add are one */
	struct hostmem host;
	atomic_uint_fast64_t limit_bytes; /* 0: auto */
	atomic_uint_fast64_t auto_bytes;  /* what auto came to */
	atomic_uint_fast64_t resident_bytes;
	atomic_uint_fast64_t reserved_bytes;
	atomic_uint_fast64_t in_flight_bytes;
	atomic_uint_fast64_t n_refusals;
};

#define HEADROOM_MIN_BYTES MIB(32)
#define HEADROOM_PERCENT   5u
#define AUTO_PERCENT       80u

/* Divided first: a limit may be near 2^64. */
static uint64_t percent(uint64_t bytes, unsigned int n)
{
	return bytes / 100 * n + bytes % 100 * n / 100;
}

int budget_new(struct budget **ret, uint64_t limit_bytes, const char *root)
{
	struct budget *b = calloc(1, sizeof(*b));
	char ignored[BACKING_ERROR_BYTES];
	int r;

	if (!b)
		return err_raise(-ENOMEM);
	r = hostmem_init(&b->host, root);
	if (r) {
		free(b);
		return err_trace(r);
	}
	pthread_mutex_init(&b->lock, NULL);
	atomic_init(&b->limit_bytes, limit_bytes);
	/* A first reading, so that the limit can be told. */
	if (budget_reserve(b, BUDGET_HOST, 0, ignored) == 0)
		budget_unreserve(b, 0);
	*ret = b;
	return 0;
}

struct budget *budget_free(struct budget *b)
{
	if (!b)
		return NULL;
	hostmem_fini(&b->host);
	pthread_mutex_destroy(&b->lock);
	free(b);
	return NULL;
}

void budget_set_limit(struct budget *b, uint64_t limit_bytes)
{
	atomic_store(&b->limit_bytes, limit_bytes);
}

/* The level that leaves least. */
struct tightest {
	const struct hostmem_level *level;
	struct hostmem_reading reading;
	uint64_t usable_bytes;
};

static uint64_t headroom_bytes(const struct hostmem_reading *reading)
{
	return MAX(HEADROOM_MIN_BYTES,
		   percent(reading->limit_bytes, HEADROOM_PERCENT));
}

/* @keep_auto: a whole buffer asks, so "auto" has its say too. */
static uint64_t usable_bytes(const struct hostmem_reading *reading,
			     bool keep_auto)
{
	uint64_t available = reading->available_bytes;
	uint64_t usable = available - MIN(available, headroom_bytes(reading));

	if (keep_auto)
		usable = MIN(usable, percent(available, AUTO_PERCENT));
	return usable;
}

static void find_tightest(const struct budget *b, bool keep_auto,
			  struct tightest *ret)
{
	struct hostmem_reading reading;
	uint64_t usable;

	ret->level = NULL;
	ret->usable_bytes = UINT64_MAX;
	for (unsigned int i = 0; i < b->host.n_levels; i++) {
		/* A cgroup that was removed, or a lack of descriptors: the
		 * other levels still hold. */
		if (hostmem_read(&b->host, i, &reading) ||
		    reading.limit_bytes == HOSTMEM_NO_LIMIT)
			continue;
		usable = usable_bytes(&reading, keep_auto);
		if (usable >= ret->usable_bytes)
			continue;
		ret->level = &b->host.level[i];
		ret->reading = reading;
		ret->usable_bytes = usable;
	}
}

static int refuse_host(struct budget *b, const struct tightest *t,
		       uint64_t bytes, uint64_t promised, char *error)
{
	const struct hostmem_level *l = t->level;

	atomic_fetch_add(&b->n_refusals, 1);
	if (!l) {
		snprintf(error, BACKING_ERROR_BYTES,
			 "what memory is left cannot be read from "
			 "/proc/meminfo; %" PRIu64 " bytes asked",
			 bytes);
		return BACKING_E_BUDGET;
	}
	snprintf(error, BACKING_ERROR_BYTES,
		 "%s%s: %" PRIu64 " bytes asked, %" PRIu64 " usable of %" PRIu64
		 " available (%s, limit %" PRIu64 ", headroom %" PRIu64
		 ", promised to others %" PRIu64 "); [backing] budget",
		 l->dir ? "memory cgroup " : "host memory",
		 l->dir ? l->name : "", bytes,
		 t->usable_bytes - MIN(t->usable_bytes, promised),
		 t->reading.available_bytes, t->reading.key,
		 t->reading.limit_bytes, headroom_bytes(&t->reading), promised);
	return BACKING_E_BUDGET;
}

static int refuse_configured(struct budget *b, uint64_t limit, uint64_t ours,
			     uint64_t bytes, char *error)
{
	atomic_fetch_add(&b->n_refusals, 1);
	snprintf(error, BACKING_ERROR_BYTES,
		 "the daemon's budget: %" PRIu64 " bytes asked, %" PRIu64
		 " of %" PRIu64 " in use; [backing] budget",
		 bytes, ours, limit);
	return BACKING_E_BUDGET;
}

static int reserve_locked(struct budget *b, enum budget_source source,
			  uint64_t bytes, char *error)
{
	uint64_t limit = atomic_load(&b->limit_bytes);
	uint64_t reserved = atomic_load(&b->reserved_bytes);
	uint64_t ours = atomic_load(&b->resident_bytes) + reserved;
	struct tightest t;

	if (limit && (ours > limit || bytes > limit - ours))
		return refuse_configured(b, limit, ours, bytes, error);
	find_tightest(b, limit == 0, &t);
	if (t.level)
		atomic_store(&b->auto_bytes,
			     atomic_load(&b->resident_bytes) + t.usable_bytes);
	if (source == BUDGET_HOST && (!t.level || reserved > t.usable_bytes ||
				      bytes > t.usable_bytes - reserved))
		return refuse_host(b, &t, bytes, reserved, error);
	atomic_fetch_add(&b->reserved_bytes, bytes);
	return 0;
}

int budget_reserve(struct budget *b, enum budget_source source, uint64_t bytes,
		   char *error)
{
	int r;

	pthread_mutex_lock(&b->lock);
	r = reserve_locked(b, source, bytes, error);
	pthread_mutex_unlock(&b->lock);
	return r;
}

void budget_unreserve(struct budget *b, uint64_t bytes)
{
	atomic_fetch_sub(&b->reserved_bytes, bytes);
}

int budget_chunk_begin(struct budget *b, enum budget_source source,
		       uint64_t bytes, char *error)
{
	struct tightest t;
	uint64_t in_flight;
	int r = 0;

	pthread_mutex_lock(&b->lock);
	find_tightest(b, false, &t);
	in_flight = atomic_load(&b->in_flight_bytes);
	if (source == BUDGET_HOST && (!t.level || in_flight > t.usable_bytes ||
				      bytes > t.usable_bytes - in_flight))
		r = refuse_host(b, &t, bytes, in_flight, error);
	else
		atomic_fetch_add(&b->in_flight_bytes, bytes);
	pthread_mutex_unlock(&b->lock);
	return r;
}

void budget_chunk_end(struct budget *b, uint64_t bytes, bool filled)
{
	atomic_fetch_sub(&b->in_flight_bytes, bytes);
	if (!filled)
		return;
	atomic_fetch_add(&b->resident_bytes, bytes);
	atomic_fetch_sub(&b->reserved_bytes, bytes);
}

void budget_add_resident(struct budget *b, uint64_t bytes)
{
	atomic_fetch_add(&b->resident_bytes, bytes);
}

void budget_sub_resident(struct budget *b, uint64_t bytes)
{
	atomic_fetch_sub(&b->resident_bytes, bytes);
}

uint64_t budget_resident_bytes(const struct budget *b)
{
	return atomic_load(&b->resident_bytes);
}

uint64_t budget_limit_bytes(const struct budget *b)
{
	uint64_t limit = atomic_load(&b->limit_bytes);

	return limit ? limit : atomic_load(&b->auto_bytes);
}

uint64_t budget_n_refusals(const struct budget *b)
{
	return atomic_load(&b->n_refusals);
}
