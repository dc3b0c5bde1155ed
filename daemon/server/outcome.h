/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Outcomes of the layers below become errno values here, and only here; the
 * table for users is in docs/protocol.md, "Errors".
 *
 * Units:     errno values > 0.
 * Ownership: none.
 * Threads:   no state.
 */

#include "base/base.h"

/* Whose outcome it is: the numbers of two enums may be equal. */
enum outcome_of {
	OUTCOME_OF_HEAP,
	OUTCOME_OF_BACKING,
	OUTCOME_OF_QUOTA,
	OUTCOME_OF_SERVER,
};

/* Outcomes of the server's own checks. */
enum server_outcome {
	SERVER_E_OK_,
	SERVER_E_FIELD,       /* a field of the request is not allowed */
	SERVER_E_NO_HEAP,     /* no heap of that name */
	SERVER_E_NOT_ADMIN,   /* the peer may not administer */
	SERVER_E_NOT_BUFFER,  /* the fd is no buffer of this daemon */
	SERVER_E_NO_BUFFER,   /* no buffer of that id is the peer's */
	SERVER_E_TOO_LARGE,   /* more than the node has */
	SERVER_E_BUSY,        /* not while buffers live, or twice */
	SERVER_E_DRAINING,    /* the daemon is about to end */
	SERVER_E_CONFIG,      /* a bad config, snapshot or scenario text */
	SERVER_E_UNSUPPORTED, /* not in this build, or not on this host */
	SERVER_E_NO_FD,       /* no free file descriptor in the daemon */
};

/**
 * outcome_errno() - the errno that a client is told
 * @r: > 0: an outcome of @of; < 0: a negated errno of a daemon in trouble
 *
 * Return: > 0.
 */
int outcome_errno(enum outcome_of of, int r);
