/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Allocation flags: how hard the node may try for a block. Each bit has the
 * meaning of the kernel's __GFP_ flag of the same name.
 *
 * Units:     a flag set is a uint32_t.
 * Ownership: plain values.
 * Threads:   no state.
 */

#include "base/base.h"
#include "base/strbuf.h"

#define GFP_DIRECT_RECLAIM 0x001u /* the caller may reclaim and compact */
#define GFP_KSWAPD_RECLAIM 0x002u /* it may wake kswapd */
#define GFP_NORETRY        0x004u /* one attempt of each kind, then give up */
#define GFP_RETRY_MAYFAIL  0x008u /* retry costly orders as well */
#define GFP_NOFAIL         0x010u /* never give up while anything helps */
#define GFP_NOWARN         0x020u /* no message on failure */
#define GFP_COMP           0x040u /* a compound page */
#define GFP_ZERO           0x080u /* zeroed: costs time per page */
#define GFP_MOVABLE        0x100u /* from movable pageblocks (occupants) */
#define GFP_RECLAIMABLE    0x200u /* from reclaimable ones (slab occupants) */

#define GFP_ALL_FLAGS 0x3ffu

/* The sets that the system heap's history knows. */
#define GFP_LOW_ORDER (GFP_DIRECT_RECLAIM | GFP_KSWAPD_RECLAIM | GFP_ZERO)
#define GFP_MID_ORDER (GFP_LOW_ORDER | GFP_NOWARN | GFP_COMP)
/* Both reclaim bits cleared: it does not even wake kswapd. */
#define GFP_HIGH_ORDER (GFP_NOWARN | GFP_NORETRY | GFP_ZERO | GFP_COMP)

/**
 * gfp_parse() - flags from text
 * @text:       names joined by '|', without blanks: "HIGH_ORDER",
 *              "LOW_ORDER|RETRY_MAYFAIL", "DIRECT_RECLAIM|ZERO"; "0" is none
 * @ret_flags:  receives the flags on success; untouched on failure
 *
 * Return: 0, or -EINVAL (empty, an unknown name, or contradictory types).
 */
int gfp_parse(const char *text, uint32_t *ret_flags) _must_check_;

/* Appends the flags as gfp_parse() reads them, a named set where one fits. */
void gfp_format(struct strbuf *sb, uint32_t flags);

/* All names, joined by ", ", for error messages. */
extern const char gfp_names[];
