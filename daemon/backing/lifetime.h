/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Lifetime: learns that a buffer's last reference is gone.
 *
 * The write lease (memfd.h) answers the question, an inotify watch says when to
 * ask. The event comes before the kernel has dropped the writer count, so a
 * refusal is asked again after 1, 4 and 16 ms and then ever more rarely: that
 * is the sweep, and what it finds is a late release. A buffer that could not be
 * watched is asked every 20 ms, and all are when events were lost.
 *
 * Units:     *_ns of CLOCK_MONOTONIC, passed in; *_ms.
 * Ownership: a struct watched is embedded in its owner, who calls
 *            lifetime_remove() before it goes away.
 * Threads:   not locked, one thread; lifetime_watch() alone is for any.
 */

#include "backing/backing.h"
#include "base/list.h"

#define LIFETIME_LEVELS       9u
#define LIFETIME_UNWATCHED_MS 20u

struct lifetime;

struct watched {
	int own;         /* the daemon's description, borrowed */
	int wd;          /* of the inotify watch; -1: none */
	bool alive;      /* a client may hold it: asked about */
	uint8_t level;   /* of the retest that waits; LIFETIME_LEVELS: none */
	uint64_t due_ns; /* of that retest */
	struct list_node due_link; /* lifetime::due[level], or unwatched */
	struct watched *next;      /* lifetime::by_wd */
};

struct lifetime_ops {
	/* The lease of @w is held now. @late: no event told. May call
	 * lifetime_remove() and lifetime_arm() of any watched. */
	void (*released)(void *ctx, struct watched *w, bool late);
	void *ctx;
};

/**
 * lifetime_new() - try out leases and inotify, and take what works
 *
 * Return: 0, -ENOMEM, or the errno of memfd_make().
 */
int lifetime_new(struct lifetime **ret, const struct lifetime_ops *ops)
	_must_check_;
struct lifetime *lifetime_free(struct lifetime *lt);

enum backing_lifetime lifetime_mode(const struct lifetime *lt);

/* Why it is not BACKING_LIFETIME_EXACT, or "". Static text. */
const char *lifetime_reason(const struct lifetime *lt);

/* Readable when lifetime_dispatch() has events; -1: none. */
int lifetime_event_fd(const struct lifetime *lt);

/**
 * lifetime_watch() - the system call half of adding, for a worker
 * @own: borrowed
 *
 * Return: the watch, or -1: watches are used up, or inotify does not work here.
 */
int lifetime_watch(struct lifetime *lt, int own);

/* Adds a buffer that nobody holds yet; @wd is from lifetime_watch(). */
void lifetime_add(struct lifetime *lt, struct watched *w, int own, int wd);

/* From now on a client may hold it. */
void lifetime_arm(struct lifetime *lt, struct watched *w, uint64_t now_ns);

/* Its watch goes too. */
void lifetime_remove(struct lifetime *lt, struct watched *w);

/* Reads the events and makes the retests that are due. */
void lifetime_dispatch(struct lifetime *lt, uint64_t now_ns);

/* Return: when to dispatch next even without an event; UINT64_MAX: never. */
uint64_t lifetime_due_ns(const struct lifetime *lt);

/* Asks about every buffer that a client may hold, as after lost events. */
void lifetime_sweep(struct lifetime *lt, uint64_t now_ns);
