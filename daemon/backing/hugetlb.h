/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Hugetlb: the host's reserved 2 MiB pages.
 *
 * Units:     pages of 2 MiB.
 * Ownership: no state.
 * Threads:   any; reads /sys each time.
 */

#include "base/base.h"

/* Return: NULL if @bytes can come from reserved pages now, else why not, a
 * static text. Two askers may both be told yes: mapping then fails cleanly. */
const char *hugetlb_refusal(uint64_t bytes);

/* Return: pages of 2 MiB that are reserved on this host. */
uint64_t hugetlb_n_pages(void);
