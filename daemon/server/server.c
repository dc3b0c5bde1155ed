/* SPDX-License-Identifier: MIT */
#include "server/server.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "server/admin.h"
#include "server/alloc.h"
#include "server/inject.h"
#include "server/live.h"
#include "server/model.h"
#include "server/notify.h"
#include "server/outcome.h"
#include "server/pressure.h"
#include "server/privilege.h"
#include "server/session.h"
#include "server/stats.h"
#include "server/trace.h"

uint64_t server_node_time(const struct server *server)
{
	/* With clock = event only requests make the node's time pass. */
	if (server->config->daemon.clock == CONFIG_CLOCK_EVENT)
		return node_now_ns(server->node);
	return clock_now_ns() - server->node_start_ns;
}

uint64_t server_request_time(const struct server *server)
{
	if (server->config->daemon.clock == CONFIG_CLOCK_EVENT)
		return node_now_ns(server->node) + SERVER_EVENT_SLICE_NS;
	return server_node_time(server);
}

void server_advance(struct server *server)
{
	node_advance(server->node, server_node_time(server));
}

bool server_must_wait(struct server *server)
{
	if (server->config->daemon.clock != CONFIG_CLOCK_EVENT)
		return false;
	/* A close that came before the request has happened before it. */
	backing_dispatch(server->backing);
	if (server->n_recycling > 0)
		backing_hurry(server->backing, 1);
	return server->n_recycling > 0;
}

void server_kick(struct server *server)
{
	if (!server->pump.armed)
		loop_timer_set(server->loop, &server->pump, 0);
}

static void refill(void *ctx)
{
	struct server *s = ctx;
	uint64_t next_ns = UINT64_MAX, now_ns;
	struct heap *heap;

	server_advance(s);
	for (unsigned int i = 0; (heap = heap_set_get(s->heaps, i)); i++) {
		uint64_t at_ns;

		if (!heap_policy(heap)->pool_refill)
			continue;
		/* Before: taking blocks makes the node's time pass. */
		trace_refill(s->trace, heap);
		at_ns = heap_refill(heap, node_now_ns(s->node));
		next_ns = MIN(next_ns, at_ns);
	}
	if (next_ns != UINT64_MAX) {
		now_ns = node_now_ns(s->node);
		loop_timer_set(s->loop, &s->refill,
			       clock_now_ns() + (next_ns > now_ns
							 ? next_ns - now_ns
							 : 0));
	}
	stats_touch(s);
}

void server_pools_changed(struct server *server)
{
	struct heap *heap;

	for (unsigned int i = 0; (heap = heap_set_get(server->heaps, i)); i++) {
		if (!heap_policy(heap)->pool_refill || server->refill.armed)
			continue;
		loop_timer_set(server->loop, &server->refill, 0);
		return;
	}
}

void server_released(struct server *server)
{
	if (!fair_queue_is_empty(&server->queue))
		server_kick(server);
	pressure_check_restore(server->pressure);
	server_pools_changed(server);
}

void server_apply_quota(struct server *server)
{
	struct quota_rules rules;

	config_quota_rules(server->config, server->node_bytes, &rules);
	quota_set_rules(server->quota, &rules);
}

/* ---- reload ---- */

static void apply_config(struct server *s)
{
	struct heap *heap;

	server_advance(s);
	log_set_level((enum log_level)s->config->daemon.log_level);
	server_apply_quota(s);
	server_apply_limits(s);
	for (uint32_t i = 0; i < s->config->n_heaps; i++) {
		heap = heap_set_find(s->heaps, s->config->heaps[i].name);
		if (!heap)
			continue;
		heap_set_policy(heap, &s->config->heaps[i].policy);
		trace_policy(s->trace, heap);
	}
	backing_set_orders(s->backing, model_orders(s->heaps));
	stats_touch(s);
}

void server_apply_limits(struct server *server)
{
	const struct config_daemon *d = &server->config->daemon;
	struct conn_limits limits = conn_limits_default;

	limits.handshake_timeout_ns = d->handshake_timeout_ms * NSEC_PER_MSEC;
	limits.send_timeout_ns = d->send_timeout_ms * NSEC_PER_MSEC;
	listener_set_limits(server->listener, &limits);
}

