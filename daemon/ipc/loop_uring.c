/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <liburing.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>

#include <dmaheap/protocol.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/list.h"
#include "ipc/loop_impl.h"

/*
 * The ring's user_data is always a struct op, embedded in its owner, and an
 * owner is freed only when no op of it is in flight: freeing one that is marks
 * it dead and cancels, and the last completion frees it.
 *
 * Nothing is queued when it is asked for: an op that wants to start, or to be
 * cancelled, goes on the list todo, and before each wait the list is turned
 * into submission entries, so a full queue or a failed submission only delays
 * it.
 *
 * Messages are received one at a time, and not by a multishot recvmsg: that
 * would take in whatever a client has piled up, fds included, before the first
 * of it is looked at. The buffers come from a ring that all sockets share; the
 * one chosen goes back as soon as its message has been handled.
 */

#define SQ_ENTRIES   256u
#define CQ_ENTRIES   4096u
#define N_BUFFERS    64u /* a power of two */
#define BUFFER_GROUP 1
#define MAX_FAILURES 1000 /* waits in a row, a millisecond apart */
#define DRAIN_ROUNDS 1000
#define FEATURES     (IORING_FEAT_EXT_ARG | IORING_FEAT_NODROP)

struct uring_loop;
struct owner;

struct op {
	void (*prepare)(struct op *op, struct io_uring_sqe *sqe);
	void (*done)(struct op *op, int res, uint32_t cqe_flags);
	struct owner *owner;
	bool in_flight;
	bool must_start; /* both on the list todo */
	bool must_cancel;
	struct list_node todo_link; /* uring_loop::todo */
};

/* Embedded first in each object; frees it when the last op is home. */
struct owner {
	struct uring_loop *ring;
	unsigned int n_in_flight;
	bool dead;
	struct list_node link; /* uring_loop::owners */
};

struct uring_loop {
	struct loop base;
	struct io_uring ring;
	struct io_uring_buf_ring *buf_ring;
	char *buffers;
	struct list_node todo;
	struct list_node owners;
	unsigned int n_failures;
	struct op cancel; /* of every cancellation; nobody waits for it */
};

struct uring_watch {
	struct owner owner;
	struct loop_watch base;
	struct op poll;
	bool paused;
};

struct uring_socket {
	struct owner owner;
	struct loop_socket base;
	struct op receive;
	struct op room;
	bool wants_room;
	struct msghdr msg;
	struct iovec iov;
	union loop_control control;
};

struct uring_acceptor {
	struct owner owner;
	struct loop_acceptor base;
	struct op accept;
};

static struct uring_loop *to_uring(struct loop *loop)
{
	return container_of(loop, struct uring_loop, base);
}

/* ---- ops and owners ---- */

static void op_init(struct op *op, struct owner *owner,
		    void (*prepare)(struct op *, struct io_uring_sqe *),
		    void (*done)(struct op *, int, uint32_t))
{
	*op = (struct op){.prepare = prepare, .done = done, .owner = owner};
	list_init(&op->todo_link);
}

/* Harmless when @op runs already; one that is being cancelled is started again
 * by its done() if it is wanted then. */
static void op_start(struct op *op)
{
	if (op->in_flight || op->must_start)
		return;
	op->must_start = true;
	list_add_tail(&op->owner->ring->todo, &op->todo_link);
}

static void op_cancel(struct op *op)
{
	if (op->must_start) {
		op->must_start = false;
		list_remove(&op->todo_link);
	} else if (op->in_flight && !op->must_cancel) {
		op->must_cancel = true;
		list_add_tail(&op->owner->ring->todo, &op->todo_link);
	}
}

static void owner_init(struct owner *owner, struct loop *loop)
{
	owner->ring = to_uring(loop);
	list_add_tail(&owner->ring->owners, &owner->link);
}

static void owner_free_if_home(struct owner *owner)
{
	if (owner->dead && owner->n_in_flight == 0) {
		list_remove(&owner->link);
		free(owner);
	}
}

