/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * One error model for the whole daemon:
 *
 *   r == 0   success
 *   r <  0   the daemon itself failed: a negated errno that nobody between here
 *            and main() (or the connection, which then closes) interprets.
 *   r >  0   an outcome of this one function, from the enum <MODULE>_E_* in its
 *            header. The caller must handle it and must not pass it on.
 *
 * A simulated zone that is full is an outcome (ZONE_E_EXHAUSTED): the emulator
 * works as intended. malloc() failing is -ENOMEM: the emulator is in trouble.
 *
 * Ownership: nothing is kept.
 * Threads:   the trace switch is set once before threads start.
 */

#include "base/base.h"

/* Where an error starts. Return: @r. */
#define err_raise(r) err_raise_slow((r), __func__, __FILE__, __LINE__)
/* Where it is passed on. Return: @r. */
#define err_trace(r) err_trace_slow((r), __func__, __FILE__, __LINE__)
/* The same, and an outcome that nobody handled becomes -ENOTRECOVERABLE. */
#define err_fold(r) err_fold_slow((r), __func__, __FILE__, __LINE__)

int err_raise_slow(int r, const char *func, const char *file, int line);
int err_trace_slow(int r, const char *func, const char *file, int line);
int err_fold_slow(int r, const char *func, const char *file, int line);

/* Debug builds print each step of an error's way to stderr when on. */
void err_set_trace(bool on);