int server_reload(struct server *server, char *report, size_t report_bytes)
{
	_cleanup_(config_freep) struct config *wanted = NULL;
	_cleanup_(strbuf_finip) struct strbuf keys = STRBUF_INIT;
	const char *file = *server->config->file ? server->config->file : NULL;
	struct conf_error err = {{0}};
	int r = config_load(file, &server->settings, &wanted, &err);

	if (r) {
		snprintf(report, report_bytes, "%s",
			 r > 0 ? err.text : strerror(-r));
		log_warn("reload result=refused reason=\"%s\"", report);
		return SERVER_E_CONFIG;
	}
	if (config_needs_restart(server->config, wanted, &keys))
		snprintf(report, report_bytes,
			 "reloaded; these need a restart: %s",
			 strbuf_string(&keys));
	else
		snprintf(report, report_bytes, "reloaded");
	/* Looking a group up may need what a confined process cannot do. */
	if (strcmp(server->config->daemon.admin_group,
		   wanted->daemon.admin_group) != 0)
		server->admin_gid =
			admin_find_group(wanted->daemon.admin_group);
	config_apply_live(server->config, wanted);
	apply_config(server);
	log_info("reload result=\"%s\"", report);
	return 0;
}

/* ---- signals and the end ---- */

void server_check_drained(struct server *server)
{
	if (server->draining && list_is_empty(&server->allocs) &&
	    fair_queue_is_empty(&server->queue))
		loop_stop(server->loop);
}

static void drain_deadline(void *ctx)
{
	struct server *s = ctx;

	log_warn("drain result=deadline key=\"[daemon] drain_timeout_ms\"");
	loop_stop(s->loop);
}

void server_drain(struct server *server)
{
	int r;

	if (server->draining)
		return;
	server->draining = true;
	r = notify_manager("STOPPING=1");
	if (r)
		log_warn("notify state=STOPPING reason=\"%s\"", strerror(-r));
	listener_stop_accepting(server->listener);
	loop_timer_set(server->loop, &server->deadline,
		       clock_now_ns() +
			       server->config->daemon.drain_timeout_ms *
				       NSEC_PER_MSEC);
	log_info("drain connections=%u", server->n_sessions);
	server_check_drained(server);
}

static void on_signal(void *ctx)
{
	struct server *s = ctx;
	struct signalfd_siginfo info;
	char report[DMAHEAP_ERROR_TEXT_MAX_BYTES];

	while (read(s->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGHUP)
			(void)server_reload(s, report, sizeof(report));
		else
			server_drain(s);
	}
}

/* The signals are blocked by main(), before there were threads. */
static int watch_signals(struct server *s)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s->signal_fd < 0)
		return err_raise(-errno);
	return loop_watch_new(&s->signal_watch, s->loop, s->signal_fd,
			      LOOP_READABLE, on_signal, s);
}

/* ---- making it ---- */

static void on_backing(void *ctx)
{
	struct server *s = ctx;

	backing_dispatch(s->backing);
}

/*
 * A client that closes sixteen buffers would wake the loop sixteen times. So
 * after the first close the watch pauses; what is closed meanwhile is looked at
 * by the next request, or by a timer until there is nothing more.
 */
static void on_release(void *ctx)
{
	struct server *s = ctx;

	loop_watch_pause(s->release_watch, true);
	backing_dispatch(s->backing);
	s->n_releases_seen = s->n_releases;
	loop_timer_set(s->loop, &s->release,
		       clock_now_ns() + SERVER_RELEASE_PAUSE_NS);
}

static void on_release_timer(void *ctx)
{
	struct server *s = ctx;

	backing_dispatch(s->backing);
	if (s->n_releases == s->n_releases_seen) {
		loop_watch_pause(s->release_watch, false);
		return;
	}
	s->n_releases_seen = s->n_releases;
	loop_timer_set(s->loop, &s->release,
		       clock_now_ns() + SERVER_RELEASE_PAUSE_NS);
}

void server_look_for_parked(struct server *server)
{
	if (server->release.armed)
		backing_dispatch(server->backing);
	else
		backing_collect(server->backing);
}

void server_enter_heaps(struct server *server, struct heap_set *heaps)
{
	heap_set_enlist(heaps, server->slabs);
	heap_set_track(heaps, server->track, SERVER_OBJECT_BUFFER,
		       SERVER_OBJECT_BLOCK);
}

static int make_model(struct server *s, char *error, size_t error_bytes)
{
	struct conf_error err = {{0}};
	int r = model_node_new(&s->node, s->config, NULL, NULL, &err);

	if (!r)
		r = model_heaps_new(&s->heaps, s->node, s->config,
				    &live_heap_ops, s, &err);
	if (r == MODEL_E_INVALID)
		snprintf(error, error_bytes, "%s", err.text);
	if (r)
		return r > 0 ? err_raise(-EINVAL) : err_trace(r);
	server_enter_heaps(s, s->heaps);
	s->node_bytes = model_node_bytes(s->node);
	return 0;
}

static int watch_backing(struct server *s)
{
	int release_fd = backing_split_releases(s->backing);
	int r = loop_watch_new(&s->backing_watch, s->loop,
			       backing_event_fd(s->backing), LOOP_READABLE,
			       on_backing, s);

	if (r || release_fd < 0)
		return err_trace(r);
	return loop_watch_new(&s->release_watch, s->loop, release_fd,
			      LOOP_READABLE, on_release, s);
}

