/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Event counters with the names of /proc/vmstat. Those that the kernel does not
 * have begin with "model_".
 *
 * Units:     events or pages, as in the kernel.
 * Ownership: the counters belong to the node.
 * Threads:   as the node.
 */

#define VMSTAT_LIST(X)                                                         \
	X(pgalloc)                                                             \
	X(pgfree)                                                              \
	X(allocstall_normal)                                                   \
	X(pgsteal_kswapd)                                                      \
	X(pgsteal_direct)                                                      \
	X(pgscan_kswapd)                                                       \
	X(pgscan_direct)                                                       \
	X(pgsteal_anon)                                                        \
	X(pgsteal_file)                                                        \
	X(pgdeactivate)                                                        \
	X(pgactivate)                                                          \
	X(slabs_scanned)                                                       \
	X(kswapd_low_wmark_hit_quickly)                                        \
	X(kswapd_high_wmark_hit_quickly)                                       \
	X(pageoutrun)                                                          \
	X(nr_vmscan_write)                                                     \
	X(pswpout)                                                             \
	X(drop_slab)                                                           \
	X(oom_kill)                                                            \
	X(pgmigrate_success)                                                   \
	X(pgmigrate_fail)                                                      \
	X(compact_migrate_scanned)                                             \
	X(compact_free_scanned)                                                \
	X(compact_isolated)                                                    \
	X(compact_stall)                                                       \
	X(compact_fail)                                                        \
	X(compact_success)                                                     \
	X(compact_daemon_wake)                                                 \
	X(compact_daemon_migrate_scanned)                                      \
	X(compact_daemon_free_scanned)                                         \
	X(model_daemon_migrated)                                               \
	X(model_pageblock_steal)                                               \
	X(model_pageblock_claim)                                               \
	X(model_watermark_boost)                                               \
	X(model_alloc_fail)                                                    \
	X(model_shrinker_pages)

enum vmstat_item {
#define VMSTAT_ITEM(name) VMSTAT_##name,
	VMSTAT_LIST(VMSTAT_ITEM)
#undef VMSTAT_ITEM
		VMSTAT_COUNT,
};
