/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Requests that only look, or touch no more than the peer's own buffers:
 * HELLO, HEAPS, SET_NAME, BUFFERS, STATS, NODE, QUOTA, RELEASE.
 *
 * Units:     as dmaheap/protocol.h.
 * Ownership: requests are borrowed for the call.
 * Threads:   the loop's.
 */

#include "base/base.h"

struct request;
struct session;

void query_hello(struct session *session, const struct request *request);
void query_heaps(struct session *session, const struct request *request);
void query_set_name(struct session *session, const struct request *request);
void query_buffers(struct session *session, const struct request *request);
void query_stats(struct session *session, const struct request *request);
void query_node(struct session *session, const struct request *request);
void query_quota(struct session *session, const struct request *request);
void query_release(struct session *session, const struct request *request);
