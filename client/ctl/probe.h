/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Probe: what the daemon's program finds out about this machine when it is run
 * as `dmaheapd --probe --json`.
 *
 * Ownership: a new reference.
 * Threads:   one.
 */

#include "ctl/json.h"

/**
 * probe_run() - run it
 *
 * It is looked for beside this program, in ../sbin from there, and in PATH.
 *
 * Return: an array, not empty, of objects with at least a text "name" and a
 * boolean "ok"; NULL after a message.
 */
json_t *probe_run(void);
