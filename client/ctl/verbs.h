/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Verbs: one file each, of the verb's name.
 *
 * Ownership: constants.
 * Threads:   one.
 */

struct verb;

extern const struct verb verb_alloc;
extern const struct verb verb_buddyinfo;
extern const struct verb verb_buffers;
extern const struct verb verb_doctor;
extern const struct verb verb_heaps;
extern const struct verb verb_inject;
extern const struct verb verb_pagetypeinfo;
extern const struct verb verb_policy;
extern const struct verb verb_pools;
extern const struct verb verb_pressure;
extern const struct verb verb_quota;
extern const struct verb verb_reload;
extern const struct verb verb_shrink;
extern const struct verb verb_slabinfo;
extern const struct verb verb_stats;
extern const struct verb verb_stop;
extern const struct verb verb_top;
extern const struct verb verb_trace;
extern const struct verb verb_vmstat;
extern const struct verb verb_wait;
extern const struct verb verb_zoneinfo;
