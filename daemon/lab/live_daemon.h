/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A real dmaheapd of the lab's own, on a private socket, for what can only be
 * measured there.
 *
 * Units:     a request is an allocation and its close.
 * Ownership: live_daemon_stop() ends the daemon and removes its directory.
 * Threads:   the main thread.
 */

#include <sys/types.h>

#include "base/base.h"

struct live_daemon {
	pid_t pid; /* 0: none */
	char dir[64];
	char socket[96];
};

/**
 * live_daemon_start() - start a daemon and wait until it is ready
 * @program:    NULL: the dmaheapd beside this program, in its build tree, or in
 *              $PATH
 * @config:     the text of its configuration
 * @why:        receives the reason of a failure
 *
 * Return: 0 or a negated errno with @why.
 */
int live_daemon_start(struct live_daemon *ret, const char *program,
		      const char *config, char *why, size_t why_bytes)
	_must_check_;

/* Ends it. Harmless when there is none. */
void live_daemon_stop(struct live_daemon *daemon);

/**
 * live_daemon_compare_objects() - slab caches against malloc
 * @ret_per_s:  receives requests per second with slab caches and with malloc,
 *              medians of interleaved rounds; -1 where that was not possible
 * @why:        receives the reason then
 */
void live_daemon_compare_objects(const char *program, double ret_per_s[2],
				 char *why, size_t why_bytes);
