/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What alloc.c, the request, and alloc_item.c, one buffer of it, share.
 *
 * Units:     *_ns, *_bytes.
 * Ownership: the items are the request's.
 * Threads:   the loop's.
 */

#include "base/fd.h"
#include "server/alloc.h"
#include "server/live.h"
#include "server/server.h"
#include "server/session.h"

/* One buffer of the request. */
struct alloc_item {
	struct alloc *alloc;
	struct live *live;          /* NULL: not there yet, or failed */
	struct backing_buffer *bb;  /* while a worker makes it */
	struct recycling_wait wait; /* for one that is being recycled */
	int fd;                     /* for the client; -1: not yet */
	struct dmaheap_alloc_report report;
};

struct alloc {
	struct session *session;
	struct dmaheap_header header;
	struct dmaheap_alloc_req req;
	struct heap *heap;
	uint64_t len_bytes; /* of one buffer, whole pages */
	uint64_t received_ns;
	uint64_t started_ns;
	uint64_t ready_ns;    /* when only the stall was left to wait for */
	uint64_t injected_ns; /* a stall that was injected */
	uint64_t deadline_ns; /* no reply before; 0: no stall */
	struct loop_timer stall;
	struct quota_charge charge;    /* what the items do not hold yet */
	struct list_node session_link; /* session::allocs */
	struct list_node server_link;  /* server::allocs */
	int err;                       /* > 0: it failed, and is told so */
	char error[DMAHEAP_ERROR_TEXT_MAX_BYTES];
	uint32_t n_pending; /* items that a worker makes or recycles */
	uint32_t n_waiting; /* of them, for one that is recycled */
	uint32_t n_items;
	struct alloc_item items[];
};

static inline struct server *alloc_server(const struct alloc *a)
{
	return a->session->server;
}

/* The first failure is told; all items are undone. */
_printf_(3, 4) void alloc_fail(struct alloc *a, int err, const char *fmt, ...);

/* Replies, and frees @a, when neither worker nor stall is left to wait for. */
void alloc_try_finish(struct alloc *a);

/**
 * alloc_item_start() - find or make one buffer
 * @may_wait: for one that is being recycled
 *
 * What cannot be had at once is counted in alloc::n_pending.
 *
 * Return: false when the request has failed.
 */
bool alloc_item_start(struct alloc_item *item, bool may_wait);

/*
 * Undoes one item. A descriptor that was opened already is only closed: the
 * backing then sees the last reference go, as of any client.
 */
void alloc_item_drop(struct alloc_item *item);
