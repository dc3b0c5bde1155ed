/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A daemon of a few lines that answers as it is told, also wrongly.
 *
 * Ownership: fake_start() gives the only reference; it ends with fake_stop().
 *            A hook borrows the fds of the request.
 * Threads:   the fake runs in a thread of its own, and hooks run there; the
 *            counters are atomic.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <dmaheap/protocol.h>

#define FAKE_CONNECTIONS_MAX 16
#define FAKE_FDS_MAX         253

struct fake_request {
	struct dmaheap_header header;
	uint8_t payload[DMAHEAP_MESSAGE_MAX_BYTES];
	size_t payload_bytes;
	int fds[FAKE_FDS_MAX];
	size_t n_fds;
};

struct fake_reply {
	struct dmaheap_header header;
	uint8_t payload[DMAHEAP_MESSAGE_MAX_BYTES + 1024];
	size_t payload_bytes;
	int fds[FAKE_FDS_MAX]; /* closed after sending */
	size_t n_fds;
	bool hang_up; /* instead of replying */
	bool silent;
	size_t cut_bytes; /* > 0: send only so many */
};

/* Changes the reply that would be sent; NULL: none does. */
typedef void (*fake_hook)(const struct fake_request *req,
			  struct fake_reply *reply, void *ctx);

struct fake {
	char path[108];
	uint64_t instance_id;
	fake_hook hook;
	void *ctx;

	int listener;
	int stop_pipe[2];
	pthread_t thread;
	int connections[FAKE_CONNECTIONS_MAX];
	struct fake_request req;
	struct fake_reply reply;

	atomic_uint n_connections; /* accepted so far */
	atomic_uint n_allocs;
	atomic_uint n_adopted;
	atomic_uint n_requests;
};

/* A directory for sockets; test programs make one and remove it. */
const char *fake_dir(void);
void fake_dir_remove(void);

/* Starts one at fake_dir()/NAME; ends the program when that fails. */
struct fake *fake_start(const char *name, uint64_t instance_id, fake_hook hook,
			void *ctx);

/* Closes every connection and ends the thread. Return: NULL, always. */
struct fake *fake_stop(struct fake *fake);

/* A sealed memfd as a daemon makes it, close-on-exec. */
int fake_buffer(uint64_t len_bytes, const char *name);

/* Return: how many fds this process has open. */
unsigned int fake_count_fds(void);

/* Waits until so many are open: the fake closes its own in its own time. */
bool fake_settle_fds(unsigned int want);
