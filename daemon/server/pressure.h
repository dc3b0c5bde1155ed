/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Pressure: what an administrator does to the node's memory, and what ends it.
 *
 * All pressure has one owner: the session that asked last, or nobody if it said
 * keep. When the owner's connection ends, all of it is released.
 *
 * Units:     bytes; order is log2 of pages.
 * Ownership: struct pressure is the server's.
 * Threads:   the loop's.
 */

#include "base/base.h"

struct pressure;
struct request;
struct server;
struct session;

/* Return: 0 or -ENOMEM. */
int pressure_control_new(struct pressure **ret, struct server *server)
	_must_check_;

/* Return: NULL, always. @pressure may be NULL. */
struct pressure *pressure_control_free(struct pressure *pressure);
DEFINE_CLEANUP(struct pressure *, pressure_control_free);

/* Serves a PRESSURE request of an administrator. */
void pressure_serve(struct session *session, const struct request *request);

/* @session is gone: what it owns ends. */
void pressure_forget(struct pressure *pressure, const struct session *session);

/* The last live buffer may be gone: a node that waited for it is put back. */
void pressure_check_restore(struct pressure *pressure);
