/* SPDX-License-Identifier: MIT */
#include "run/pool.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "run/arch.h"
#include "run/util.h"

#define STACK_BYTES (256u * 1024)

/*
 * The model: n_idle counts the threads in (or on their way to) the receiving
 * ioctl. Whoever brings it to 0 and is about to block starts another thread;
 * whoever would raise it above POOL_IDLE_KEPT ends.
 */
struct pool {
	int listener;
	pool_handler *handle;
	void *ctx;
	size_t notif_bytes;
	atomic_uint n_idle;
	atomic_uint n_threads;
	atomic_bool limit_told;
};

static void *receive(void *arg)
{
	struct pool *pool = arg;
	struct seccomp_notif *req = malloc(pool->notif_bytes);
	struct call call = {.listener = pool->listener, .req = req};

	for (;;) {
		if (!req)
			break;
		memset(req, 0, pool->notif_bytes);
		if (ioctl(pool->listener, SECCOMP_IOCTL_NOTIF_RECV, req)) {
			/* ENOENT: the caller died before we got to it. */
			if (errno == EINTR || errno == ENOENT)
				continue;
			break; /* the last program is gone */
		}
		atomic_fetch_sub(&pool->n_idle, 1);
		pool->handle(pool->ctx, &call);
		if (atomic_fetch_add(&pool->n_idle, 1) >= POOL_IDLE_KEPT)
			break;
	}
	atomic_fetch_sub(&pool->n_idle, 1);
	atomic_fetch_sub(&pool->n_threads, 1);
	free(req);
	return NULL;
}

static int start_thread(struct pool *pool)
{
	pthread_attr_t attr;
	pthread_t thread;
	int r;

	if (atomic_fetch_add(&pool->n_threads, 1) >= POOL_THREADS_MAX) {
		atomic_fetch_sub(&pool->n_threads, 1);
		return -EAGAIN;
	}
	atomic_fetch_add(&pool->n_idle, 1);
	(void)pthread_attr_init(&attr);
	(void)pthread_attr_setstacksize(&attr, STACK_BYTES);
	(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	r = -pthread_create(&thread, &attr, receive, pool);
	(void)pthread_attr_destroy(&attr);
	if (r) {
		atomic_fetch_sub(&pool->n_idle, 1);
		atomic_fetch_sub(&pool->n_threads, 1);
	}
	return r;
}

int pool_new(struct pool **ret, int listener, pool_handler *handle, void *ctx)
{
	struct seccomp_notif_sizes sizes;
	struct pool *pool;
	int r = 0;

	if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes))
		return -errno;
	pool = calloc(1, sizeof(*pool));
	if (!pool)
		return -ENOMEM;
	pool->listener = listener;
	pool->handle = handle;
	pool->ctx = ctx;
	pool->notif_bytes = sizes.seccomp_notif > sizeof(struct seccomp_notif)
				    ? sizes.seccomp_notif
				    : sizeof(struct seccomp_notif);
	/* Wakes on the same CPU: four times faster. Not there before 6.6. */
	(void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS,
		    SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);
	*ret = pool;
	for (unsigned int i = 0; r == 0 && i < 2; i++)
		r = start_thread(pool);
	return r;
}

void pool_may_block(struct pool *pool)
{
	if (atomic_load(&pool->n_idle) > 0 || start_thread(pool) == 0)
		return;
	if (!atomic_exchange(&pool->limit_told, true))
		run_message("no further thread: calls wait for stalled "
			    "allocations now");
}