/* Turns @op into submission entries. Return: false when the queue is full. */
static bool op_submit(struct uring_loop *u, struct op *op)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);

	if (!sqe)
		return false;
	list_remove(&op->todo_link);
	if (op->must_cancel) {
		op->must_cancel = false;
		io_uring_prep_cancel(sqe, op, 0);
		io_uring_sqe_set_data(sqe, &u->cancel);
		return true;
	}
	op->must_start = false;
	op->prepare(op, sqe);
	op->in_flight = true;
	op->owner->n_in_flight++;
	io_uring_sqe_set_data(sqe, op);
	return true;
}

static void op_complete(struct op *op, int res, uint32_t cqe_flags)
{
	struct owner *owner = op->owner;
	bool is_last = !(cqe_flags & IORING_CQE_F_MORE);

	if (!owner)
		return; /* the answer to a cancellation */
	if (is_last) {
		op->in_flight = false;
		if (op->must_cancel) {
			op->must_cancel = false;
			list_remove(&op->todo_link);
		}
	}
	/* Counted until it returns: it may kill its owner. */
	op->done(op, res, cqe_flags);
	if (is_last)
		owner->n_in_flight--;
	owner_free_if_home(owner);
}

/* ---- watch ---- */

static void watch_prepare(struct op *op, struct io_uring_sqe *sqe)
{
	const struct uring_watch *w =
		container_of(op, struct uring_watch, poll);
	unsigned int mask = 0;

	if (w->base.events & LOOP_READABLE)
		mask |= POLLIN;
	if (w->base.events & LOOP_WRITABLE)
		mask |= POLLOUT;
	io_uring_prep_poll_add(sqe, w->base.fd, mask);
}

/* One shot and armed again, which makes a level of it. */
static void watch_done(struct op *op, int res, uint32_t cqe_flags)
{
	struct uring_watch *w = container_of(op, struct uring_watch, poll);

	(void)cqe_flags;
	if (w->owner.dead)
		return;
	if (res >= 0 && !w->paused)
		w->base.fn(w->base.ctx);
	if (!w->owner.dead && !w->paused)
		op_start(op);
}

static int uring_watch_new(struct loop_watch **ret, struct loop *loop, int fd,
			   unsigned int events, loop_watch_fn fn, void *ctx)
{
	struct uring_watch *w = calloc(1, sizeof(*w));

	if (!w)
		return err_raise(-ENOMEM);
	owner_init(&w->owner, loop);
	w->base = (struct loop_watch){.loop = loop,
				      .fd = fd,
				      .events = events,
				      .fn = fn,
				      .ctx = ctx};
	op_init(&w->poll, &w->owner, watch_prepare, watch_done);
	op_start(&w->poll);
	*ret = &w->base;
	return 0;
}

static void uring_watch_free(struct loop_watch *watch)
{
	struct uring_watch *w = container_of(watch, struct uring_watch, base);

	w->owner.dead = true;
	op_cancel(&w->poll);
	owner_free_if_home(&w->owner);
}

static void uring_watch_pause(struct loop_watch *watch, bool paused)
{
	struct uring_watch *w = container_of(watch, struct uring_watch, base);

	w->paused = paused;
	if (paused)
		op_cancel(&w->poll);
	else
		op_start(&w->poll);
}

/* ---- socket ---- */

static char *buffer_at(const struct uring_loop *u, unsigned int id)
{
	return u->buffers + (size_t)id * DMAHEAP_MESSAGE_MAX_BYTES;
}

static void buffer_give_back(struct uring_loop *u, unsigned int id)
{
	io_uring_buf_ring_add(u->buf_ring, buffer_at(u, id),
			      DMAHEAP_MESSAGE_MAX_BYTES, (unsigned short)id,
			      io_uring_buf_ring_mask(N_BUFFERS), 0);
	io_uring_buf_ring_advance(u->buf_ring, 1);
}

