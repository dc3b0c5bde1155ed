/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>

#include "lab/experiment_order_usage.h"

#define US(ns) ((double)(ns) / 1e3)
#define MS(ns) ((double)(ns) / 1e6)

static const char *const state_names[] = {
	[USAGE_PLENTY] = "plenty",
	[USAGE_LOW] = "low memory",
};

/* "10 x 8, 3 x 0" */
static void compose(const uint32_t composition[POLICY_ORDER_COUNT], char *buf,
		    size_t size)
{
	size_t len = 0;

	buf[0] = '\0';
	for (unsigned int order = POLICY_ORDER_COUNT; order-- > 0;) {
		int n;

		if (!composition[order])
			continue;
		n = snprintf(buf + len, size - len, "%s%u x %u",
			     len ? ", " : "", composition[order], order);
		if (n < 0 || (size_t)n >= size - len)
			return;
		len += (size_t)n;
	}
}

static void report_device(const struct usage_result *r, struct report *report)
{
	const struct report_context context = {
		.policy = "per row",
		.seed = r->params.seed,
		.profile = r->params.profile,
		.kind = "modelled; the IOMMU's costs are assumptions, see "
			"lab/iommu.c",
	};
	char title[128];

	(void)snprintf(title, sizeof(title),
		       "For the device: one buffer of %" PRIu64
		       " MiB mapped and unmapped by an IOMMU",
		       r->params.buffer_bytes >> 20);
	report_table(report, title, &context,
		     "policy|memory|blocks|alloc us|of it stalled|sg entries|"
		     "IOMMU pages up to|table writes|map us|unmap us|source");
	for (unsigned int i = 0; i < USAGE_POLICIES; i++) {
		for (unsigned int s = 0; s < USAGE_STATES; s++) {
			const struct usage_cell *c = &r->cell[i][s];
			char blocks[64];

			compose(c->composition, blocks, sizeof(blocks));
			for (unsigned int k = 0; k < USAGE_IOMMUS; k++)
				report_row(report,
					   "%s|%s|%s|%.0f|%.0f|%" PRIu64
					   "|%s|%" PRIu64 "|%.1f|%.1f|%s",
					   usage_policies[i], state_names[s],
					   c->failed ? "failed" : blocks,
					   US(c->alloc_ns), US(c->stall_ns),
					   c->iommu[k].sg_entries,
					   usage_iommus[k], c->iommu[k].entries,
					   US(c->iommu[k].map_ns),
					   US(c->iommu[k].unmap_ns),
					   i + s + k ? ""
						     : "asked, not measured");
		}
	}
}

static void report_cpu(const struct usage_result *r, struct report *report)
{
	const struct report_context context = {
		.policy = "per row",
		.seed = r->params.seed,
		.profile = "this host",
		.kind = "CPU time measured, least of three rounds",
	};

	report_table(report,
		     "For the CPU: mappings of real memory of the same "
		     "composition",
		     &context,
		     "policy|memory|blocks|backing got|first touch us|write "
		     "us|read us|ns per random read|unmap us|not given");
	for (unsigned int i = 0; i < USAGE_POLICIES; i++) {
		for (unsigned int s = 0; s < USAGE_STATES; s++) {
			const struct usage_cell *c = &r->cell[i][s];
			const struct usage_times *t = &c->times;
			char blocks[64];

			if (!c->measured)
				continue;
			compose(c->composition, blocks, sizeof(blocks));
			report_row(report,
				   "%s|%s|%s|%s|%.0f|%.0f|%.0f|%.1f|%.0f|%s",
				   usage_policies[i], state_names[s], blocks,
				   backing_kind_name(t->got), US(t->touch_ns),
				   US(t->write_ns), US(t->read_ns),
				   (double)t->random_ns / USAGE_RANDOM_READS,
				   US(t->unmap_ns), t->reason);
		}
	}
	report_note(report, "Backing: %s.%s", r->backing,
		    r->params.manage_thp
			    ? ""
			    : " As root, --manage-thp gives each block's own "
			      "order and restores the switches afterwards.");
}

static void report_recording(const struct usage_result *r,
			     struct report *report)
{
	const struct report_context modelled = {
		.policy = "per row, pools off",
		.seed = r->params.seed,
		.profile = r->params.profile,
		.kind = "modelled, IOMMU pages up to 64 KiB",
	};
	struct report_context measured = modelled;
	char title[160];

