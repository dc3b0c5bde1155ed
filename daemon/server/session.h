/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Session: one client connection as the server sees it: who it is, what it may
 * do, and what ends with it.
 *
 * Units:     none.
 * Ownership: the connection's, until that is gone; it is of use until it is
 *            closed, and holds no more than its charge afterwards.
 * Threads:   the loop's.
 */

#include "base/base.h"
#include "base/strbuf.h"
#include "ipc/conn.h"
#include "server/fair.h"
#include "server/quota.h"

struct server;

/* The process behind a session; shared with the buffers that it asked for. */
struct peer {
	unsigned int n_refs;
	uid_t uid;
	pid_t pid;
	int pidfd; /* -1: cannot tell whether it lives */
};

struct session {
	struct server *server;
	struct conn *conn;
	struct peer *peer;
	bool is_admin;
	struct quota_charge charge;   /* the connection */
	struct list_node requests;    /* request::session_link, queued */
	struct list_node allocs;      /* alloc::session_link, in flight */
	struct list_node lives;       /* live::session_link, see live.h */
	struct list_node server_link; /* server::sessions */
	/* NODE: the text that is being read in pieces. */
	struct strbuf text;
	uint32_t text_kind;
};

/* A request that is being served, or waits for its turn. */
struct request {
	struct session *session;
	struct codec_request codec;
	int *fds; /* borrowed by who serves it */
	size_t n_fds;
	uint64_t received_ns;
	/* while it waits */
	struct fair_item item;
	struct list_node session_link; /* session::requests */
	char *tail;                    /* owned copy of codec.tail, or NULL */
};

extern const struct conn_ops session_conn_ops;

/* The process' references. Return: the peer; NULL, always. */
struct peer *peer_ref(struct peer *peer);
struct peer *peer_unref(struct peer *peer);

/* Return: true if the process is known to have ended. */
bool peer_is_dead(const struct peer *peer);

/* Serves requests of the queue, one of each uid. */
void session_pump(void *server);

/* Answers @request with the errno of an outcome and a sentence. */
void session_refuse(struct session *session,
		    const struct dmaheap_header *request, int err,
		    const char *fmt, ...) _printf_(4, 5);

/* The same for a quota: one log line, one sentence, one count. */
void session_deny(struct session *session, const struct dmaheap_header *request,
		  const struct quota_denial *denial);

/* Answers with one payload and no fd. */
void session_reply(struct session *session,
		   const struct dmaheap_header *request, const void *payload,
		   size_t payload_bytes);
