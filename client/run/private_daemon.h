/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Private daemon: a dmaheapd of the run's own, which ends with it.
 *
 * Units:     sizes in bytes.
 * Ownership: private_daemon_stop() ends what private_daemon_start() began.
 * Threads:   the supervisor's main one.
 */

#include <sys/types.h>

#include "run/options.h"
#include "run/workdir.h"

struct private_daemon {
	pid_t pid; /* 0: none */
	char socket_path[WORKDIR_PATH_BYTES + 16];
};

/**
 * private_daemon_start() - start it and wait until it is ready
 *
 * Its own messages are kept in the workdir and shown when it does not start.
 * A caller that is killed takes it along.
 *
 * Return: 0, or a negated errno; what is wrong has been told then.
 */
int private_daemon_start(struct private_daemon *ret,
			 const struct options *options,
			 const struct workdir *workdir);

/**
 * private_daemon_stop() - end it, by force after five seconds
 *
 * It may have been reaped already: @daemon->pid is 0 then. Removes its files.
 */
void private_daemon_stop(struct private_daemon *daemon,
			 const struct workdir *workdir);
