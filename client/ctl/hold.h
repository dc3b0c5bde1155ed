/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Hold: to stay until a signal says that it is enough.
 *
 * Ownership: nothing is kept.
 * Threads:   one; changes the signal mask for the rest of the program.
 */

#include "ctl/ctl.h"

/* From here on SIGINT, SIGTERM and SIGHUP end hold_wait() only. */
void hold_begin(void);

/* Waits for one of them, or at most @seconds unless that is negative. */
void hold_wait(double seconds);

/**
 * hold_connection() - wait while what this connection set is in force
 * @what: for the message
 *
 * Return: CTL_OK after a signal, CTL_FAILED after a message when the daemon
 * went away, for what it held went with it.
 */
int hold_connection(struct ctl *ctl, const char *what) _must_check_;
