/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Self-test: does the kernel really give the folios that each backing wants?
 * Never judged by version or by a switch alone.
 *
 * Units:     *_bytes; masks have bit n for order n of 4 KiB pages.
 * Ownership: no state.
 * Threads:   any; maps and touches memory of its own, so at start-up only.
 */

#include "base/base.h"

#define SELFTEST_REASON_BYTES 112u

/* Return: true, or false and why not in @reason. */
bool selftest_collapse(char reason[SELFTEST_REASON_BYTES]);

/**
 * selftest_folio() - a block of each order, looked at afterwards
 * @orders: mask of orders of 4 KiB pages; 0 and those above 9 are ignored
 *
 * Looks in /proc/kpageflags where that is permitted (root), else at the
 * kernel's counters, which other programs move as well.
 *
 * Return: true, or false and why not in @reason.
 */
bool selftest_folio(uint32_t orders, char reason[SELFTEST_REASON_BYTES]);

/**
 * selftest_folio_orders() - the orders of the folios of a mapping
 * @addr:   mapped and populated, at a multiple of 4 KiB
 * @counts: receives how many folios of each order begin in it
 *
 * Return: 0, -EPERM (not root), or a negated errno.
 */
int selftest_folio_orders(const void *addr, uint64_t len_bytes,
			  uint32_t counts[11]) _must_check_;
