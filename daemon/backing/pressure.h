/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Pressure: told by the kernel (PSI) when the host stalls for memory.
 *
 * A trigger's event is reported to one poll() only, and polling it through
 * nested epolls loses it: so a thread of its own waits for it, asleep
 * otherwise.
 *
 * Ownership: pressure_new() to pressure_free().
 * Threads:   one; its own thread is inside.
 */

#include "base/base.h"

struct pressure;

/**
 * pressure_new() - stalls of 150 ms within 2 s count from now on
 *
 * Return: 0, -ENOENT and -EOPNOTSUPP (no PSI in this kernel), -EACCES, -EPERM
 * and -EINVAL (not for this user), -EMFILE, -ENOMEM, -EAGAIN (no thread).
 */
int pressure_new(struct pressure **ret) _must_check_;
struct pressure *pressure_free(struct pressure *p);

/* Readable when pressure_take() gives true. */
int pressure_event_fd(const struct pressure *p);

/* Return: true if there was pressure since the last call. */
bool pressure_take(struct pressure *p);
