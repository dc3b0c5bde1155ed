/* SPDX-License-Identifier: MIT */
#include "backing/hugetlb.h"

#include <inttypes.h>
#include <stdio.h>

#define DIR "/sys/kernel/mm/hugepages/hugepages-2048kB/"

static uint64_t number(const char *path)
{
	uint64_t n = 0;
	FILE *f = fopen(path, "re");

	if (!f)
		return 0;
	if (fscanf(f, "%" SCNu64, &n) != 1)
		n = 0;
	(void)fclose(f);
	return n;
}

uint64_t hugetlb_n_pages(void)
{
	return number(DIR "nr_hugepages");
}

const char *hugetlb_refusal(uint64_t bytes)
{
	uint64_t n_free, n_promised;

	if (bytes % MIB(2) != 0)
		return "not a multiple of 2 MiB";
	n_free = number(DIR "free_hugepages");
	n_promised = number(DIR "resv_hugepages");
	if (n_free < n_promised || bytes / MIB(2) > n_free - n_promised)
		return "too few free hugetlb pages (vm.nr_hugepages)";
	return NULL;
}
