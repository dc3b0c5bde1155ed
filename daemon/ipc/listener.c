/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "ipc/conn_impl.h"

/*
 * When there is no fd left for a waiting connection, the spare one is closed,
 * the connections are accepted into its place and closed at once, and it is
 * opened again. Otherwise they would wait for ever, and the acceptor, which
 * stays ready, would spin.
 *
 * A connection may send descriptors only once it is welcome and somebody's
 * quota pays for it: what came before, and cannot be closed at once, would pile
 * up without a limit.
 */

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* since 6.16 */
#endif

#define SHED_MAX 1024 /* more than a backlog */
#define RETRY_NS (50 * NSEC_PER_MSEC)

static int open_spare(void)
{
	return open("/", O_PATH | O_CLOEXEC);
}

void listener_take_fds(int fd, bool may_send)
{
	const int value = may_send;

	/* An older kernel lets them through, unread, in the socket's queue. */
	(void)setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &value, sizeof(value));
}

void listener_drop(struct listener *listener, int fd)
{
	struct closer_group *group;
	struct ucred cred = {0};
	socklen_t n_bytes = sizeof(cred);

	(void)shutdown(fd, SHUT_RDWR);
	if (closer_empty_socket(fd)) {
		fd_close(fd);
		return;
	}
	(void)getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n_bytes);
	group = closer_group_new(listener->closer, cred.uid, NULL, NULL);
	if (group)
		closer_close_socket(group, fd);
	else
		fd_close(fd);
	closer_group_free(group);
}

/* Return: whether everything that waited is gone. */
static bool shed(struct listener *l)
{
	bool done = false;

	if (l->spare_fd < 0)
		l->spare_fd = open_spare();
	l->spare_fd = fd_close(l->spare_fd);
	for (int i = 0; i < SHED_MAX && !done; i++) {
		int fd = accept4(l->fd, NULL, NULL,
				 SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0)
			l->stats.shed++;
		else if (errno == EAGAIN)
			done = true;
		else if (errno == EMFILE || errno == ENFILE)
			break; /* somebody else took the place */
		if (fd >= 0)
			listener_drop(l, fd);
	}
	l->spare_fd = open_spare();
	return done && l->spare_fd >= 0;
}

static void on_accept(void *ctx, int fd)
{
	struct listener *l = ctx;

	if (fd >= 0) {
		l->stats.accepted++;
		if (conn_new(l, fd) < 0)
			l->stats.shed++;
		return;
	}
	if ((fd == -EMFILE || fd == -ENFILE) && shed(l))
		loop_acceptor_resume(l->acceptor);
	else
		loop_timer_set(l->loop, &l->resume_timer,
			       clock_now_ns() + RETRY_NS);
}

static void on_resume_timer(void *ctx)
{
	struct listener *l = ctx;

	if (l->spare_fd < 0)
		l->spare_fd = open_spare();
	loop_acceptor_resume(l->acceptor);
}

static int set_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return err_raise(-errno);
	return 0;
}

static void on_closer(void *ctx)
{
	struct listener *l = ctx;

	closer_dispatch(l->closer);
}

static const struct slab_params conn_slab_params = {
	.size_bytes = sizeof(struct conn),
	.n_fronts = 1,
	.n_keep_free = 1,
};

int listener_new(struct listener **ret, struct loop *loop, int listen_fd,
		 const struct conn_limits *limits, const struct conn_ops *ops,
		 void *ctx)
{
	_cleanup_(listener_freep) struct listener *l = NULL;
	int r;

	assert(limits->max_in_flight > 0);
	r = set_nonblocking(listen_fd);
	if (r)
		return err_trace(r);
	l = calloc(1, sizeof(*l));
	if (!l)
		return err_raise(-ENOMEM);
	*l = (struct listener){.loop = loop,
			       .fd = listen_fd,
			       .limits = *limits,
			       .ops = ops,
			       .ctx = ctx};
	list_init(&l->conns);
	list_init(&l->leaving);
	loop_timer_init(&l->resume_timer, on_resume_timer, l);
	l->spare_fd = open_spare();
	if (l->spare_fd < 0)
		return err_raise(-errno);
	r = slab_cache_new(&l->conn_slab, "conn", &conn_slab_params);
	if (r)
		return err_trace(r);
	r = closer_new(&l->closer);
	if (r)
		return err_trace(r);
	r = loop_watch_new(&l->closer_watch, loop, closer_event_fd(l->closer),
			   LOOP_READABLE, on_closer, l);
	if (r)
		return err_trace(r);
	/* Nobody owes anything yet for what comes before it is welcome. */
	listener_take_fds(listen_fd, false);
	r = loop_acceptor_new(&l->acceptor, loop, listen_fd, on_accept, l);
	if (r)
		return err_trace(r);
	*ret = TAKE_PTR(l);
	return 0;
}

struct listener *listener_free(struct listener *listener)
{
	struct list_node *node;

	if (!listener)
		return NULL;
	listener_stop_accepting(listener);
	while ((node = list_first(&listener->conns)))
		conn_abandon(list_entry(node, struct conn, link));
	while ((node = list_first(&listener->leaving)))
		conn_abandon(list_entry(node, struct conn, link));
	listener->closer_watch = loop_watch_free(listener->closer_watch);
	listener->closer = closer_free(listener->closer);
	fd_close(listener->spare_fd);
	slab_cache_free(listener->conn_slab);
	free(listener);
	return NULL;
}

void listener_enlist(struct listener *listener, struct slab_registry *registry)
{
	slab_cache_enlist(listener->conn_slab, registry);
}

void listener_stop_accepting(struct listener *listener)
{
	listener->acceptor = loop_acceptor_free(listener->acceptor);
	loop_timer_clear(listener->loop, &listener->resume_timer);
}

void listener_set_limits(struct listener *listener,
			 const struct conn_limits *limits)
{
	assert(limits->max_in_flight > 0);
	listener->limits = *limits;
}

void listener_get_stats(const struct listener *listener,
			struct listener_stats *ret)
{
	*ret = listener->stats;
}

struct conn *listener_next(struct listener *listener, struct conn *after)
{
	struct list_node *node =
		after ? after->link.next : listener->conns.next;

	if (node == &listener->conns)
		return NULL;
	return list_entry(node, struct conn, link);
}
