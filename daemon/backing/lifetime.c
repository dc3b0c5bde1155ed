/* SPDX-License-Identifier: MIT */
#include "backing/lifetime.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "backing/memfd.h"
#include "base/err.h"
#include "base/fd.h"

/*
 * by_wd is a hash of all watched files. A retest waits in the list of its
 * level; every level has one delay, so each list is in order of due time and
 * only the heads need to be looked at.
 */
#define HASH_SIZE   4096u /* a power of two; 15 000 buffers: chains of four */
#define SWEEP_LEVEL 3u    /* the first one that counts as late */

static const uint32_t delay_ms[LIFETIME_LEVELS] = {1,    4,    16,    100,  400,
						   1600, 6400, 25600, 60000};

struct lifetime {
	struct lifetime_ops ops;
	enum backing_lifetime mode;
	const char *reason;
	int inotify_fd;
	struct watched *by_wd[HASH_SIZE];
	struct list_node due[LIFETIME_LEVELS];
	struct list_node unwatched; /* alive, and no event will tell */
	uint64_t unwatched_due_ns;
};

static bool closes_are_told(int inotify_fd)
{
	struct pollfd p = {.fd = inotify_fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

/* One buffer's life, played through. Return: 0 or the errno of memfd_make(). */
static int try_out(struct lifetime *lt)
{
	_cleanup_(fd_closep) int own = -1;
	_cleanup_(fd_closep) int client = -1;
	bool told = false;
	int wd = -1;
	int r = memfd_make("dmaheap:probe", KIB(4), false, &own);

	if (r)
		return err_trace(r);
	lt->mode = BACKING_LIFETIME_EXPLICIT;
	lt->reason = "file leases do not work here: a buffer ends when it is "
		     "released or its connection closes";
	wd = lifetime_watch(lt, own);
	if (memfd_reopen(own, O_RDWR, &client) || !memfd_lease_take(own))
		return 0;
	client = fd_close(client);
	told = wd >= 0 && closes_are_told(lt->inotify_fd);
	if (memfd_lease_take(own) || !memfd_lease_give(own))
		return 0;
	lt->mode = told ? BACKING_LIFETIME_EXACT : BACKING_LIFETIME_SWEEP;
	lt->reason = told ? ""
			  : "inotify does not work here "
			    "(fs.inotify.max_user_instances): buffers are "
			    "looked at every 20 ms";
	if (wd >= 0)
		(void)inotify_rm_watch(lt->inotify_fd, wd);
	return 0;
}

int lifetime_new(struct lifetime **ret, const struct lifetime_ops *ops)
{
	struct lifetime *lt = calloc(1, sizeof(*lt));
	int r;

	if (!lt)
		return err_raise(-ENOMEM);
	lt->ops = *ops;
	for (unsigned int i = 0; i < LIFETIME_LEVELS; i++)
		list_init(&lt->due[i]);
	list_init(&lt->unwatched);
	lt->inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	r = try_out(lt);
	if (r) {
		lifetime_free(lt);
		return err_trace(r);
	}
	if (lt->mode != BACKING_LIFETIME_EXACT)
		lt->inotify_fd = fd_close(lt->inotify_fd);
	*ret = lt;
	return 0;
}

struct lifetime *lifetime_free(struct lifetime *lt)
{
	if (!lt)
		return NULL;
	fd_close(lt->inotify_fd);
	free(lt);
	return NULL;
}

enum backing_lifetime lifetime_mode(const struct lifetime *lt)
{
	return lt->mode;
}

const char *lifetime_reason(const struct lifetime *lt)
{
	return lt->reason;
}

int lifetime_event_fd(const struct lifetime *lt)
{
	return lt->inotify_fd;
}

int lifetime_watch(struct lifetime *lt, int own)
{
	char path[32];

	if (lt->inotify_fd < 0)
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", own);
	return inotify_add_watch(lt->inotify_fd, path,
				 IN_CLOSE_WRITE | IN_CLOSE_NOWRITE);
}

static struct watched **find(struct lifetime *lt, int wd)
{
	struct watched **p = &lt->by_wd[(unsigned int)wd % HASH_SIZE];

	while (*p && (*p)->wd != wd)
		p = &(*p)->next;
	return p;
}

void lifetime_add(struct lifetime *lt, struct watched *w, int own, int wd)
{
	w->own = own;
	w->wd = wd;
	w->alive = false;
	w->level = LIFETIME_LEVELS;
	list_init(&w->due_link);
	if (wd >= 0) {
		w->next = NULL;
		*find(lt, wd) = w;
	}
}

static void unschedule(struct watched *w)
{
	list_remove(&w->due_link);
	w->level = LIFETIME_LEVELS;
}

static void schedule(struct lifetime *lt, struct watched *w, unsigned int level,
		     uint64_t now_ns)
{
	unschedule(w);
	w->level = (uint8_t)MIN(level, LIFETIME_LEVELS - 1);
	w->due_ns = now_ns + delay_ms[w->level] * NSEC_PER_MSEC;
	list_add_tail(&lt->due[w->level], &w->due_link);
}

void lifetime_arm(struct lifetime *lt, struct watched *w, uint64_t now_ns)
{
	if (lt->mode == BACKING_LIFETIME_EXPLICIT || w->alive)
		return;
	w->alive = true;
	if (w->wd >= 0)
		return;
	if (list_is_empty(&lt->unwatched))
		lt->unwatched_due_ns =
			now_ns + LIFETIME_UNWATCHED_MS * NSEC_PER_MSEC;
	list_add_tail(&lt->unwatched, &w->due_link);
}

void lifetime_remove(struct lifetime *lt, struct watched *w)
{
	unschedule(w);
	w->alive = false;
	if (w->wd < 0)
		return;
	*find(lt, w->wd) = w->next;
	/* Its IN_IGNORED finds nobody: wds are not used again soon. */
	(void)inotify_rm_watch(lt->inotify_fd, w->wd);
	w->wd = -1;
}

/* Return: true if nobody holds it any more; the owner has been told. */
static bool ask(struct lifetime *lt, struct watched *w, bool late)
{
	if (memfd_lease_take(w->own))
		return false;
	unschedule(w);
	w->alive = false;
	lt->ops.released(lt->ops.ctx, w, late);
	return true;
}

void lifetime_sweep(struct lifetime *lt, uint64_t now_ns)
{
	struct watched *w, *next;

	for (unsigned int i = 0; i < HASH_SIZE; i++) {
		for (w = lt->by_wd[i]; w; w = next) {
			next = w->next;
			/* The one that is closing now is asked again. */
			if (w->alive && !ask(lt, w, true))
				schedule(lt, w, 0, now_ns);
		}
	}
}

static void ask_unwatched(struct lifetime *lt, uint64_t now_ns)
{
	if (list_is_empty(&lt->unwatched) || lt->unwatched_due_ns > now_ns)
		return;
	list_for_each_safe(pos, &lt->unwatched)(void)
		ask(lt, list_entry(pos, struct watched, due_link), true);
	lt->unwatched_due_ns = now_ns + LIFETIME_UNWATCHED_MS * NSEC_PER_MSEC;
}

static void ask_due(struct lifetime *lt, uint64_t now_ns)
{
	for (unsigned int i = 0; i < LIFETIME_LEVELS; i++) {
		struct list_node *first;
		struct watched *w;

		while ((first = list_first(&lt->due[i])) != NULL) {
			w = list_entry(first, struct watched, due_link);
			if (w->due_ns > now_ns)
				break;
			if (!ask(lt, w, i >= SWEEP_LEVEL))
				schedule(lt, w, i + 1, now_ns);
		}
	}
}

static void on_event(struct lifetime *lt, const struct inotify_event *event,
		     uint64_t now_ns)
{
	struct watched *w;

	if (event->mask & IN_Q_OVERFLOW) {
		lifetime_sweep(lt, now_ns);
		return;
	}
	w = *find(lt, event->wd);
	if (w && w->alive && !ask(lt, w, false))
		schedule(lt, w, 0, now_ns);
}

static void read_events(struct lifetime *lt, uint64_t now_ns)
{
	_Alignas(struct inotify_event) char buf[4096];
	const struct inotify_event *event;
	ssize_t n;

	do {
		n = read(lt->inotify_fd, buf, sizeof(buf));
		for (ssize_t i = 0; i < n;) {
			event = (const void *)(buf + i);
			on_event(lt, event, now_ns);
			i += (ssize_t)sizeof(*event) + event->len;
		}
		/* A full buffer: there may be more. */
	} while (n > (ssize_t)(sizeof(buf) - sizeof(*event)));
}

void lifetime_dispatch(struct lifetime *lt, uint64_t now_ns)
{
	if (lt->inotify_fd >= 0)
		read_events(lt, now_ns);
	ask_due(lt, now_ns);
	ask_unwatched(lt, now_ns);
}

uint64_t lifetime_due_ns(const struct lifetime *lt)
{
	uint64_t due = UINT64_MAX;
	struct list_node *first;

	if (!list_is_empty(&lt->unwatched))
		due = lt->unwatched_due_ns;
	for (unsigned int i = 0; i < LIFETIME_LEVELS; i++) {
		first = list_first(&lt->due[i]);
		if (first)
			due = MIN(due,
				  list_entry(first, struct watched, due_link)
					  ->due_ns);
	}
	return due;
}
