/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A listener with a user that notes what it is told and answers as the test
 * wants, and clients that are plain sockets of the same thread.
 *
 * Ownership: fixture_set_up() and fixture_tear_down() make and give back all.
 * Threads:   the main thread.
 */

#include "ipc/conn.h"
#include "loop_support.h"

#define FIXTURE_MAX 256

enum fixture_answer {
	FIXTURE_AT_ONCE,  /* an empty reply */
	FIXTURE_LATER,    /* kept in pending[] */
	FIXTURE_WITH_FDS, /* reply_n_fds copies of a memfd */
	FIXTURE_CLOSE,    /* conn_close() instead of a reply */
	FIXTURE_KEEP_FD,  /* takes the first fd, then as AT_ONCE */
};

struct fixture {
	struct loop *loop;
	struct listener *listener;
	int listen_fd;
	struct conn_limits limits;
	enum fixture_answer answer;
	size_t reply_n_fds;
	size_t reply_bytes;
	int memfd;
	int refuse_with; /* errno for on_connect(), or 0 */

	struct conn *conn; /* the latest */
	struct conn_peer peer;
	unsigned int n_connected;
	unsigned int n_closed;
	unsigned int n_gone;
	unsigned int n_requests;
	unsigned int n_faults;
	unsigned int n_fatal_faults;
	struct codec_error last_fault;
	int kept_fd;
	struct {
		struct conn *conn;
		struct dmaheap_header header;
	} pending[FIXTURE_MAX];
	size_t n_pending;
	unsigned int n_fds_before;
};

extern struct fixture fx;

void fixture_set_up(void);    /* limits as conn_limits_default */
void fixture_tear_down(void); /* checks that no fd is left */
void fixture_restart(void);   /* the listener anew, with fx.limits */
void fixture_answer_pending(void);

/* Return: a connected, non-blocking socket. */
int client_connect(void);

/* The same, with HELLO sent and answered. */
int client_greet(void);

/* Sends a request; @n_fds copies of a memfd. Return: as sendmsg(), or a negated
 * errno. */
ssize_t client_send(int fd, uint16_t opcode, const void *body, size_t n_bytes,
		    size_t n_fds);

/* The same with copies of @sent. */
ssize_t client_send_fds(int fd, uint16_t opcode, const void *body,
			size_t n_bytes, int sent, size_t n_fds);

/* The same with @last as the last of them. */
ssize_t client_send_fds_and(int fd, uint16_t opcode, const void *body,
			    size_t n_bytes, int sent, size_t n_fds, int last);

struct client_reply {
	ssize_t r; /* bytes, 0 at the end, -errno */
	struct dmaheap_header header;
	char payload[DMAHEAP_MESSAGE_MAX_BYTES];
	size_t n_fds; /* they came, and are closed */
};

/* Runs the loop until there is something, then receives. */
struct client_reply *client_receive(int fd);

/* Return: whether nothing has come after running the loop a little. */
bool client_has_nothing(int fd);

/* Return: whether the peer has closed, after running the loop a while. */
bool client_is_closed(int fd);
