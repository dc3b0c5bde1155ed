/* SPDX-License-Identifier: MIT */
#include "lab/iommu.h"

struct iommu_params iommu_default(uint64_t first_bytes, uint64_t second_bytes,
				  uint64_t third_bytes)
{
	return (struct iommu_params){
		.page_bytes = {first_bytes, second_bytes, third_bytes},
		.map_call_ns = 60,
		.entry_write_ns = 10,
		.entry_clear_ns = 8,
		.invalidate_ns = 12,
		.sync_ns = 1000,
	};
}

/* The largest page that fits where @iova and @address stand. */
static uint64_t page_for(const struct iommu_params *p, uint64_t iova,
			 uint64_t address, uint64_t len_bytes)
{
	uint64_t best = p->page_bytes[0];

	for (unsigned int i = 1; i < IOMMU_PAGE_SIZES; i++) {
		uint64_t bytes = p->page_bytes[i];

		if (bytes && bytes <= len_bytes &&
		    ((iova | address) & (bytes - 1)) == 0)
			best = bytes;
	}
	return best;
}

/* Return: leaf entries for one stretch. */
static uint64_t cover(const struct iommu_params *p, uint64_t iova,
		      uint64_t address, uint64_t len_bytes)
{
	uint64_t n = 0;

	while (len_bytes) {
		uint64_t bytes = page_for(p, iova, address, len_bytes);

		bytes = MIN(bytes, len_bytes);
		iova += bytes;
		address += bytes;
		len_bytes -= bytes;
		n++;
	}
	return n;
}

struct iommu_usage iommu_use(const struct iommu_params *p,
			     const struct buffer_run *runs, uint32_t n_runs,
			     uint32_t page_size_bytes)
{
	struct iommu_usage usage = {0};
	uint64_t iova = 0; /* the IOVA allocator aligns to the largest page */

	for (uint32_t i = 0; i < n_runs;) {
		uint64_t start = (uint64_t)runs[i].pfn * page_size_bytes;
		uint64_t end = start;

		/* Runs that continue each other in memory are one stretch. */
		for (; i < n_runs &&
		       (uint64_t)runs[i].pfn * page_size_bytes == end;
		     i++) {
			usage.sg_entries += runs[i].n_blocks;
			end += ((uint64_t)runs[i].n_blocks << runs[i].order) *
			       page_size_bytes;
		}
		usage.stretches++;
		usage.entries += cover(p, iova, start, end - start);
		iova += end - start;
	}
	usage.map_ns = usage.stretches * p->map_call_ns +
		       usage.entries * p->entry_write_ns;
	usage.unmap_ns =
		usage.entries * (p->entry_clear_ns + p->invalidate_ns) +
		p->sync_ns;
	return usage;
}
