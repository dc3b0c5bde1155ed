/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Adopt: buffers of an earlier daemon, brought back by who holds them.
 *
 * Units:     none.
 * Ownership: the request's fds are borrowed.
 * Threads:   the loop's.
 */

struct request;
struct session;

/*
 * Serves an ADOPT request: one record per fd, in their order. Two fds of one
 * buffer, and one that is known already, give the same id. The uid that the
 * buffer was made for is charged, whoever brings it.
 */
void adopt_serve(struct session *session, const struct request *request);
