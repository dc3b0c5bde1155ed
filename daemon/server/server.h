/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Server: the one object that holds the daemon together. The other files of
 * this directory each add one ability to it; nothing outside includes this.
 *
 * Units:     *_ns of CLOCK_MONOTONIC unless a name says realtime.
 * Ownership: server_new() gives the caller the only reference; everything that
 *            hangs on it goes with server_free().
 * Threads:   one, the loop's.
 */

#include <sys/types.h>

#include "backing/backing.h"
#include "base/base.h"
#include "base/list.h"
#include "base/log.h"
#include "base/objtrack.h"
#include "base/slab.h"
#include "heap/system_heap.h"
#include "ipc/conn.h"
#include "ipc/loop.h"
#include "mm/node.h"
#include "server/config.h"
#include "server/fair.h"
#include "server/listen.h"
#include "server/options.h"
#include "server/quota.h"
#include "server/recycling.h"
#include "server/segment.h"

struct inject;
struct pressure;
struct trace;

/* Kinds of struct objtrack. */
enum server_object {
	SERVER_OBJECT_LIVE,
	SERVER_OBJECT_REQUEST,
	SERVER_OBJECT_SESSION,
	SERVER_OBJECT_BUFFER, /* of a heap */
	SERVER_OBJECT_BLOCK,  /* of a buffer, by its page frame */
	SERVER_OBJECT_KINDS,
};

struct server {
	struct config *config;
	struct config_settings settings; /* for a reload */
	struct listen_socket socket;
	uid_t uid;
	gid_t admin_gid; /* (gid_t)-1: no such group */
	uint64_t start_ns;
	uint64_t node_start_ns; /* when the node's time was 0 */
	uint64_t start_realtime_ns;
	uint64_t instance_id;

	struct loop *loop;
	struct listener *listener;
	struct loop_watch *backing_watch;
	struct loop_watch *release_watch; /* of closes; NULL: none tell */
	struct loop_watch *signal_watch;
	int signal_fd;

	struct node *node;
	struct heap_set *heaps;
	struct backing *backing;
	uint64_t node_bytes;
	enum backing_lifetime lifetime;

	struct quota *quota;
	struct fair_queue queue;    /* requests that wait for their turn */
	struct loop_timer pump;     /* serves the queue in the next round */
	struct loop_timer refill;   /* of the page pools */
	struct loop_timer refresh;  /* of the stats segment */
	struct loop_timer release;  /* armed: the release watch is paused */
	uint64_t n_releases;        /* buffers whose last reference went */
	uint64_t n_releases_seen;   /* by the release timer */
	struct loop_timer deadline; /* of draining */
	bool draining;

	struct segment *segment;
	struct slab_registry *slabs;
	struct slab_cache *live_slab;
	struct slab_cache *request_slab;
	struct slab_cache *session_slab;
	struct objtrack *track;

	struct list_node sessions; /* session::server_link */
	unsigned int n_sessions;
	unsigned int n_recycling; /* released buffers on their way to a pool */
	struct recycling recycling; /* the small ones, and who waits for them */
	struct list_node allocs;    /* alloc::server_link, in flight */

	struct inject *inject;
	struct pressure *pressure;
	struct trace *trace;

	uint64_t n_requests;
	uint64_t n_bad_requests;
	uint64_t n_denied;
	struct log_limit log_denied;
	struct log_limit log_fault;
	struct log_limit log_trouble;
};

/**
 * server_new() - everything but the loop's first round
 * @config: consumed, always
 * @error:  receives a sentence on failure
 *
 * Return: 0 or a negated errno.
 */
int server_new(struct server **ret, const struct options *options,
	       struct config *config, char *error, size_t error_bytes)
	_must_check_;

/**
 * server_check_config() - what --check-config checks beyond the file's keys
 *
 * Builds the node and its heaps and throws them away.
 * Return: 0, MODEL_E_INVALID with @err, or a negated errno.
 */
int server_check_config(const struct config *config, struct conf_error *err)
	_must_check_;

/* Return: NULL, always. @server may be NULL. */
struct server *server_free(struct server *server);
DEFINE_CLEANUP(struct server *, server_free);

/* Serves until SIGTERM or SIGINT and the drain after it. Return: 0, or what
 * loop_run() gave. */
int server_run(struct server *server) _must_check_;

/* No more connections; ends when nothing is in flight, or at the deadline. */
void server_drain(struct server *server);

/* Ends the loop if it drains and nothing is in flight any more. */
void server_check_drained(struct server *server);

/**
 * server_reload() - read the config file again
 * @report: receives what changed at once and what needs a restart, or on
 *          failure the reason; the old configuration stays in force then
 *
 * Return: 0 or SERVER_E_CONFIG.
 */
int server_reload(struct server *server, char *report, size_t report_bytes);

/* Makes the caches of new heaps known to slabinfo and to the tracker. */
void server_enter_heaps(struct server *server, struct heap_set *heaps);

/* The node's time: nanoseconds since it was made. */
uint64_t server_node_time(const struct server *server);

/*
 * Lets the node's time pass until now, before anything but an allocation, which
 * does so itself, changes the node or its heaps: what the node's threads did
 * meanwhile came first, and the trace has the time at which it happened.
 */
void server_advance(struct server *server);

/* How far apart requests are with clock = event. */
#define SERVER_EVENT_SLICE_NS UINT64_C(1000000)

/*
 * When a request that comes now begins: with clock = event a fixed slice after
 * all that was before. The node itself is told times only, as by dmaheap-lab,
 * which therefore replays a trace of either clock exactly.
 */
uint64_t server_request_time(const struct server *server);

/* With clock = event a release must be through before the next request. */
bool server_must_wait(struct server *server);

/*
 * How long closes may go unnoticed while clients close often and ask nothing.
 * Not shorter than a tick: a timer before the next tick is programmed into the
 * hardware at each wait, which costs more than the wake-ups that it spares.
 */
#define SERVER_RELEASE_PAUSE_NS (5 * NSEC_PER_MSEC)

/* Notices what clients have closed and what was recycled, so that a request
 * finds it parked. Cheap when there is nothing. */
void server_look_for_parked(struct server *server);

/* Serve the queue soon. */
void server_kick(struct server *server);

/* Something was taken from the pools or put there: refill if a policy says so.
 */
void server_pools_changed(struct server *server);

/* Quotas and times of the configuration, as they are now, into force. */
void server_apply_quota(struct server *server);
void server_apply_limits(struct server *server);

/* A release is over: whoever waited for it may go on. */
void server_released(struct server *server);
