/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <linux/sockios.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "ipc/conn_impl.h"

/* gcc's analyzer does not see that a list holds what is linked into it. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wanalyzer-malloc-leak"
#endif

/*
 * A reply is sent at once when nothing waits before it. It has to wait while
 * the socket is full, while too many fds lie unread in it, or while the system
 * has too many fds in flight (then a timer tries again, for no event tells).
 *
 * A peer that does not read is found by stall_timer, which runs while replies
 * wait or fds lie unread: a whole period in which nothing was read ends the
 * connection. Its unread fds would otherwise count against every client. What
 * was sent meanwhile is no sign of life, and hides what was read: so after a
 * period that left something unread each send is measured.
 */

#define RETRY_NS         (10 * NSEC_PER_MSEC)
#define NO_REFS_PATIENCE 4u /* periods; those who do not read go after one */
/*
 * SIOCOUTQ counts whole buffers, far larger than this; the kernel wakes us just
 * before it has taken the last byte of the last one off.
 */
#define UNREAD_NOTHING_BYTES 64

/* Outcomes of try_send(). */
enum {
	OUTBOX_E_OK_,
	OUTBOX_E_BLOCKED, /* on_room() will tell */
	OUTBOX_E_NO_REFS, /* nothing will tell */
};

struct waiting {
	struct list_node link; /* outbox::queue */
	size_t n_bytes;
	size_t n_fds;
	int fds[CONN_MAX_UNREAD_FDS];
	unsigned char bytes[];
};

union control {
	char buf[CMSG_SPACE(CONN_MAX_UNREAD_FDS * sizeof(int))];
	struct cmsghdr align;
};

static void close_fds(int *fds, size_t n_fds)
{
	for (size_t i = 0; i < n_fds; i++)
		fds[i] = fd_close(fds[i]);
}

static int unread_bytes(const struct conn *conn)
{
	int n = 0;

	if (ioctl(conn->fd, SIOCOUTQ, &n) < 0)
		return 0;
	return n < UNREAD_NOTHING_BYTES ? 0 : n;
}

static void put_fds(struct msghdr *msg, union control *control, const int *fds,
		    size_t n_fds)
{
	struct cmsghdr *c;

	if (n_fds == 0)
		return;
	msg->msg_control = control->buf;
	msg->msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
	c = &control->align;
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
	memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
}

/* Return: 0, OUTBOX_E_*, or a negated errno: the peer is gone. */
static int try_send(struct conn *conn, struct iovec *iov, size_t n_iov,
		    const int *fds, size_t n_fds)
{
	struct outbox *out = &conn->outbox;
	union control control;
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = n_iov};
	int before;

	if (n_fds && out->n_unread_fds + n_fds > CONN_MAX_UNREAD_FDS) {
		if (unread_bytes(conn))
			return OUTBOX_E_BLOCKED;
		out->n_unread_fds = 0;
	}
	put_fds(&msg, &control, fds, n_fds);
	before = out->is_measured ? unread_bytes(conn) : 0;
	while (sendmsg(conn->fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
		if (errno == EINTR)
			continue;
		if (errno == EAGAIN)
			return OUTBOX_E_BLOCKED;
		if (errno == ETOOMANYREFS || errno == ENOBUFS ||
		    errno == ENOMEM)
			return OUTBOX_E_NO_REFS;
		return err_raise(-errno);
	}
	out->n_unread_fds += (unsigned int)n_fds;
	out->n_sent++;
	if (out->is_measured)
		out->sent_bytes += MAX(unread_bytes(conn) - before, 0);
	return 0;
}

static void look_again_later(struct conn *conn, int unread, bool is_measured)
{
	struct outbox *out = &conn->outbox;

	out->seen_n_sent = out->n_sent;
	out->seen_unread_bytes = unread;
	out->sent_bytes = 0;
	out->is_measured = is_measured;
	loop_timer_set(conn->listener->loop, &out->stall_timer,
		       clock_now_ns() + conn->limits.send_timeout_ns);
}

static void watch_for_stall(struct conn *conn)
{
	struct outbox *out = &conn->outbox;

	if (out->stall_timer.armed)
		return;
	out->n_stalls = 0;
	look_again_later(conn, unread_bytes(conn), false);
}

/* Since the last look, as far as can be told. */
static bool has_read(const struct outbox *out, int unread)
{
	if (!out->is_measured && out->n_sent != out->seen_n_sent)
		return true;
	return unread < out->seen_unread_bytes + out->sent_bytes;
}

static void on_stall_timer(void *ctx)
{
	struct conn *conn = ctx;
	struct outbox *out = &conn->outbox;
	int unread = unread_bytes(conn);

	if (unread == 0)
		out->n_unread_fds = 0;
	if (list_is_empty(&out->queue) && out->n_unread_fds == 0) {
		out->is_measured = false;
		return;
	}
	if (has_read(out, unread))
		out->n_stalls = 0;
	else
		out->n_stalls++;
	if (out->n_stalls >= (out->no_refs ? NO_REFS_PATIENCE : 1u)) {
		conn_fail(conn, ETIMEDOUT,
			  "client did not read its replies within "
			  "send_timeout");
		return;
	}
	look_again_later(conn, unread, true);
}

