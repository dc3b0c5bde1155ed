/* SPDX-License-Identifier: MIT */
#include "lib/handle.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "lib/adopt.h"
#include "lib/origin.h"
#include "lib/socket.h"

#define PATIENCE_NS     (10 * NSEC_PER_SEC)
#define BACK_OFF_MIN_NS (10 * NSEC_PER_MSEC)
#define BACK_OFF_MAX_NS (500 * NSEC_PER_MSEC)

/* What the daemon said to this thread's last HELLO, if that was refused. */
static _Thread_local char refusal[DMAHEAP_ERROR_TEXT_MAX_BYTES];

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static void sleep_ns(uint64_t ns)
{
	struct timespec ts = {.tv_sec = (time_t)(ns / NSEC_PER_SEC),
			      .tv_nsec = (long)(ns % NSEC_PER_SEC)};

	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, &ts) == EINTR)
		;
}

/*
 * The process's handles. fork() holds the lock, so the child finds the list
 * whole; a handle's own lock may be held by a thread that the child does not
 * have, hence it is made anew there.
 */
static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static struct dmaheap *all_handles;

void handles_lock(void)
{
	pthread_mutex_lock(&all_lock);
}

void handles_unlock(void)
{
	pthread_mutex_unlock(&all_lock);
}

struct dmaheap *handles_first(void)
{
	return all_handles;
}

/* @dh->sock is also read by the child of a fork() in another thread. */
static void set_sock(struct dmaheap *dh, int fd)
{
	__atomic_store_n(&dh->sock, fd, __ATOMIC_RELEASE);
}

/* Whose socket it was is the parent's business: answers would mix. */
static void leave_to_parent(struct dmaheap *dh)
{
	int fd = __atomic_exchange_n(&dh->sock, -1, __ATOMIC_ACQ_REL);

	if (fd >= 0)
		close(fd);
	dh->pid = getpid();
	dh->lost_at_ns = now_ns();
}

static void fork_in_child(void)
{
	for (struct dmaheap *dh = all_handles; dh; dh = dh->next) {
		pthread_mutex_init(&dh->lock, NULL);
		leave_to_parent(dh);
	}
	handles_unlock();
}

static void watch_forks(void)
{
	pthread_atfork(handles_lock, handles_unlock, fork_in_child);
}

static void list_add(struct dmaheap *dh)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch_forks);
	handles_lock();
	dh->next = all_handles;
	all_handles = dh;
	handles_unlock();
}

static void list_remove(struct dmaheap *dh)
{
	struct dmaheap **link;

	handles_lock();
	for (link = &all_handles; *link; link = &(*link)->next) {
		if (*link == dh) {
			*link = dh->next;
			break;
		}
	}
	handles_unlock();
}

void handle_lock(struct dmaheap *dh)
{
	pthread_mutex_lock(&dh->lock);
}

void handle_unlock(struct dmaheap *dh)
{
	pthread_mutex_unlock(&dh->lock);
}

void handle_drop(struct dmaheap *dh)
{
	int fd = dh->sock;

	set_sock(dh, -1);
	if (fd >= 0)
		close(fd);
	dh->lost_at_ns = now_ns();
}

int handle_exchange(struct dmaheap *dh, const struct wire_request *req,
		    struct wire_reply *ret)
{
	int r = wire_send(dh->sock, req, ++dh->seq);

	/* A daemon that refuses a connection has said why before it closed. */
	if (r && !(r == -ECONNRESET && req->opcode == DMAHEAP_OP_HELLO))
		return r;
	return wire_receive(dh->sock, req->opcode, dh->seq, dh->buffer, ret);
}

static int say_hello(struct dmaheap *dh)
{
	struct dmaheap_hello_req hello = {0};
	struct wire_request req = {.opcode = DMAHEAP_OP_HELLO,
				   .payload = &hello,
				   .payload_bytes = sizeof(hello)};
	struct wire_reply reply;
	int r;

	strncpy(hello.client_name, program_invocation_short_name,
		sizeof(hello.client_name) - 1);
	r = handle_exchange(dh, &req, &reply);
	if (r)
		return r;
	if (reply.n_fds > 0 ||
	    (reply.status == 0 && reply.payload_bytes < sizeof(dh->hello))) {
		wire_close_fds(&reply);
		return -EPROTO;
	}
	if (reply.status != 0) {
		wire_error_text(&reply, refusal, sizeof(refusal));
	} else {
		memcpy(&dh->hello, reply.payload, sizeof(dh->hello));
		dh->hello.daemon_version[DMAHEAP_NAME_MAX_BYTES - 1] = '\0';
	}
	return reply.status;
}

