/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Experiment order-usage: what it costs afterwards that a buffer is made of
 * smaller blocks: for the device through an IOMMU (modelled), for the CPU
 * through a mapping (measured), and frame by frame in a recording of video.
 *
 * Units:     *_ns, modelled or measured as the name's group says.
 * Ownership: plain values.
 * Threads:   the main thread.
 */

#include "lab/experiment.h"
#include "lab/iommu.h"
#include "lab/usage_measure.h"
#include "mm/cost.h"

#define USAGE_POLICIES 4u
#define USAGE_IOMMUS   3u

enum usage_state { USAGE_PLENTY, USAGE_LOW, USAGE_STATES };

struct usage_params {
	uint64_t seed;
	uint64_t buffer_bytes;
	uint64_t frame_bytes;
	unsigned int n_frames;
	unsigned int n_held;        /* frames that live at once */
	unsigned int measure_every; /* of so many frames one is measured */
	struct cost_profile costs;
	const char *profile;
	bool manage_thp;
};

/* One buffer of one policy in one state of memory. */
struct usage_cell {
	bool failed;
	uint32_t composition[POLICY_ORDER_COUNT];
	uint64_t alloc_ns, stall_ns; /* modelled */
	struct iommu_usage iommu[USAGE_IOMMUS];
	bool measured;
	struct usage_times times;
};

/* A recording in low memory; sums over its frames. */
struct usage_recording {
	unsigned int n_failed;
	uint64_t alloc_ns, stall_ns, iommu_ns; /* modelled */
	uint64_t worst_alloc_ns;
	uint64_t blocks[POLICY_ORDER_COUNT];
	unsigned int n_measured;
	uint64_t map_ns, touch_ns, write_ns, read_ns, unmap_ns; /* measured */
	/* of the frames measured: the blocks asked for, the folios got */
	uint64_t asked[POLICY_ORDER_COUNT];
	uint64_t got[POLICY_ORDER_COUNT];
	enum usage_sight sight; /* the least of all frames */
	unsigned int n_as_asked;
};

struct usage_result {
	struct usage_params params;
	struct usage_cell cell[USAGE_POLICIES][USAGE_STATES];
	struct usage_recording recording[USAGE_POLICIES];
	char backing[200]; /* its mode, and why not a better one */
};

extern const struct experiment experiment_order_usage;

/* Fills in the result; @host NULL: nothing is measured. Return: 0, or a negated
 * errno with @why. */
int usage_run(struct usage_result *result, struct usage_host *host,
	      struct strbuf *why) _must_check_;

/* Tables and closing sentence from the figures, and from nothing else. */
void usage_report(const struct usage_result *result, struct report *report);

extern const char *const usage_policies[USAGE_POLICIES];
/* Largest pages of each IOMMU: 4 KiB, 64 KiB, 2 MiB. */
extern const char *const usage_iommus[USAGE_IOMMUS];