static void receive_prepare(struct op *op, struct io_uring_sqe *sqe)
{
	struct uring_socket *s = container_of(op, struct uring_socket, receive);

	s->iov = (struct iovec){.iov_len = DMAHEAP_MESSAGE_MAX_BYTES};
	s->msg = (struct msghdr){.msg_iov = &s->iov,
				 .msg_iovlen = 1,
				 .msg_control = s->control.buf,
				 .msg_controllen = sizeof(s->control.buf)};
	io_uring_prep_recvmsg(sqe, s->base.fd, &s->msg, MSG_CMSG_CLOEXEC);
	/* A client asks again only after its reply: trying at once is vain. */
	sqe->ioprio |= IORING_RECVSEND_POLL_FIRST;
	io_uring_sqe_set_flags(sqe, IOSQE_BUFFER_SELECT);
	sqe->buf_group = BUFFER_GROUP;
}

static void receive_done(struct op *op, int res, uint32_t cqe_flags)
{
	struct uring_socket *s = container_of(op, struct uring_socket, receive);
	struct uring_loop *u = s->owner.ring;
	bool has_buffer = cqe_flags & IORING_CQE_F_BUFFER;
	unsigned int id = cqe_flags >> IORING_CQE_BUFFER_SHIFT;

	if (s->owner.dead) {
		if (res >= 0)
			loop_message_drop(&s->msg);
	} else if (res == -ENOBUFS || res == -EINTR || res == -EAGAIN) {
		op_start(op);
	} else {
		loop_message_deliver(&s->base, &s->msg,
				     has_buffer ? buffer_at(u, id) : NULL, res);
	}
	if (has_buffer)
		buffer_give_back(u, id);
}

static void room_prepare(struct op *op, struct io_uring_sqe *sqe)
{
	const struct uring_socket *s =
		container_of(op, struct uring_socket, room);

	/* Without IORING_POLL_ADD_LEVEL it reports edges. */
	io_uring_prep_poll_multishot(sqe, s->base.fd, POLLOUT);
}

static void room_done(struct op *op, int res, uint32_t cqe_flags)
{
	struct uring_socket *s = container_of(op, struct uring_socket, room);

	(void)cqe_flags;
	if (s->owner.dead)
		return;
	if (s->wants_room && res != -ECANCELED)
		s->base.ops->on_room(s->base.ctx);
	if (!s->owner.dead && s->wants_room)
		op_start(op);
}

static int uring_socket_new(struct loop_socket **ret, struct loop *loop, int fd,
			    const struct loop_socket_ops *ops, void *ctx)
{
	struct uring_socket *s = calloc(1, sizeof(*s));

	if (!s)
		return err_raise(-ENOMEM);
	owner_init(&s->owner, loop);
	s->base = (struct loop_socket){.loop = loop,
				       .fd = fd,
				       .ops = ops,
				       .ctx = ctx};
	op_init(&s->receive, &s->owner, receive_prepare, receive_done);
	op_init(&s->room, &s->owner, room_prepare, room_done);
	*ret = &s->base;
	return 0;
}

static void uring_socket_free(struct loop_socket *socket)
{
	struct uring_socket *s =
		container_of(socket, struct uring_socket, base);

	s->owner.dead = true;
	op_cancel(&s->receive);
	op_cancel(&s->room);
	owner_free_if_home(&s->owner);
}

static void uring_socket_read(struct loop_socket *socket)
{
	struct uring_socket *s =
		container_of(socket, struct uring_socket, base);

	op_start(&s->receive);
}

static void uring_socket_await_room(struct loop_socket *socket, bool on)
{
	struct uring_socket *s =
		container_of(socket, struct uring_socket, base);

	s->wants_room = on;
	if (on)
		op_start(&s->room);
	else
		op_cancel(&s->room);
}

/* ---- acceptor ---- */