/* Makes the fresh socket @fd the handle's connection, or closes it. */
static int begin(struct dmaheap *dh, int fd)
{
	int r;

	dh->pid = getpid();
	set_sock(dh, fd);
	r = say_hello(dh);
	if (r == 0 && dh->adopted_instance != 0 &&
	    dh->adopted_instance != dh->hello.instance_id)
		r = adopt_all(dh);
	if (r) {
		set_sock(dh, -1);
		close(fd);
		return r == -EAGAIN ? -ETIMEDOUT : r;
	}
	dh->adopted_instance = dh->hello.instance_id;
	socket_wait_forever(fd);
	return 0;
}

static int connect_once(struct dmaheap *dh)
{
	int fd = -1, r;

	refusal[0] = '\0';
	r = socket_open(dh->path, dh->place, &fd);
	return r ? r : begin(dh, fd);
}

/* Errors of a daemon that is not there, but may be soon. */
static bool is_away(int r)
{
	return r == -ENOENT || r == -ECONNREFUSED || r == -ECONNRESET ||
	       r == -ETIMEDOUT;
}

static int reconnect(struct dmaheap *dh)
{
	uint64_t give_up_ns = dh->lost_at_ns + dh->patience_ns;
	uint64_t wait_ns = BACK_OFF_MIN_NS;

	for (;;) {
		int r = connect_once(dh);
		uint64_t now = now_ns(), left_ns;

		if (!is_away(r))
			return r;
		if (now >= give_up_ns)
			return -ECONNRESET;
		left_ns = give_up_ns - now;
		sleep_ns(wait_ns < left_ns ? wait_ns : left_ns);
		wait_ns *= 2;
		if (wait_ns > BACK_OFF_MAX_NS)
			wait_ns = BACK_OFF_MAX_NS;
	}
}

int handle_ensure(struct dmaheap *dh)
{
	/* A child that came by clone() or _Fork() ran no handler. */
	if (dh->pid != getpid())
		leave_to_parent(dh);
	return dh->sock >= 0 ? 0 : reconnect(dh);
}

int handle_ensure_fresh(struct dmaheap *dh)
{
	struct pollfd p = {.fd = dh->sock};

	/* POLLHUP and POLLERR are reported unasked. */
	if (dh->sock >= 0 && dh->pid == getpid() && poll(&p, 1, 0) > 0)
		handle_drop(dh);
	return handle_ensure(dh);
}

int handle_request(struct dmaheap *dh, const struct wire_request *req,
		   struct wire_reply *ret)
{
	uint64_t sent_to = 0;

	for (;;) {
		uint64_t instance;
		int r = handle_ensure(dh);

		if (r)
			return r;
		instance = dh->hello.instance_id;
		r = handle_exchange(dh, req, ret);
		if (r != -ECONNRESET && r != -EPROTO)
			return r;
		handle_drop(dh);
		if (r == -EPROTO || instance == sent_to)
			return r;
		sent_to = instance;
	}
}

const char *handle_refusal(void)
{
	return refusal;
}

int handle_new(struct dmaheap **ret, const char *path)
{
	struct dmaheap *dh = calloc(1, sizeof(*dh));
	int fd = -1, r;

	refusal[0] = '\0';
	if (!dh)
		return -ENOMEM;
	pthread_mutex_init(&dh->lock, NULL);
	dh->sock = -1;
	dh->pid = getpid();
	dh->patience_ns = PATIENCE_NS;
	list_add(dh);

	if (path) {
		dh->path = strdup(path);
		dh->place = SOCKET_CHOSEN;
		r = dh->path ? socket_open(path, dh->place, &fd) : -ENOMEM;
	} else {
		r = socket_search(&dh->path, &dh->place, &fd);
	}
	if (r == 0) {
		dh->origin = origin_of_path(dh->path);
		r = begin(dh, fd);
	}
	if (r) {
		handle_free(dh);
		return r;
	}
	*ret = dh;
	return 0;
}

struct dmaheap *handle_free(struct dmaheap *dh)
{
	if (!dh)
		return NULL;
	list_remove(dh);
	if (dh->sock >= 0)
		close(dh->sock);
	if (dh->stats)
		munmap((void *)(uintptr_t)dh->stats, dh->stats_bytes);
	pthread_mutex_destroy(&dh->lock);
	free(dh->path);
	free(dh);
	return NULL;
}
