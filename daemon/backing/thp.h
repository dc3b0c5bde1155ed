/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * THP: the kernel's per-size switches for huge pages in shared memory, since
 * 6.11: /sys/kernel/mm/transparent_hugepage/hugepages-<size>kB/shmem_enabled.
 *
 * With manage_thp the needed ones are set to "advise", which affects every
 * memfd user of the host who asks for huge pages. What they were is noted in a
 * state file first and put back at the end, or by the next daemon after a
 * crash. A switch that somebody else has changed since is left alone.
 *
 * Units:     orders are of 4 KiB pages; masks have bit n for order n.
 * Ownership: thp_new() to thp_free(), which restores.
 * Threads:   one.
 */

#include "base/base.h"

#define THP_ORDER_MAX    9u /* 2 MiB */
#define THP_STATE_FILE   "/run/dmaheap/thp.state"
#define THP_REASON_BYTES 112u

struct thp;

/* Return: mask of the orders of which a memfd may get folios when it asks. */
uint32_t thp_enabled_orders(void);

/* Return: mask of the orders that have a switch here. */
uint32_t thp_known_orders(void);

/* Bytes of a folio of @order, for the name of its switch. */
static inline uint64_t thp_bytes(unsigned int order)
{
	return KIB(4) << order;
}

/* A setting that keeps MADV_COLLAPSE from working. */
struct thp_hindrance {
	const char *what;
	const char *command; /* for a shell of root's: mends it; "": none */
};

/* Return: the first that does, static, or NULL. Any thread. */
const struct thp_hindrance *thp_collapse_hindrance(void);

/* Return: folios of @order that memfds got, or failed to get, so far on this
 * host; 0 where the kernel does not count. */
uint64_t thp_counter(unsigned int order, const char *name);

/**
 * thp_new() - take charge of the switches
 * @state_file: NULL: THP_STATE_FILE; its directory is made if it is missing
 * @reason:     receives why not, THP_REASON_BYTES
 *
 * Restores first what a daemon that crashed has left.
 *
 * Return: 0, -EBUSY (another daemon has them), -EACCES and the like (the state
 * file), -ENOMEM.
 */
int thp_new(struct thp **ret, const char *state_file, char *reason)
	_must_check_;

/* Sets the switches of @orders that are off. Return: mask of those that are on
 * afterwards. */
uint32_t thp_enable(struct thp *thp, uint32_t orders);

/* Restores. Return: NULL, always. @thp may be NULL. */
struct thp *thp_free(struct thp *thp);
