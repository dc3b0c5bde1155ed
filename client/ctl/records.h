/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Records: replies that are a list of structs of one size.
 *
 * Ownership: lists are the caller's to free().
 * Threads:   one.
 */

#include "ctl/ctl.h"

/**
 * records_unpack() - copy records, whatever size the daemon gives them
 * @bytes:        the records
 * @n_bytes:      of them
 * @n:            how many
 * @record_bytes: the daemon's size of one
 * @size:         ours; shorter ones are filled up with zero
 * @to:           receives them, @n * @size bytes
 *
 * Return: false when they do not fit @n_bytes.
 */
bool records_unpack(const void *bytes, size_t n_bytes, size_t n,
		    size_t record_bytes, size_t size, void *to);

/**
 * records_fetch() - a request whose reply is struct dmaheap_records_reply
 *
 * Return: CTL_OK, or CTL_FAILED after a message.
 */
int records_fetch(struct ctl *ctl, const char *what,
		  struct dmaheap_message *msg, size_t size, void **ret,
		  size_t *ret_n) _must_check_;
