/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Supervisor: the process that answers the program's notified calls. It is the
 * program's parent and the reaper of all its descendants, in a session of its
 * own, and lives until the last of them is gone: without it every open() in
 * them would fail.
 *
 * Ownership: takes the socket.
 * Threads:   the main one here; the pool's answer the calls.
 */

#include <signal.h>

#include "run/options.h"

/**
 * supervisor_run() - start the program and serve it to its end
 * @launcher:    the socket to the launcher
 * @signal_mask: the program's
 *
 * What fails is told on standard error and to the launcher. Does not return.
 */
_Noreturn void supervisor_run(const struct options *options, int launcher,
			      const sigset_t *signal_mask);
