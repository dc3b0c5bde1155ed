/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Buffers: the list that BUFFERS gives, whole.
 *
 * Ownership: the list is the caller's to free().
 * Threads:   one.
 */

#include "ctl/ctl.h"

/* Return: CTL_OK, or CTL_FAILED after a message. */
int buffers_fetch(struct ctl *ctl, struct dmaheap_buffer_record **ret,
		  size_t *ret_n) _must_check_;