static void accept_prepare(struct op *op, struct io_uring_sqe *sqe)
{
	const struct uring_acceptor *a =
		container_of(op, struct uring_acceptor, accept);

	io_uring_prep_multishot_accept(sqe, a->base.fd, NULL, NULL,
				       SOCK_NONBLOCK | SOCK_CLOEXEC);
}

static void accept_done(struct op *op, int res, uint32_t cqe_flags)
{
	struct uring_acceptor *a =
		container_of(op, struct uring_acceptor, accept);
	bool must_wait = res < 0 && loop_accept_must_wait(res);

	(void)cqe_flags;
	if (a->owner.dead) {
		fd_close(res);
		return;
	}
	if (res >= 0 || must_wait)
		a->base.fn(a->base.ctx, res);
	if (!a->owner.dead && !must_wait)
		op_start(op);
}

static int uring_acceptor_new(struct loop_acceptor **ret, struct loop *loop,
			      int fd, loop_accept_fn fn, void *ctx)
{
	struct uring_acceptor *a = calloc(1, sizeof(*a));

	if (!a)
		return err_raise(-ENOMEM);
	owner_init(&a->owner, loop);
	a->base = (struct loop_acceptor){.loop = loop,
					 .fd = fd,
					 .fn = fn,
					 .ctx = ctx};
	op_init(&a->accept, &a->owner, accept_prepare, accept_done);
	op_start(&a->accept);
	*ret = &a->base;
	return 0;
}

static void uring_acceptor_free(struct loop_acceptor *acceptor)
{
	struct uring_acceptor *a =
		container_of(acceptor, struct uring_acceptor, base);

	a->owner.dead = true;
	op_cancel(&a->accept);
	owner_free_if_home(&a->owner);
}

static void uring_acceptor_resume(struct loop_acceptor *acceptor)
{
	struct uring_acceptor *a =
		container_of(acceptor, struct uring_acceptor, base);

	op_start(&a->accept);
}

/* ---- loop ---- */

static void submit_todo(struct uring_loop *u)
{
	struct list_node *node;

	while ((node = list_first(&u->todo))) {
		struct op *op = list_entry(node, struct op, todo_link);

		if (op_submit(u, op))
			continue;
		if (io_uring_submit(&u->ring) <= 0)
			return; /* still full: the next round goes on */
	}
}

/* A submission may fail for want of kernel memory: what was queued stays so. */
static bool is_transient(int r)
{
	return r == -EAGAIN || r == -EBUSY || r == -ENOMEM || r == -ENOBUFS;
}

static int enter(struct uring_loop *u, uint64_t timeout_ns)
{
	const struct timespec nap = {.tv_nsec = (long)NSEC_PER_MSEC};
	struct __kernel_timespec timeout;
	struct io_uring_cqe *cqe;
	int r;

	if (timeout_ns != LOOP_FOREVER) {
		timeout.tv_sec = (long long)(timeout_ns / NSEC_PER_SEC);
		timeout.tv_nsec = (long long)(timeout_ns % NSEC_PER_SEC);
	}
	r = io_uring_submit_and_wait_timeout(&u->ring, &cqe, 1,
					     timeout_ns == LOOP_FOREVER
						     ? NULL
						     : &timeout,
					     NULL);
	if (r >= 0 || r == -ETIME || r == -EINTR) {
		u->n_failures = 0;
		return 0;
	}
	if (!is_transient(r) || ++u->n_failures > MAX_FAILURES)
		return err_raise(r);
	if (io_uring_cq_ready(&u->ring) == 0)
		(void)nanosleep(&nap, NULL);
	return 0;
}

static void dispatch(struct uring_loop *u)
{
	unsigned int n = io_uring_cq_ready(&u->ring);
	struct io_uring_cqe *cqe;

	while (n-- > 0 && !u->base.stopping &&
	       io_uring_peek_cqe(&u->ring, &cqe) == 0) {
		struct op *op = io_uring_cqe_get_data(cqe);
		int res = cqe->res;
		uint32_t flags = cqe->flags;

		io_uring_cqe_seen(&u->ring, cqe);
		op_complete(op, res, flags);
	}
}

