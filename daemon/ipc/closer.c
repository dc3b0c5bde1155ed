/* SPDX-License-Identifier: MIT */
#include "ipc/closer.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/list.h"

/*
 * A group with something to close is on the list work of its kind, except while
 * a thread has one of its descriptors in hand; with nothing left it goes to the
 * list done, for the loop. A thread takes one descriptor at a time, so that one
 * user's long row does not keep another waiting.
 */

#define N_STRANGE    16u /* as many uids can block before others notice */
#define N_THREADS    (1u + N_STRANGE)
#define STACK_BYTES  KIB(64)
#define FAREWELL_S   1 /* for those that do not block */
#define PEEK_TRIES   4
#define MESSAGES_MAX 1024 /* read away by the loop; more than a queue holds */

enum kind {
	KIND_MEMFD, /* all of the group are: they cannot wait */
	KIND_STRANGE,
	KIND_COUNT_,
};

struct closer_group {
	struct closer *closer;
	uid_t uid;
	closer_done_fn done;
	void *ctx;
	bool busy; /* the loop's alone: from closer_close() until done() */

	/* under the lock */
	enum kind kind;
	bool in_hand;   /* a thread is closing one of it */
	bool abandoned; /* freed by its user */
	unsigned int n_fds;
	int fds[CLOSER_GROUP_MAX];
	int socket;
	struct list_node link; /* closer::work or closer::done */
};

struct thread {
	struct closer *closer;
	pthread_t id;
	enum kind kind;
	bool started;
	/* under the lock */
	bool ended;
	const struct closer_group *group; /* one of which it is closing */
};

struct closer {
	pthread_mutex_t lock;
	pthread_cond_t wake[KIND_COUNT_];
	pthread_cond_t ended;
	int event_fd;
	struct thread threads[N_THREADS];
	/* under the lock */
	struct list_node work[KIND_COUNT_];
	struct list_node done;
	unsigned int n_refs; /* its user's, and of each thread that runs */
	bool stopping;
};

static void destroy(struct closer *c)
{
	for (unsigned int i = 0; i < KIND_COUNT_; i++)
		pthread_cond_destroy(&c->wake[i]);
	pthread_cond_destroy(&c->ended);
	pthread_mutex_destroy(&c->lock);
	fd_close(c->event_fd);
	free(c);
}

static void unlock_and_unref(struct closer *c)
{
	bool is_last = --c->n_refs == 0;

	pthread_mutex_unlock(&c->lock);
	if (is_last)
		destroy(c);
}

/* ---- messages that nobody will read ---- */

enum unread {
	UNREAD_NONE,
	UNREAD_PLAIN,
	UNREAD_WITH_FDS,
};

/*
 * The next message of @fd, looked at or taken. With SO_PASSCRED on, each
 * message brings credentials, by which an empty one differs from the end; there
 * is no room for anything else, so that no descriptor is ever installed.
 */
static enum unread receive(int fd, int flags)
{
	union {
		char buf[CMSG_SPACE(sizeof(struct ucred))];
		struct cmsghdr align;
	} control;

	for (int i = 0; i < PEEK_TRIES; i++) {
		struct msghdr msg = {.msg_control = control.buf,
				     .msg_controllen = sizeof(control.buf)};

		if (recvmsg(fd, &msg, flags | MSG_DONTWAIT) < 0) {
			if (errno == EAGAIN)
				return UNREAD_NONE;
			continue; /* an error of the past, told once */
		}
		if (msg.msg_flags & MSG_CTRUNC)
			return UNREAD_WITH_FDS;
		return msg.msg_controllen ? UNREAD_PLAIN : UNREAD_NONE;
	}
	return UNREAD_WITH_FDS; /* for all that is known */
}

static bool tell_messages_from_the_end(int fd)
{
	const int on = 1;

	return setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) == 0;
}

bool closer_empty_socket(int fd)
{
	if (!tell_messages_from_the_end(fd))
		return false;
	for (int i = 0; i < MESSAGES_MAX; i++) {
		enum unread next = receive(fd, MSG_PEEK);

		if (next != UNREAD_PLAIN)
			return next == UNREAD_NONE;
		(void)receive(fd, 0);
	}
	return false;
}

/* Emptied first: io_uring may keep it open a little longer, and would then
 * close in the loop's thread what is still in it. */
static void close_socket(int fd)
{
	if (tell_messages_from_the_end(fd))
		for (int i = 0; i < MESSAGES_MAX; i++)
			if (receive(fd, 0) == UNREAD_NONE)
				break;
	fd_close(fd);
}

/* ---- threads ---- */

