/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Pages: naturally aligned groups of 4 KiB, cut from larger chunks. A page from
 * aligned_alloc() costs two: the allocator's own header pushes the next one
 * past its alignment.
 *
 * Units:     order is log2 of pages of PAGES_BYTES.
 * Ownership: a group is the caller's until pages_free().
 * Threads:   any; one lock.
 */

#include "base/base.h"

#define PAGES_BYTES     4096u
#define PAGES_ORDER_MAX 5u

/* Return: 2^@order pages, aligned to their own size, or NULL: no memory. */
void *pages_alloc(unsigned int order);

/* @pages may be NULL. */
void pages_free(void *pages, unsigned int order);