static int make_backing(struct server *s, char *error, size_t error_bytes)
{
	const struct config_backing_section *c = &s->config->backing;
	char why[BACKING_ERROR_BYTES] = "";
	struct backing_stats st;
	int r = backing_new(&s->backing,
			    &(struct backing_params){
				    .mode = (enum backing_kind)c->mode,
				    .recycle = c->recycle == 0,
				    .budget_bytes = c->budget_bytes,
				    .n_workers = (unsigned int)c->workers,
				    .manage_thp = c->manage_thp,
				    .orders = model_orders(s->heaps),
				    .thp_state_file = c->state_file,
				    .ops = &live_backing_ops,
				    .ctx = s,
			    },
			    why);

	if (r) {
		snprintf(error, error_bytes, "backing: %s", why);
		return err_trace(r);
	}
	backing_get_stats(s->backing, &st);
	s->lifetime = st.lifetime;
	return watch_backing(s);
}

static int make_loop(struct server *s, enum options_loop wanted, char *error,
		     size_t error_bytes)
{
	static const enum loop_kind kinds[] = {
		[OPTIONS_LOOP_AUTO] = LOOP_AUTO,
		[OPTIONS_LOOP_URING] = LOOP_URING,
		[OPTIONS_LOOP_EPOLL] = LOOP_EPOLL,
	};
	char reason[256] = "";
	int r = loop_new(&s->loop, kinds[wanted], reason, sizeof(reason));

	if (r) {
		snprintf(error, error_bytes, "loop: %s",
			 *reason ? reason : strerror(-r));
		return err_trace(r);
	}
	if (*reason)
		log_info("loop name=%s reason=\"%s\"", loop_name(s->loop),
			 reason);
	loop_timer_init(&s->pump, session_pump, s);
	loop_timer_init(&s->release, on_release_timer, s);
	loop_timer_init(&s->refill, refill, s);
	loop_timer_init(&s->refresh, stats_timer, s);
	loop_timer_init(&s->deadline, drain_deadline, s);
	return 0;
}

static void report_misuse(void *ctx, const struct objtrack_report *report)
{
	(void)ctx;
	log_error("object-misuse %s", report->text);
}

static int make_track(struct server *s)
{
	static const char *const kinds[] = {
		[SERVER_OBJECT_LIVE] = "live",
		[SERVER_OBJECT_REQUEST] = "request",
		[SERVER_OBJECT_SESSION] = "session",
		[SERVER_OBJECT_BUFFER] = "buffer",
		[SERVER_OBJECT_BLOCK] = "block",
	};
#ifdef DMAHEAP_DEBUG
	const bool built = true;
#else
	const bool built = false;
#endif
	unsigned int wanted = s->config->daemon.debug_objects;

	return objtrack_new(&s->track,
			    &(struct objtrack_params){
				    .enabled =
					    wanted == 2 ? built : wanted == 1,
				    .slots_in_batches = OBJTRACK_SLOTS_DEFAULT,
				    .n_workers = 1,
				    .kinds = kinds,
				    .n_kinds = ARRAY_SIZE(kinds),
				    .report = report_misuse,
				    .registry = s->slabs,
			    });
}

static int make_slab(struct server *s, struct slab_cache **ret,
		     const char *name, size_t size_bytes)
{
	return slab_cache_new(ret, name,
			      &(struct slab_params){
				      .size_bytes = size_bytes,
				      .n_fronts = 1,
				      .n_keep_free = 1,
				      .registry = s->slabs,
			      });
}

static int make_objects(struct server *s)
{
	int r = slab_registry_new(&s->slabs);

	if (!r)
		r = make_slab(s, &s->live_slab, "live", sizeof(struct live));
	if (!r)
		r = make_slab(s, &s->request_slab, "request",
			      sizeof(struct request));
	if (!r)
		r = make_slab(s, &s->session_slab, "session",
			      sizeof(struct session));
	if (!r)
		r = make_track(s);
	if (!r)
		r = quota_new(&s->quota);
	if (!r)
		r = segment_new(&s->segment);
	if (!r)
		r = inject_new(&s->inject, s->config->node.seed);
	if (!r)
		r = trace_new(&s->trace, s);
	if (!r)
		r = pressure_control_new(&s->pressure, s);
	return r;
}

static int make_socket(struct server *s, const struct options *options,
		       char *error, size_t error_bytes)
{
	const struct config_daemon *d = &s->config->daemon;
	gid_t gid = admin_find_group(d->socket_group);

	if (*d->socket_group && gid == (gid_t)-1) {
		snprintf(error, error_bytes,
			 "[daemon] socket_group: there is no group \"%s\"",
			 d->socket_group);
		return err_raise(-EINVAL);
	}
	return listen_open(options->socket_path, (mode_t)d->socket_mode, gid,
			   &s->socket, error, error_bytes);
}

