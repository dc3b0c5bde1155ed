/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Real buffers of a given composition, made by the daemon's own backing, and
 * what a client's use of them costs: first touch, sequential and random access,
 * unmapping.
 *
 * Units:     *_bytes; *_ns of CPU time, measured.
 * Ownership: usage_host_free() ends the backing; buffers are gone when
 *            usage_measure() returns.
 * Threads:   the main thread; the backing has its workers.
 */

#include "backing/backing.h"
#include "base/base.h"
#include "base/strbuf.h"
#include "heap/policy.h"

struct usage_host;

/* What the kernel lets one see of a buffer's memory. */
enum usage_sight {
	USAGE_UNSEEN,
	USAGE_SEEN_HUGE, /* which parts are folios of order 9 (Linux 6.7) */
	USAGE_SEEN_ALL,  /* the order of every folio (/proc/kpageflags: root) */
};

/* The folios that a mapping really had. */
struct usage_folios {
	enum usage_sight sight;
	uint32_t of_order[POLICY_ORDER_COUNT];
};

enum usage_verdict { USAGE_AS_ASKED, USAGE_OTHER, USAGE_UNKNOWN };

/* Has the memory a folio of its own for each block? Unknown where not all that
 * the composition asks for can be seen. */
enum usage_verdict usage_compare(const uint32_t composition[POLICY_ORDER_COUNT],
				 const struct usage_folios *folios);

struct usage_times {
	uint64_t map_ns;    /* mmap(), nothing populated */
	uint64_t touch_ns;  /* first write to each page */
	uint64_t write_ns;  /* all bytes, in order */
	uint64_t read_ns;   /* all bytes, in order */
	uint64_t random_ns; /* USAGE_RANDOM_READS reads anywhere */
	uint64_t unmap_ns;
	struct usage_folios folios;
	enum backing_kind got;
	char reason[BACKING_REASON_BYTES]; /* why not what was asked, or "" */
};

#define USAGE_RANDOM_READS 100000u
#define USAGE_HUGE_ORDER   9u

/**
 * usage_host_new() - a backing for measurements
 * @manage_thp: let it set the kernel's switches meanwhile; needs root
 *
 * Return: 0, or a negated errno with @why.
 */
int usage_host_new(struct usage_host **ret, bool manage_thp, struct strbuf *why)
	_must_check_;

/* Return: NULL, always. Restores what manage_thp set. */
struct usage_host *usage_host_free(struct usage_host *host);
DEFINE_CLEANUP(struct usage_host *, usage_host_free);

/* The mode in force and why not a better one. */
void usage_host_describe(struct usage_host *host, struct strbuf *sb);

/**
 * usage_measure() - make a buffer, use it once, free it
 * @composition: blocks by order, of pages of 4 KiB
 *
 * Return: 0, or a negated errno with @why.
 */
int usage_measure(struct usage_host *host,
		  const uint32_t composition[POLICY_ORDER_COUNT], uint64_t seed,
		  struct usage_times *ret, struct strbuf *why) _must_check_;
