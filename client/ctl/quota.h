/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Quota: the records and their JSON, which "stats" shows too.
 *
 * Ownership: the list is the caller's to free(); quota_json() gives a new
 *            reference.
 * Threads:   one.
 */

#include "ctl/ctl.h"
#include "ctl/json.h"

/* Return: CTL_OK, or CTL_FAILED after a message. */
int quota_fetch(struct ctl *ctl, struct dmaheap_quota_record **ret,
		size_t *ret_n) _must_check_;

json_t *quota_json(const struct dmaheap_quota_record *quota, size_t n);
