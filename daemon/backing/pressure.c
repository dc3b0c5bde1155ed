/* SPDX-License-Identifier: MIT */
#include "backing/pressure.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"

/* An ordinary user may ask for windows of a multiple of 2 s only. */
#define TRIGGER "some 150000 2000000"

struct pressure {
	int psi_fd;
	int event_fd;
	int stop_fd;
	atomic_bool pending;
	pthread_t thread;
};

static void *watch(void *arg)
{
	static const uint64_t one = 1;
	struct pressure *p = arg;
	struct pollfd fds[2] = {
		{.fd = p->psi_fd, .events = POLLPRI},
		{.fd = p->stop_fd, .events = POLLIN},
	};

	for (;;) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return NULL;
		/* POLLERR: the cgroup or the file is gone. */
		if (fds[1].revents || (fds[0].revents & POLLERR))
			return NULL;
		if (!(fds[0].revents & POLLPRI))
			continue;
		atomic_store(&p->pending, true);
		(void)!write(p->event_fd, &one, sizeof(one));
	}
}

static int start(struct pressure *p)
{
	sigset_t all, old;
	int r;

	p->psi_fd =
		open("/proc/pressure/memory", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (p->psi_fd < 0 ||
	    write(p->psi_fd, TRIGGER, sizeof(TRIGGER)) != sizeof(TRIGGER))
		return err_raise(-errno);
	p->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	p->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (p->event_fd < 0 || p->stop_fd < 0)
		return err_raise(-errno);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&p->thread, NULL, watch, p);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return err_raise(-r);
}

static void close_all(struct pressure *p)
{
	fd_close(p->psi_fd);
	fd_close(p->event_fd);
	fd_close(p->stop_fd);
	free(p);
}

int pressure_new(struct pressure **ret)
{
	struct pressure *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return err_raise(-ENOMEM);
	p->psi_fd = -1;
	p->event_fd = -1;
	p->stop_fd = -1;
	r = start(p);
	if (r) {
		close_all(p);
		return err_trace(r);
	}
	(void)pthread_setname_np(p->thread, "dmaheap-psi");
	*ret = p;
	return 0;
}

struct pressure *pressure_free(struct pressure *p)
{
	static const uint64_t one = 1;

	if (!p)
		return NULL;
	(void)!write(p->stop_fd, &one, sizeof(one));
	pthread_join(p->thread, NULL);
	close_all(p);
	return NULL;
}

int pressure_event_fd(const struct pressure *p)
{
	return p->event_fd;
}

bool pressure_take(struct pressure *p)
{
	uint64_t n;

	if (!atomic_load(&p->pending))
		return false;
	(void)!read(p->event_fd, &n, sizeof(n));
	return atomic_exchange(&p->pending, false);
}