/* After a send that has to wait: what wakes it. */
static void await(struct conn *conn, int outcome)
{
	struct outbox *out = &conn->outbox;

	out->no_refs = outcome == OUTBOX_E_NO_REFS;
	if (out->no_refs)
		loop_timer_set(conn->listener->loop, &out->retry_timer,
			       clock_now_ns() + RETRY_NS);
	loop_socket_await_room(conn->socket, !out->no_refs);
	watch_for_stall(conn);
}

static void flush(struct conn *conn)
{
	struct outbox *out = &conn->outbox;
	struct list_node *node;

	while (!conn->closing && (node = list_first(&out->queue))) {
		struct waiting *w = list_entry(node, struct waiting, link);
		struct iovec iov = {.iov_base = w->bytes,
				    .iov_len = w->n_bytes};
		int r = try_send(conn, &iov, 1, w->fds, w->n_fds);

		if (r > 0) {
			await(conn, r);
			return;
		} else if (r < 0) {
			conn_close(conn);
			return;
		}
		list_remove(&w->link);
		out->queue_bytes -= w->n_bytes;
		close_fds(w->fds, w->n_fds);
		free(w);
	}
	if (conn->closing)
		return;
	out->no_refs = false;
	loop_socket_await_room(conn->socket, false);
	conn_read_on(conn);
}

static void on_retry_timer(void *ctx)
{
	flush(ctx);
}

void outbox_on_room(struct conn *conn)
{
	flush(conn);
}

/* Copies the reply to the queue's end; false when it has no place there. */
static bool enqueue(struct conn *conn, const struct iovec *iov, size_t n_iov,
		    const int *fds, size_t n_fds)
{
	struct outbox *out = &conn->outbox;
	size_t n_bytes = 0;
	struct waiting *w;

	for (size_t i = 0; i < n_iov; i++)
		n_bytes += iov[i].iov_len;
	if (out->queue_bytes + n_bytes > conn->limits.max_queue_bytes)
		return false;
	w = malloc(sizeof(*w) + n_bytes);
	if (!w)
		return false;
	w->n_bytes = 0;
	for (size_t i = 0; i < n_iov; i++) {
		if (iov[i].iov_len == 0)
			continue;
		memcpy(w->bytes + w->n_bytes, iov[i].iov_base, iov[i].iov_len);
		w->n_bytes += iov[i].iov_len;
	}
	w->n_fds = n_fds;
	if (n_fds)
		memcpy(w->fds, fds, n_fds * sizeof(*fds));
	out->queue_bytes += n_bytes;
	list_add_tail(&out->queue, &w->link);
	return true;
}

void outbox_send(struct conn *conn, const struct dmaheap_header *header,
		 const struct iovec *iov, size_t n_iov, int *fds, size_t n_fds)
{
	struct iovec all[1 + CONN_REPLY_MAX_IOV];
	bool is_first = list_is_empty(&conn->outbox.queue);
	int r = OUTBOX_E_BLOCKED;

	assert(n_iov <= CONN_REPLY_MAX_IOV && n_fds <= CONN_MAX_UNREAD_FDS);
	all[0].iov_base = (void *)(uintptr_t)header;
	all[0].iov_len = sizeof(*header);
	for (size_t i = 0; i < n_iov; i++)
		all[1 + i] = iov[i];
	if (is_first)
		r = try_send(conn, all, 1 + n_iov, fds, n_fds);
	if (r == 0 && n_fds)
		watch_for_stall(conn);
	if (r <= 0) {
		close_fds(fds, n_fds);
		if (r < 0)
			conn_close(conn);
		return;
	}
	if (!enqueue(conn, all, 1 + n_iov, fds, n_fds)) {
		close_fds(fds, n_fds);
		conn_fail(conn, ENOBUFS, "replies to the client pile up");
		return;
	}
	for (size_t i = 0; i < n_fds; i++)
		fds[i] = -1; /* the queue's now */
	if (is_first)
		await(conn, r);
}

void outbox_init(struct conn *conn)
{
	struct outbox *out = &conn->outbox;

	list_init(&out->queue);
	loop_timer_init(&out->retry_timer, on_retry_timer, conn);
	loop_timer_init(&out->stall_timer, on_stall_timer, conn);
}

void outbox_fini(struct conn *conn)
{
	struct outbox *out = &conn->outbox;

	loop_timer_clear(conn->listener->loop, &out->retry_timer);
	loop_timer_clear(conn->listener->loop, &out->stall_timer);
	list_for_each_safe(node, &out->queue)
	{
		struct waiting *w = list_entry(node, struct waiting, link);

		list_remove(&w->link);
		close_fds(w->fds, w->n_fds);
		free(w);
	}
	out->queue_bytes = 0;
}