static void put(struct closer_group *g)
{
	list_remove(&g->link);
	list_add_tail(&g->closer->work[g->kind], &g->link);
	pthread_cond_signal(&g->closer->wake[g->kind]);
}

static bool is_served(const struct closer *c, uid_t uid)
{
	for (unsigned int i = 0; i < N_THREADS; i++) {
		const struct thread *t = &c->threads[i];

		if (t->kind == KIND_STRANGE && t->group && t->group->uid == uid)
			return true;
	}
	return false;
}

static struct closer_group *take(struct closer *c, enum kind kind)
{
	list_for_each(node, &c->work[kind])
	{
		struct closer_group *g =
			list_entry(node, struct closer_group, link);

		if (kind == KIND_STRANGE && is_served(c, g->uid))
			continue;
		list_remove(&g->link);
		return g;
	}
	return NULL;
}

/* All of @g is closed. */
static void finish(struct closer_group *g)
{
	const uint64_t one = 1;

	if (g->abandoned) {
		free(g);
		return;
	}
	list_add_tail(&g->closer->done, &g->link);
	(void)!write(g->closer->event_fd, &one, sizeof(one));
}

/* Closes one of @g, with the lock given back meanwhile. */
static void serve(struct thread *t, struct closer_group *g)
{
	struct closer *c = t->closer;
	int fd = g->n_fds ? g->fds[--g->n_fds] : -1;
	int socket = fd < 0 ? TAKE_FD(g->socket) : -1;

	t->group = g;
	g->in_hand = true;
	pthread_mutex_unlock(&c->lock);
	fd_close(fd);
	if (socket >= 0)
		close_socket(socket);
	pthread_mutex_lock(&c->lock);
	g->in_hand = false;
	t->group = NULL;
	if (g->n_fds || g->socket >= 0)
		put(g);
	else
		finish(g);
}

static void *thread_main(void *arg)
{
	struct thread *t = arg;
	struct closer *c = t->closer;

	pthread_mutex_lock(&c->lock);
	for (;;) {
		struct closer_group *g = take(c, t->kind);

		if (g)
			serve(t, g);
		else if (c->stopping)
			break;
		else
			pthread_cond_wait(&c->wake[t->kind], &c->lock);
	}
	t->ended = true;
	pthread_cond_signal(&c->ended);
	unlock_and_unref(c);
	return NULL;
}

static int start_thread(struct closer *c, unsigned int i,
			const pthread_attr_t *attr)
{
	struct thread *t = &c->threads[i];
	int r;

	pthread_mutex_lock(&c->lock);
	t->closer = c;
	t->kind = i == 0 ? KIND_MEMFD : KIND_STRANGE;
	r = pthread_create(&t->id, attr, thread_main, t);
	t->started = r == 0;
	c->n_refs += r == 0;
	pthread_mutex_unlock(&c->lock);
	if (r)
		return err_raise(-r);
	(void)pthread_setname_np(t->id,
				 i == 0 ? "dmaheap-close" : "dmaheap-strange");
	return 0;
}

/* The process' signals are for its main thread. */
static int start_threads(struct closer *c)
{
	pthread_attr_t attr;
	sigset_t all, old;
	int r = pthread_attr_init(&attr);

	if (r)
		return err_raise(-r);
	(void)pthread_attr_setstacksize(&attr, STACK_BYTES);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	for (unsigned int i = 0; i < N_THREADS && !r; i++)
		r = start_thread(c, i, &attr);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return r;
}

int closer_new(struct closer **ret)
{
	struct closer *c = calloc(1, sizeof(*c));
	pthread_condattr_t monotonic;
	int r;

	if (!c)
		return err_raise(-ENOMEM);
	c->n_refs = 1;
	pthread_mutex_init(&c->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&c->ended, &monotonic);
	pthread_condattr_destroy(&monotonic);
	for (unsigned int i = 0; i < KIND_COUNT_; i++) {
		pthread_cond_init(&c->wake[i], NULL);
		list_init(&c->work[i]);
	}
	list_init(&c->done);
	c->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = c->event_fd < 0 ? err_raise(-errno) : start_threads(c);
	if (r) {
		closer_free(c);
		return err_trace(r);
	}
	*ret = c;
	return 0;
}

static bool all_ended(const struct closer *c)
{
	for (unsigned int i = 0; i < N_THREADS; i++)
		if (c->threads[i].started && !c->threads[i].ended)
			return false;
	return true;
}

static struct timespec farewell_time(void)
{
	struct timespec at;

	(void)clock_gettime(CLOCK_MONOTONIC, &at);
	at.tv_sec += FAREWELL_S;
	return at;
}

struct closer *closer_free(struct closer *closer)
{
	struct timespec until = farewell_time();
	int r = 0;

