/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Administrative requests, and ADOPT. Who may ask them is decided before, in
 * session.c; POLICY with DMAHEAP_POLICY_SHOW is for everybody.
 *
 * Units:     as dmaheap/protocol.h.
 * Ownership: requests are borrowed for the call.
 * Threads:   the loop's.
 */

#include <sys/types.h>

#include "base/base.h"

struct conn_peer;
struct request;
struct server;
struct session;

/*
 * Return: true if @peer is root, the daemon's uid, or in admin_group. Only what
 * the kernel said of the connecting process counts, in the daemon's own user
 * namespace: root of another one is an ordinary uid here.
 */
bool admin_is_allowed(const struct server *server,
		      const struct conn_peer *peer);

/* Return: the gid of a group's name or number, or (gid_t)-1. */
gid_t admin_find_group(const char *name);

void admin_policy(struct session *session, const struct request *request);
void admin_shrink(struct session *session, const struct request *request);
void admin_reload(struct session *session, const struct request *request);
void admin_inject(struct session *session, const struct request *request);
void admin_trace(struct session *session, const struct request *request);
