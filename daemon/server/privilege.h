/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Privilege: what the process gives up before it serves anybody.
 *
 * Units:     none.
 * Ownership: none.
 * Threads:   privilege_drop() before any thread is started, since capabilities
 *            are each thread's own.
 */

#include "base/base.h"

/**
 * privilege_drop() - no capabilities, and none ever again
 *
 * Clears the ambient, bounding, inheritable, permitted and effective sets and
 * sets no_new_privs. No backing needs a capability: leases, attributes and
 * switches in /sys only need the uid that owns them.
 *
 * As an ordinary user only no_new_privs is left to do.
 * Return: 0, or a negated errno.
 */
int privilege_drop(void) _must_check_;
