/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What an IOMMU's driver does to map a buffer for a device and to unmap it, as
 * iommu_map_sg() does: physically adjacent blocks are joined, and each stretch
 * is covered by the largest page size that address, IOVA and length allow.
 *
 * Units:     *_bytes; *_ns of the model.
 * Ownership: plain values.
 * Threads:   no state.
 *
 * The costs are assumptions with names, not measurements: no source gives any.
 */

#include "base/base.h"
#include "heap/buffer.h"

#define IOMMU_PAGE_SIZES 3u

struct iommu_params {
	/* page sizes of the IOMMU, rising; 0: not there. The first is needed */
	uint64_t page_bytes[IOMMU_PAGE_SIZES];
	uint32_t map_call_ns;    /* per stretch */
	uint32_t entry_write_ns; /* per page-table entry, cache maintained */
	uint32_t entry_clear_ns; /* the same on unmap */
	uint32_t invalidate_ns;  /* per entry, its TLB command */
	uint32_t sync_ns;        /* once per unmap */
};

struct iommu_usage {
	uint64_t sg_entries; /* blocks: what the scatterlist holds */
	uint64_t stretches;  /* after joining neighbours */
	uint64_t entries;    /* leaf page-table entries written */
	uint64_t map_ns;
	uint64_t unmap_ns;
};

/* Costs of a phone-like IOMMU with the three page sizes of the parameters. */
struct iommu_params iommu_default(uint64_t first_bytes, uint64_t second_bytes,
				  uint64_t third_bytes);

/* @page_size_bytes: of the node that the runs are of. */
struct iommu_usage iommu_use(const struct iommu_params *params,
			     const struct buffer_run *runs, uint32_t n_runs,
			     uint32_t page_size_bytes);
