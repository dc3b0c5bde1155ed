/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <dmaheap/protocol.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/list.h"
#include "ipc/loop_impl.h"

/* gcc's analyzer takes a pointer to a member for the loss of the whole. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wanalyzer-malloc-leak"
#endif

/*
 * epoll_event.data is always a struct source, embedded in its owner. An owner
 * freed in the middle of a round is marked dead and goes at the round's end,
 * since an event for it may still be waiting in the array.
 *
 * A source is registered with the events that epoll last heard of; what is no
 * longer wanted is taken out only when it comes in the way, so that a request
 * and its reply cost no epoll_ctl() at all. A change that the kernel refuses is
 * tried once more in the next round before the owner is told.
 */

#define EVENTS_PER_ROUND  64
#define ACCEPTS_PER_ROUND 64

struct source {
	void (*ready)(struct source *source, uint32_t events);
	void (*failed)(struct source *source, int r);
	int fd;
	uint32_t registered; /* 0: epoll does not know this fd */
	uint32_t wanted;     /* while on the list retry */
	bool dead;
	void *owner;           /* freed with the dead */
	struct list_node link; /* epoll_loop::retry or epoll_loop::dead */
};

struct epoll_loop {
	struct loop base;
	int epoll_fd;
	struct list_node retry;
	struct list_node dead;
	_Alignas(8) char buffer[DMAHEAP_MESSAGE_MAX_BYTES];
};

/* In each owner the base comes first: it is what the user holds. */
struct epoll_watch {
	struct loop_watch base;
	struct source source;
};

struct epoll_socket {
	struct loop_socket base;
	struct source source;
	bool wants_message;
	bool wants_room;
};

struct epoll_acceptor {
	struct loop_acceptor base;
	struct source source;
	bool paused;
};

static struct epoll_loop *to_epoll(struct loop *loop)
{
	return container_of(loop, struct epoll_loop, base);
}

/* No events at all are a removal, since EPOLLHUP would come even so. */
static int source_register(struct epoll_loop *el, struct source *s,
			   uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = s};
	int op = EPOLL_CTL_MOD;

	if (events == 0 && s->registered == 0)
		return 0;
	if (events == 0)
		op = EPOLL_CTL_DEL;
	else if (s->registered == 0)
		op = EPOLL_CTL_ADD;
	if (epoll_ctl(el->epoll_fd, op, s->fd, &event) < 0)
		return err_raise(-errno);
	s->registered = events;
	return 0;
}

static void source_want(struct epoll_loop *el, struct source *s,
			uint32_t events)
{
	list_remove(&s->link);
	s->wanted = events;
	if (source_register(el, s, events) < 0)
		list_add_tail(&el->retry, &s->link);
}

static void source_init(struct source *s, void *owner, int fd,
			void (*ready)(struct source *, uint32_t),
			void (*failed)(struct source *, int))
{
	*s = (struct source){.ready = ready,
			     .failed = failed,
			     .owner = owner,
			     .fd = fd};
	list_init(&s->link);
}

static void source_kill(struct epoll_loop *el, struct source *s)
{
	list_remove(&s->link);
	(void)source_register(el, s, 0);
	s->dead = true;
	list_add_tail(&el->dead, &s->link);
}

/* ---- watch ---- */

static void watch_ready(struct source *s, uint32_t events)
{
	struct epoll_watch *w = container_of(s, struct epoll_watch, source);

	(void)events;
	w->base.fn(w->base.ctx);
}

static uint32_t watch_events(const struct loop_watch *w)
{
	return (w->events & LOOP_READABLE ? EPOLLIN : 0u) |
	       (w->events & LOOP_WRITABLE ? EPOLLOUT : 0u);
}

static void watch_failed(struct source *s, int r)
{
	(void)r;
	watch_ready(s, 0); /* its user looks for itself */
}

static int epoll_watch_new(struct loop_watch **ret, struct loop *loop, int fd,
			   unsigned int events, loop_watch_fn fn, void *ctx)
{
	struct epoll_watch *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return err_raise(-ENOMEM);
	w->base = (struct loop_watch){.loop = loop,
				      .fd = fd,
				      .events = events,
				      .fn = fn,
				      .ctx = ctx};
	source_init(&w->source, w, fd, watch_ready, watch_failed);
	r = source_register(to_epoll(loop), &w->source, watch_events(&w->base));
	if (r) {
		free(w);
		return err_trace(r);
	}
	*ret = &w->base;
	return 0;
}

