/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A real dmaheapd of the lab's own, on a private socket, for what can only be
 * measured there.
 *
 * Units:     a request is an allocation and its close; *_us.
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

struct live_daemon_speed {
	double per_s;  /* requests per second; < 0: not measured */
	double cpu_us; /* of the daemon, per request: whatever else runs */
};

/**
 * live_daemon_compare() - two configurations of the daemon, side by side
 * @ret:        receives medians of interleaved rounds
 * @why:        receives the reason when that was not possible
 *
 * One client allocates and closes 64 KiB, all on one CPU.
 */
void live_daemon_compare(const char *program, const char *const configs[2],
			 struct live_daemon_speed ret[2], char *why,
			 size_t why_bytes);
