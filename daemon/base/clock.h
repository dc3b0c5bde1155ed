/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The clocks. mm/ and heap/ never include this: they are told the time.
 *
 * Units:     nanoseconds.
 * Ownership: no state.
 * Threads:   any.
 */

#include "base/base.h"

/* Return: CLOCK_MONOTONIC. */
uint64_t clock_now_ns(void);

/* Return: CLOCK_REALTIME, since 1970. */
uint64_t clock_realtime_ns(void);

/* Return: CPU time of the calling thread. */
uint64_t clock_thread_cpu_ns(void);