	if (!closer)
		return NULL;
	pthread_mutex_lock(&closer->lock);
	closer->stopping = true;
	for (unsigned int i = 0; i < KIND_COUNT_; i++)
		pthread_cond_broadcast(&closer->wake[i]);
	while (!all_ended(closer) && !r)
		r = pthread_cond_timedwait(&closer->ended, &closer->lock,
					   &until);
	for (unsigned int i = 0; i < N_THREADS; i++) {
		struct thread *t = &closer->threads[i];

		if (!t->started)
			continue;
		/* One that ended has given its reference back, or waits for the
		 * lock no more. */
		if (!t->ended)
			(void)pthread_detach(t->id);
		t->started = t->ended;
	}
	pthread_mutex_unlock(&closer->lock);
	for (unsigned int i = 0; i < N_THREADS; i++)
		if (closer->threads[i].started)
			pthread_join(closer->threads[i].id, NULL);
	pthread_mutex_lock(&closer->lock);
	unlock_and_unref(closer);
	return NULL;
}

/* ---- the loop's side ---- */

int closer_event_fd(const struct closer *closer)
{
	return closer->event_fd;
}

void closer_dispatch(struct closer *closer)
{
	struct list_node *node;
	uint64_t n;

	(void)!read(closer->event_fd, &n, sizeof(n));
	do {
		struct closer_group *g = NULL;

		pthread_mutex_lock(&closer->lock);
		node = list_first(&closer->done);
		if (node) {
			list_remove(node);
			g = list_entry(node, struct closer_group, link);
		}
		pthread_mutex_unlock(&closer->lock);
		if (g) {
			g->busy = false;
			g->done(g->ctx);
		}
	} while (node);
}

struct closer_group *closer_group_new(struct closer *closer, uid_t uid,
				      closer_done_fn done, void *ctx)
{
	struct closer_group *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->closer = closer;
	g->uid = uid;
	g->done = done;
	g->ctx = ctx;
	g->socket = -1;
	list_init(&g->link);
	return g;
}

struct closer_group *closer_group_free(struct closer_group *group)
{
	struct closer *c;
	bool is_idle;

	if (!group)
		return NULL;
	c = group->closer;
	pthread_mutex_lock(&c->lock);
	is_idle = !group->in_hand && group->n_fds == 0 && group->socket < 0;
	group->abandoned = true;
	if (is_idle)
		list_remove(&group->link); /* of those that are done */
	pthread_mutex_unlock(&c->lock);
	if (is_idle)
		free(group);
	return NULL;
}

bool closer_group_is_busy(const struct closer_group *group)
{
	return group->busy;
}

bool closer_check(struct closer *closer)
{
	bool good = true;

	pthread_mutex_lock(&closer->lock);
	for (enum kind kind = 0; kind < KIND_COUNT_; kind++)
		list_for_each(node, &closer->work[kind])
		{
			const struct closer_group *g =
				list_entry(node, struct closer_group, link);

			good &= g->kind == kind && !g->in_hand &&
				(g->n_fds || g->socket >= 0);
		}
	list_for_each(node, &closer->done)
	{
		const struct closer_group *g =
			list_entry(node, struct closer_group, link);

		good &= !g->in_hand && !g->abandoned && g->n_fds == 0 &&
			g->socket < 0;
	}
	pthread_mutex_unlock(&closer->lock);
	return good;
}

/* With the lock held. */
static void add_kind(struct closer_group *g, enum kind kind)
{
	g->kind = g->busy ? MAX(g->kind, kind) : kind;
	g->busy = true;
}

void closer_close(struct closer_group *group, int *fds, size_t n_fds)
{
	struct closer *c = group->closer;
	bool any = false;

	for (size_t i = 0; i < n_fds; i++)
		any |= fds[i] >= 0;
	if (!any)
		return;
	pthread_mutex_lock(&c->lock);
	for (size_t i = 0; i < n_fds; i++) {
		if (fds[i] < 0)
			continue;
		assert(group->n_fds < CLOSER_GROUP_MAX);
		add_kind(group, fcntl(fds[i], F_GET_SEALS) < 0 ? KIND_STRANGE
							       : KIND_MEMFD);
		group->fds[group->n_fds++] = TAKE_FD(fds[i]);
	}
	if (!group->in_hand)
		put(group);
	pthread_mutex_unlock(&c->lock);
}

void closer_close_socket(struct closer_group *group, int fd)
{
	struct closer *c = group->closer;

	pthread_mutex_lock(&c->lock);
	assert(group->socket < 0);
	group->socket = fd;
	add_kind(group, KIND_STRANGE);
	if (!group->in_hand)
		put(group);
	pthread_mutex_unlock(&c->lock);
}
