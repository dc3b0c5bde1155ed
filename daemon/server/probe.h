/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Probe: what this host offers a daemon and what it lacks, for --probe and so
 * for `dmaheapctl doctor`.
 *
 * Units:     as printed.
 * Ownership: the configuration is consumed.
 * Threads:   one; it starts and ends its own backing.
 */

#include "base/base.h"
#include "server/config.h"

/* Prints to standard output, as JSON or for people. Return: an exit status. */
int probe_print(struct config *config, bool json);
