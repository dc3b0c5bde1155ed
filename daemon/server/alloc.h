/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Alloc: one ALLOC request from its checks to its reply. Blocks are taken at
 * once; memory is made by the backing's workers, and a modelled stall is waited
 * out by a timer, both at the same time; the reply goes when both are done.
 *
 * Units:     *_ns of CLOCK_MONOTONIC, or of the model where the name says so.
 * Ownership: the request's state belongs to its session and ends with the
 *            reply, or with the session.
 * Threads:   the loop's.
 */

#include "base/base.h"

struct quota_denial;
struct server;
struct session;
struct request;
struct recycling_wait;

/* Serves @request, which must be an ALLOC; answers now or later. */
void alloc_start(struct session *session, const struct request *request);

/* Refuses @request, an ALLOC, for a limit of its uid; its heap counts that. */
void alloc_deny(struct session *session, const struct request *request,
		const struct quota_denial *denial);

/* What a buffer of a request waited for has been recycled, parked or not. */
void alloc_resume(struct recycling_wait *wait);

/* The client is gone: what it had asked for is undone. */
void alloc_cancel_all(struct session *session);