static int make_listener(struct server *s)
{
	int r = listener_new(&s->listener, s->loop, s->socket.fd,
			     &conn_limits_default, &session_conn_ops, s);

	if (!r) {
		listener_enlist(s->listener, s->slabs);
		server_apply_limits(s);
	}
	return r;
}

int server_check_config(const struct config *config, struct conf_error *err)
{
	_cleanup_(node_freep) struct node *node = NULL;
	_cleanup_(heap_set_freep) struct heap_set *heaps = NULL;
	int r = model_node_new(&node, config, NULL, NULL, err);

	if (!r)
		r = model_heaps_new(&heaps, node, config, NULL, NULL, err);
	return r;
}

static struct server *server_alloc(struct config *config)
{
	struct server *s = calloc(1, sizeof(*s));

	if (!s) {
		config_free(config);
		return NULL;
	}
	s->config = config;
	s->socket = LISTEN_SOCKET_NONE;
	s->signal_fd = -1;
	s->uid = geteuid();
	s->start_ns = clock_now_ns();
	s->node_start_ns = s->start_ns;
	s->start_realtime_ns = clock_realtime_ns();
	s->admin_gid = admin_find_group(config->daemon.admin_group);
	list_init(&s->sessions);
	list_init(&s->allocs);
	fair_queue_init(&s->queue);
	recycling_init(&s->recycling);
	return s;
}

int server_new(struct server **ret, const struct options *options,
	       struct config *config, char *error, size_t error_bytes)
{
	_cleanup_(server_freep) struct server *s = server_alloc(config);
	int r;

	*error = '\0';
	if (!s)
		return err_raise(-ENOMEM);
	s->settings = options->settings;
	if (getrandom(&s->instance_id, sizeof(s->instance_id), 0) !=
	    sizeof(s->instance_id))
		return err_raise(-errno);
	r = make_objects(s);
	if (!r)
		r = make_loop(s, options->loop, error, error_bytes);
	if (!r)
		r = make_socket(s, options, error, error_bytes);
	/* From here on threads are started. */
	if (!r)
		r = privilege_drop();
	if (!r)
		r = make_model(s, error, error_bytes);
	if (!r)
		r = make_backing(s, error, error_bytes);
	if (!r)
		r = watch_signals(s);
	if (!r)
		r = make_listener(s);
	if (r) {
		if (!*error)
			snprintf(error, error_bytes, "%s", strerror(-r));
		return err_fold(r);
	}
	server_apply_quota(s);
	stats_refresh(s);
	*ret = TAKE_PTR(s);
	return 0;
}

/* Buffers that clients still hold stay theirs: nothing is punched. */
static void forget_buffers(struct server *s)
{
	struct buffer *b = s->heaps ? heap_set_next_buffer(s->heaps, 0) : NULL;

	for (; b; b = heap_set_buffer_after(s->heaps, b))
		if (b->owner)
			live_forget(b->owner);
}

struct server *server_free(struct server *server)
{
	if (!server)
		return NULL;
	/* First: each session that ends tells pressure and injections. */
	server->listener = listener_free(server->listener);
	server->pressure = pressure_control_free(server->pressure);
	listen_close(&server->socket);
	forget_buffers(server);
	server->release_watch = loop_watch_free(server->release_watch);
	server->backing_watch = loop_watch_free(server->backing_watch);
	server->backing = backing_free(server->backing);
	/* The next daemon can adopt the buffers now. */
	listen_fini(&server->socket);
	server->heaps = heap_set_free(server->heaps);
	server->node = node_free(server->node);
	server->signal_watch = loop_watch_free(server->signal_watch);
	fd_close(server->signal_fd);
	if (server->loop) {
		loop_timer_clear(server->loop, &server->pump);
		loop_timer_clear(server->loop, &server->release);
		loop_timer_clear(server->loop, &server->refill);
		loop_timer_clear(server->loop, &server->refresh);
		loop_timer_clear(server->loop, &server->deadline);
	}
	server->loop = loop_free(server->loop);
	server->trace = trace_free(server->trace);
	server->inject = inject_free(server->inject);
	server->segment = segment_free(server->segment);
	server->quota = quota_free(server->quota);
	server->track = objtrack_free(server->track);
	server->session_slab = slab_cache_free(server->session_slab);
	server->request_slab = slab_cache_free(server->request_slab);
	server->live_slab = slab_cache_free(server->live_slab);
	server->slabs = slab_registry_free(server->slabs);
	server->config = config_free(server->config);
	free(server);
	return NULL;
}

int server_run(struct server *server)
{
	int r = loop_run(server->loop);

	return r ? err_fold(r) : 0;
}