static int uring_loop_wait(struct loop *loop, uint64_t timeout_ns)
{
	struct uring_loop *u = to_uring(loop);
	int r;

	submit_todo(u);
	r = enter(u, list_is_empty(&u->todo) ? timeout_ns : 0);
	if (r)
		return err_trace(r);
	dispatch(u);
	return 0;
}

/* Awaits what the dead have in flight; what a broken ring never gives back is
 * freed once the ring is gone. */
static void drain(struct uring_loop *u)
{
	u->base.stopping = false;
	for (int i = 0; i < DRAIN_ROUNDS && !list_is_empty(&u->owners); i++)
		if (uring_loop_wait(&u->base, NSEC_PER_MSEC))
			break;
}

static struct loop *uring_loop_free(struct loop *loop)
{
	struct uring_loop *u = to_uring(loop);

	if (u->ring.ring_fd >= 0) {
		drain(u);
		io_uring_queue_exit(&u->ring);
	}
	list_for_each_safe(node, &u->owners)
		free(list_entry(node, struct owner, link));
	if (u->buf_ring)
		(void)munmap(u->buf_ring,
			     N_BUFFERS * sizeof(struct io_uring_buf));
	if (u->buffers)
		(void)munmap(u->buffers,
			     (size_t)N_BUFFERS * DMAHEAP_MESSAGE_MAX_BYTES);
	free(u);
	return NULL;
}

static const struct loop_backend uring_backend = {
	.name = "uring",
	.free = uring_loop_free,
	.wait = uring_loop_wait,
	.watch_new = uring_watch_new,
	.watch_free = uring_watch_free,
	.watch_pause = uring_watch_pause,
	.socket_new = uring_socket_new,
	.socket_free = uring_socket_free,
	.socket_read = uring_socket_read,
	.socket_await_room = uring_socket_await_room,
	.acceptor_new = uring_acceptor_new,
	.acceptor_free = uring_acceptor_free,
	.acceptor_resume = uring_acceptor_resume,
};

/* ---- set-up ---- */

static const uint8_t used_opcodes[] = {
	IORING_OP_RECVMSG,
	IORING_OP_ACCEPT,
	IORING_OP_POLL_ADD,
	IORING_OP_ASYNC_CANCEL,
};

struct reason {
	char *text;
	size_t n_bytes;
};

static int _printf_(3, 4)
	refuse(const struct reason *reason, int r, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(reason->text, reason->n_bytes, fmt, args);
	va_end(args);
	return err_raise(r);
}

static int setup_ring(struct uring_loop *u, const struct reason *reason)
{
	struct io_uring_params params = {
		.flags = IORING_SETUP_SINGLE_ISSUER |
			 IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_R_DISABLED |
			 IORING_SETUP_SUBMIT_ALL | IORING_SETUP_CQSIZE,
		.cq_entries = CQ_ENTRIES,
	};
	int r;

	r = io_uring_queue_init_params(SQ_ENTRIES, &u->ring, &params);
	if (r < 0) {
		u->ring.ring_fd = -1;
		return refuse(reason, r, "io_uring_setup: %s%s", strerror(-r),
			      r == -EPERM    ? " (forbidden here: a seccomp "
					       "filter or "
					       "kernel.io_uring_disabled)"
			      : r == -EINVAL ? " (Linux before 6.1)"
					     : "");
	}
	if ((u->ring.features & FEATURES) != FEATURES)
		return refuse(reason, -EOPNOTSUPP,
			      "io_uring lacks EXT_ARG or NODROP");
	return 0;
}

