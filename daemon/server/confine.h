/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Confine: from here on the process can make only the system calls that serving
 * clients needs, in every thread it has or will have.
 *
 * Units:     none.
 * Ownership: none.
 * Threads:   covers all; call it once, when everything was started.
 */

#include "base/base.h"

/* Values of [daemon] confine: what a forbidden call gets. */
enum confine_mode {
	CONFINE_OFF,
	CONFINE_ON,   /* EPERM */
	CONFINE_KILL, /* the process ends: for tests, and for the careful */
};

/**
 * confine_process() - install the allow-list
 *
 * Neither programs nor executable memory, neither the network nor other
 * processes are on it. Builds with sanitizers, which need more, leave it out.
 *
 * Return: 0, -EOPNOTSUPP (such a build), or a negated errno: the kernel cannot
 * do it; nothing has changed then.
 */
int confine_process(enum confine_mode mode) _must_check_;