static void epoll_watch_free(struct loop_watch *watch)
{
	struct epoll_watch *w = container_of(watch, struct epoll_watch, base);

	source_kill(to_epoll(watch->loop), &w->source);
}

static void epoll_watch_pause(struct loop_watch *watch, bool paused)
{
	struct epoll_watch *w = container_of(watch, struct epoll_watch, base);
	uint32_t events = paused ? 0 : watch_events(watch);

	if (w->source.registered != events)
		source_want(to_epoll(watch->loop), &w->source, events);
}

/* ---- socket ---- */

/* While room is awaited its edges are wanted; each change of a registration
 * looks at the socket anew, so that no message is missed by that. */
static uint32_t socket_events(const struct epoll_socket *s)
{
	uint32_t events = s->wants_message ? EPOLLIN : 0u;

	if (s->wants_room)
		events |= EPOLLOUT | EPOLLET;
	return events;
}

static void socket_failed(struct source *source, int r)
{
	struct epoll_socket *s =
		container_of(source, struct epoll_socket, source);
	struct msghdr none = {0};

	loop_message_deliver(&s->base, &none, NULL, r);
}

static void socket_receive(struct epoll_socket *s)
{
	struct epoll_loop *el = to_epoll(s->base.loop);
	union loop_control control;
	struct iovec iov = {.iov_base = el->buffer,
			    .iov_len = sizeof(el->buffer)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control.buf,
			     .msg_controllen = sizeof(control.buf)};
	ssize_t n;

	n = recvmsg(s->source.fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	s->wants_message = false;
	loop_message_deliver(&s->base, &msg, el->buffer, n < 0 ? -errno : n);
}

static void socket_ready(struct source *source, uint32_t events)
{
	struct epoll_socket *s =
		container_of(source, struct epoll_socket, source);

	if (s->wants_room && (events & (EPOLLOUT | EPOLLHUP | EPOLLERR)))
		s->base.ops->on_room(s->base.ctx);
	if (source->dead)
		return;
	if (s->wants_message)
		socket_receive(s);
	else if (source->registered != socket_events(s))
		source_want(to_epoll(s->base.loop), source, socket_events(s));
}

static int epoll_socket_new(struct loop_socket **ret, struct loop *loop, int fd,
			    const struct loop_socket_ops *ops, void *ctx)
{
	struct epoll_socket *s = calloc(1, sizeof(*s));

	if (!s)
		return err_raise(-ENOMEM);
	s->base = (struct loop_socket){.loop = loop,
				       .fd = fd,
				       .ops = ops,
				       .ctx = ctx};
	source_init(&s->source, s, fd, socket_ready, socket_failed);
	*ret = &s->base;
	return 0;
}

static void epoll_socket_free(struct loop_socket *socket)
{
	struct epoll_socket *s =
		container_of(socket, struct epoll_socket, base);

	source_kill(to_epoll(socket->loop), &s->source);
}

static void epoll_socket_read(struct loop_socket *socket)
{
	struct epoll_socket *s =
		container_of(socket, struct epoll_socket, base);

	if (s->wants_message)
		return;
	s->wants_message = true;
	if (s->source.registered != EPOLLIN)
		source_want(to_epoll(socket->loop), &s->source,
			    socket_events(s));
}

static void epoll_socket_await_room(struct loop_socket *socket, bool on)
{
	struct epoll_socket *s =
		container_of(socket, struct epoll_socket, base);

	if (s->wants_room == on)
		return;
	s->wants_room = on;
	source_want(to_epoll(socket->loop), &s->source, socket_events(s));
}

/* ---- acceptor ---- */

static void acceptor_failed(struct source *source, int r)
{
	struct epoll_acceptor *a =
		container_of(source, struct epoll_acceptor, source);

	a->paused = true;
	a->base.fn(a->base.ctx, r);
}

static void acceptor_ready(struct source *source, uint32_t events)
{
	struct epoll_acceptor *a =
		container_of(source, struct epoll_acceptor, source);

	(void)events;
	for (int i = 0; i < ACCEPTS_PER_ROUND; i++) {
		int fd;

		if (source->dead || a->paused)
			return;
		fd = accept4(source->fd, NULL, NULL,
			     SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0) {
			a->base.fn(a->base.ctx, fd);
		} else if (loop_accept_must_wait(-errno)) {
			int r = -errno;

			source_want(to_epoll(a->base.loop), source, 0);
			acceptor_failed(source, r);
		} else if (errno == EAGAIN) {
			return;
		}
	}
}

static int epoll_acceptor_new(struct loop_acceptor **ret, struct loop *loop,
			      int fd, loop_accept_fn fn, void *ctx)
{
	struct epoll_acceptor *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return err_raise(-ENOMEM);
	a->base = (struct loop_acceptor){.loop = loop,
					 .fd = fd,
					 .fn = fn,
					 .ctx = ctx};
	source_init(&a->source, a, fd, acceptor_ready, acceptor_failed);
	r = source_register(to_epoll(loop), &a->source, EPOLLIN);
	if (r) {
		free(a);
		return err_trace(r);
	}
	*ret = &a->base;
	return 0;
}

static void epoll_acceptor_free(struct loop_acceptor *acceptor)
{
	struct epoll_acceptor *a =
		container_of(acceptor, struct epoll_acceptor, base);

	source_kill(to_epoll(acceptor->loop), &a->source);
}

static void epoll_acceptor_resume(struct loop_acceptor *acceptor)
{
	struct epoll_acceptor *a =
		container_of(acceptor, struct epoll_acceptor, base);

	if (!a->paused)
		return;
	a->paused = false;
	source_want(to_epoll(acceptor->loop), &a->source, EPOLLIN);
}

/* ---- loop ---- */

static void bury_the_dead(struct epoll_loop *el)
{
	list_for_each_safe(node, &el->dead)
		free(list_entry(node, struct source, link)->owner);
	list_init(&el->dead);
}

/* What the callbacks add meanwhile has its turn in the next round. */
static void retry_registrations(struct epoll_loop *el)
{
	struct list_node *last = el->retry.prev, *node;
	bool done = list_is_empty(&el->retry);

	while (!done && (node = list_first(&el->retry))) {
		struct source *s = list_entry(node, struct source, link);
		int r;

		done = node == last;
		list_remove(node);
		r = source_register(el, s, s->wanted);
		if (r)
			s->failed(s, r);
	}
}

static int to_timeout_ms(uint64_t timeout_ns)
{
	uint64_t ms;

	if (timeout_ns == LOOP_FOREVER)
		return -1;
	/* Rounded up: a timer that is not due yet would only spin. */
	ms = timeout_ns / NSEC_PER_MSEC + (timeout_ns % NSEC_PER_MSEC != 0);
	return (int)MIN(ms, UINT64_C(3600000));
}

static int epoll_loop_wait(struct loop *loop, uint64_t timeout_ns)
{
	struct epoll_loop *el = to_epoll(loop);
	struct epoll_event events[EVENTS_PER_ROUND];
	int n;

	retry_registrations(el);
	if (!list_is_empty(&el->retry))
		timeout_ns = 0;
	if (!loop->stopping) {
		n = epoll_wait(el->epoll_fd, events, EVENTS_PER_ROUND,
			       to_timeout_ms(timeout_ns));
		if (n < 0 && errno != EINTR)
			return err_raise(-errno);
		for (int i = 0; i < n && !loop->stopping; i++) {
			struct source *s = events[i].data.ptr;

			if (!s->dead)
				s->ready(s, events[i].events);
		}
	}
	bury_the_dead(el);
	return 0;
}

static struct loop *epoll_loop_free(struct loop *loop)
{
	struct epoll_loop *el = to_epoll(loop);

	bury_the_dead(el);
	fd_close(el->epoll_fd);
	free(el);
	return NULL;
}

static const struct loop_backend epoll_backend = {
	.name = "epoll",
	.free = epoll_loop_free,
	.wait = epoll_loop_wait,
	.watch_new = epoll_watch_new,
	.watch_free = epoll_watch_free,
	.watch_pause = epoll_watch_pause,
	.socket_new = epoll_socket_new,
	.socket_free = epoll_socket_free,
	.socket_read = epoll_socket_read,
	.socket_await_room = epoll_socket_await_room,
	.acceptor_new = epoll_acceptor_new,
	.acceptor_free = epoll_acceptor_free,
	.acceptor_resume = epoll_acceptor_resume,
};

int loop_epoll_new(struct loop **ret)
{
	struct epoll_loop *el = calloc(1, sizeof(*el));

	if (!el)
		return err_raise(-ENOMEM);
	el->base.backend = &epoll_backend;
	list_init(&el->retry);
	list_init(&el->dead);
	el->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (el->epoll_fd < 0) {
		int r = -errno;

		free(el);
		return err_raise(r);
	}
	*ret = &el->base;
	return 0;
}