static int check_opcodes(struct uring_loop *u, const struct reason *reason)
{
	struct io_uring_probe *probe = io_uring_get_probe_ring(&u->ring);
	int r = 0;

	if (!probe)
		return refuse(reason, -EOPNOTSUPP, "io_uring cannot be probed");
	for (size_t i = 0; i < ARRAY_SIZE(used_opcodes) && r == 0; i++)
		if (!io_uring_opcode_supported(probe, used_opcodes[i]))
			r = refuse(reason, -EOPNOTSUPP,
				   "io_uring lacks opcode %u", used_opcodes[i]);
	io_uring_free_probe(probe);
	return r;
}

static void *map_anonymous(size_t n_bytes)
{
	void *p = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static int setup_buffers(struct uring_loop *u, const struct reason *reason)
{
	struct io_uring_buf_reg reg = {.ring_entries = N_BUFFERS,
				       .bgid = BUFFER_GROUP};
	int r;

	u->buf_ring = map_anonymous(N_BUFFERS * sizeof(struct io_uring_buf));
	u->buffers =
		map_anonymous((size_t)N_BUFFERS * DMAHEAP_MESSAGE_MAX_BYTES);
	if (!u->buf_ring || !u->buffers)
		return refuse(reason, -ENOMEM, "no memory for the buffers");
	io_uring_buf_ring_init(u->buf_ring);
	for (unsigned int i = 0; i < N_BUFFERS; i++)
		buffer_give_back(u, i);
	reg.ring_addr = (uintptr_t)u->buf_ring;
	r = io_uring_register_buf_ring(&u->ring, &reg, 0);
	if (r < 0)
		return refuse(reason, r, "io_uring_register_buf_ring: %s",
			      strerror(-r));
	return 0;
}

/* The ring takes only what is used here, whoever gets hold of it later. */
static int restrict_and_enable(struct uring_loop *u,
			       const struct reason *reason)
{
	struct io_uring_restriction rules[ARRAY_SIZE(used_opcodes) + 2] =
		{{.opcode = IORING_RESTRICTION_SQE_FLAGS_ALLOWED,
		  .sqe_flags = IOSQE_BUFFER_SELECT},
		 {.opcode = IORING_RESTRICTION_REGISTER_OP,
		  .register_op = IORING_UNREGISTER_RING_FDS}};
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(used_opcodes); i++) {
		rules[2 + i].opcode = IORING_RESTRICTION_SQE_OP;
		rules[2 + i].sqe_op = used_opcodes[i];
	}
	/* Spares a reference count in each wait; works without as well. */
	(void)io_uring_register_ring_fd(&u->ring);
	/* liburing 2.3 declares functions for these two and exports neither. */
	r = io_uring_register((unsigned int)u->ring.ring_fd,
			      IORING_REGISTER_RESTRICTIONS, rules,
			      ARRAY_SIZE(rules));
	if (r < 0)
		return refuse(reason, r, "io_uring restrictions: %s",
			      strerror(-r));
	r = io_uring_register((unsigned int)u->ring.ring_fd,
			      IORING_REGISTER_ENABLE_RINGS, NULL, 0);
	if (r < 0)
		return refuse(reason, r, "enabling io_uring: %s", strerror(-r));
	/* A filter may allow the set-up and refuse the use. */
	r = io_uring_get_events(&u->ring);
	if (r < 0)
		return refuse(reason, r, "io_uring_enter: %s", strerror(-r));
	return 0;
}

int loop_uring_new(struct loop **ret, char *reason_text, size_t reason_bytes)
{
	const struct reason reason = {reason_text, reason_bytes};
	struct uring_loop *u = calloc(1, sizeof(*u));
	int r;

	if (!u)
		return refuse(&reason, -ENOMEM, "no memory");
	u->base.backend = &uring_backend;
	list_init(&u->todo);
	list_init(&u->owners);
	r = setup_ring(u, &reason);
	if (r == 0)
		r = check_opcodes(u, &reason);
	if (r == 0)
		r = setup_buffers(u, &reason);
	if (r == 0)
		r = restrict_and_enable(u, &reason);
	if (r) {
		uring_loop_free(&u->base);
		return err_trace(r);
	}
	*ret = &u->base;
	return 0;
}
