/* SPDX-License-Identifier: MIT */
#include "ctl/verbs.h"

#include "ctl/ctl.h"

const struct verb *const verbs[] = {
	&verb_wait,      &verb_stop,
	&verb_alloc,     &verb_stats,
	&verb_top,       &verb_pools,
	&verb_heaps,     &verb_buffers,
	&verb_buddyinfo, &verb_pagetypeinfo,
	&verb_zoneinfo,  &verb_vmstat,
	&verb_slabinfo,  &verb_quota,
	&verb_trace,     &verb_policy,
	&verb_pressure,  &verb_inject,
	&verb_shrink,    &verb_reload,
	&verb_doctor,    NULL,
};