	measured.profile = "this host";
	measured.kind = "CPU time measured, sums of frames";
	(void)snprintf(title, sizeof(title),
		       "A recording in low memory: %u frames of %" PRIu64
		       " MiB, 30 a second, %u held; device's side",
		       r->params.n_frames, r->params.frame_bytes >> 20,
		       r->params.n_held);
	report_table(report, title, &modelled,
		     "policy|failed|blocks 9|8|4|0|alloc ms|of it stalled|"
		     "worst frame ms|IOMMU map and unmap ms|total ms");
	for (unsigned int i = 0; i < USAGE_POLICIES; i++) {
		const struct usage_recording *c = &r->recording[i];

		report_row(report,
			   "%s|%u|%" PRIu64 "|%" PRIu64 "|%" PRIu64 "|%" PRIu64
			   "|%.2f|%.2f|%.2f|%.2f|%.2f",
			   usage_policies[i], c->n_failed, c->blocks[9],
			   c->blocks[8], c->blocks[4], c->blocks[0],
			   MS(c->alloc_ns), MS(c->stall_ns),
			   MS(c->worst_alloc_ns), MS(c->iommu_ns),
			   MS(c->alloc_ns + c->iommu_ns));
	}
	report_note(report, "The source has no figures for this: the question "
			    "stayed open there.");
	if (r->recording[0].n_measured == 0)
		return;
	report_table(report, "The same recording: CPU's side", &measured,
		     "policy|frames|map ms|first touch ms|write ms|read ms|"
		     "unmap ms|total ms");
	for (unsigned int i = 0; i < USAGE_POLICIES; i++) {
		const struct usage_recording *c = &r->recording[i];

		report_row(report, "%s|%u|%.2f|%.2f|%.2f|%.2f|%.2f|%.2f",
			   usage_policies[i], c->n_measured, MS(c->map_ns),
			   MS(c->touch_ns), MS(c->write_ns), MS(c->read_ns),
			   MS(c->unmap_ns),
			   MS(c->map_ns + c->touch_ns + c->write_ns +
			      c->read_ns + c->unmap_ns));
	}
}

static uint64_t cpu_ns(const struct usage_recording *c)
{
	return c->map_ns + c->touch_ns + c->write_ns + c->read_ns + c->unmap_ns;
}

static void conclude(const struct usage_result *r, struct report *report)
{
	const struct usage_recording *large = &r->recording[0];
	const struct usage_recording *small = &r->recording[1];
	const struct usage_cell *a = &r->cell[0][USAGE_LOW];
	const struct usage_cell *b = &r->cell[1][USAGE_LOW];
	double saved = MS(large->alloc_ns) - MS(small->alloc_ns);
	double paid = MS(small->iommu_ns) - MS(large->iommu_ns);

	report_conclude(report,
			"In low memory a buffer of 8,0,0 has %" PRIu64
			" scatterlist entries and needs %" PRIu64
			" table writes of an IOMMU with 64 KiB pages, one of "
			"8,4,0 %" PRIu64 " and %" PRIu64 ".",
			b->iommu[1].sg_entries, b->iommu[1].entries,
			a->iommu[1].sg_entries, a->iommu[1].entries);
	report_conclude(report,
			"Over the recording, 8,0,0 %s %.1f ms in allocation "
			"and %s %.1f ms for the device (modelled): the smaller "
			"blocks %s.",
			saved >= 0 ? "saves" : "loses",
			saved >= 0 ? saved : -saved,
			paid >= 0 ? "pays back" : "saves",
			paid >= 0 ? paid : -paid,
			saved > paid ? "win even when their use is counted"
				     : "lose once their use is counted");
	if (large->n_measured && small->n_measured)
		report_conclude(
			report,
			"Measured on the CPU the recording takes %.1f ms with "
			"8,4,0 and %.1f ms with 8,0,0 (backing here: %s).",
			MS(cpu_ns(large)), MS(cpu_ns(small)),
			backing_kind_name(a->times.got));
}

void usage_report(const struct usage_result *result, struct report *report)
{
	report_device(result, report);
	report_cpu(result, report);
	report_recording(result, report);
	conclude(result, report);
}
