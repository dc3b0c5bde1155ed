/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Launcher: the foreground process. It passes signals on, stops when the
 * program stops, and ends as the program ends, by the same signal if need be.
 *
 * Ownership: nothing is kept; arguments are borrowed.
 * Threads:   one.
 */

#include <signal.h>
#include <sys/types.h>

#include "run/options.h"

/* What the supervisor tells the launcher, and once the other way round. */
struct launcher_word {
	enum {
		LAUNCHER_STOPPED, /* value: the signal */
		LAUNCHER_ENDED,   /* value: the program's wait status */
		LAUNCHER_FAILED,  /* value: the exit status */
		LAUNCHER_SIGNAL, /* to the supervisor: send it to the program */
	} kind;
	int value;
	int has_leaks; /* with ENDED: of interest to --fail-on */
	pid_t sender;  /* with SIGNAL; with STOPPED, the program */
};

/**
 * launcher_run() - run the program
 *
 * Return: the exit status; or it does not return, but dies of the signal that
 * the program died of.
 */
int launcher_run(const struct options *options);
