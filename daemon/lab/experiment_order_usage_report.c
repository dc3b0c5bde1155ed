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

static const char *const verdicts[] = {
	[USAGE_AS_ASKED] = "yes",
	[USAGE_OTHER] = "no",
	[USAGE_UNKNOWN] = "unknown",
};

/* Blocks or folios by order, as a cell of a table. */
struct cell_text {
	char text[192];
};

/* "10 x 8, 3 x 0" */
static struct cell_text compose(const uint64_t n[POLICY_ORDER_COUNT])
{
	struct cell_text cell = {""};
	size_t len = 0;

	for (unsigned int order = POLICY_ORDER_COUNT; order-- > 0;) {
		size_t room = sizeof(cell.text) - len;
		int k;

		if (!n[order])
			continue;
		k = snprintf(cell.text + len, room, "%s%" PRIu64 " x %u",
			     len ? ", " : "", n[order], order);
		if (k < 0 || (size_t)k >= room)
			break;
		len += (size_t)k;
	}
	return cell;
}

static void widen(const uint32_t from[POLICY_ORDER_COUNT],
		  uint64_t to[POLICY_ORDER_COUNT])
{
	for (unsigned int i = 0; i < POLICY_ORDER_COUNT; i++)
		to[i] = from[i];
}

static struct cell_text
compose_blocks(const uint32_t composition[POLICY_ORDER_COUNT])
{
	uint64_t n[POLICY_ORDER_COUNT];

	widen(composition, n);
	return compose(n);
}

static struct cell_text compose_seen(enum usage_sight sight,
				     const uint64_t n[POLICY_ORDER_COUNT])
{
	struct cell_text cell = {"cannot be seen"};

	if (sight == USAGE_SEEN_ALL)
		return compose(n);
	if (sight == USAGE_SEEN_HUGE)
		(void)snprintf(cell.text, sizeof(cell.text),
			       "%" PRIu64 " x %u, others unseen",
			       n[USAGE_HUGE_ORDER], USAGE_HUGE_ORDER);
	return cell;
}

static struct cell_text compose_folios(const struct usage_folios *f)
{
	uint64_t n[POLICY_ORDER_COUNT];

	widen(f->of_order, n);
	return compose_seen(f->sight, n);
}

/* The blocks seen to be no folios of their own, and why: "160 x 4: reason". */
static struct cell_text compose_missing(const struct usage_cell *c)
{
	const struct usage_folios *f = &c->times.folios;
	uint64_t n[POLICY_ORDER_COUNT] = {0};
	struct cell_text cell = {""}, blocks;

	if (usage_compare(c->composition, f) == USAGE_AS_ASKED)
		return cell;
	for (unsigned int i = 0; i < POLICY_ORDER_COUNT; i++)
		if (f->sight == USAGE_SEEN_ALL &&
		    c->composition[i] > f->of_order[i])
			n[i] = c->composition[i] - f->of_order[i];
	blocks = compose(n);
	(void)snprintf(cell.text, sizeof(cell.text), "%s%s%s", blocks.text,
		       blocks.text[0] && c->times.reason[0] ? ": " : "",
		       c->times.reason);
	return cell;
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
			struct cell_text blocks =
				compose_blocks(c->composition);

			for (unsigned int k = 0; k < USAGE_IOMMUS; k++)
				report_row(report,
					   "%s|%s|%s|%.0f|%.0f|%" PRIu64
					   "|%s|%" PRIu64 "|%.1f|%.1f|%s",
					   usage_policies[i], state_names[s],
					   c->failed ? "failed" : blocks.text,
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
		     "policy|memory|blocks asked|folios got|as asked|backing|"
		     "first touch us|write us|read us|ns per random read|"
		     "unmap us|not given");
	for (unsigned int i = 0; i < USAGE_POLICIES; i++) {
		for (unsigned int s = 0; s < USAGE_STATES; s++) {
			const struct usage_cell *c = &r->cell[i][s];
			const struct usage_times *t = &c->times;

			if (!c->measured)
				continue;
			report_row(report,
				   "%s|%s|%s|%s|%s|%s|%.0f|%.0f|%.0f|%.1f|%.0f|"
				   "%s",
				   usage_policies[i], state_names[s],
				   compose_blocks(c->composition).text,
				   compose_folios(&t->folios).text,
				   verdicts[usage_compare(c->composition,
							  &t->folios)],
				   backing_kind_name(t->got), US(t->touch_ns),
				   US(t->write_ns), US(t->read_ns),
				   (double)t->random_ns / USAGE_RANDOM_READS,
				   US(t->unmap_ns), compose_missing(c).text);
		}
	}
	report_note(report,
		    "Folios got: of each mapping, as /proc/kpageflags has them "
		    "(root) or as the kernel tells of those of order 9.");
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
		     "policy|frames|blocks asked|folios got|frames as asked|"
		     "map ms|first touch ms|write ms|read ms|unmap ms|total "
		     "ms");
	for (unsigned int i = 0; i < USAGE_POLICIES; i++) {
		const struct usage_recording *c = &r->recording[i];

		report_row(report,
			   "%s|%u|%s|%s|%u|%.2f|%.2f|%.2f|%.2f|%.2f|%.2f",
			   usage_policies[i], c->n_measured,
			   compose(c->asked).text,
			   compose_seen(c->sight, c->got).text, c->n_as_asked,
			   MS(c->map_ns), MS(c->touch_ns), MS(c->write_ns),
			   MS(c->read_ns), MS(c->unmap_ns),
			   MS(c->map_ns + c->touch_ns + c->write_ns +
			      c->read_ns + c->unmap_ns));
	}
}

static uint64_t cpu_ns(const struct usage_recording *c)
{
	return c->map_ns + c->touch_ns + c->write_ns + c->read_ns + c->unmap_ns;
}

/* What was measured is worth as much as the memory is what was asked for. */
static void conclude_cpu(const struct usage_result *r, struct report *report)
{
	const struct usage_recording *large = &r->recording[0];
	const struct usage_recording *small = &r->recording[1];
	unsigned int n = large->n_measured + small->n_measured;
	unsigned int n_good = large->n_as_asked + small->n_as_asked;
	enum usage_sight sight = MIN(large->sight, small->sight);

	report_conclude(report,
			"Measured on the CPU the recording takes %.1f ms with "
			"8,4,0 and %.1f ms with 8,0,0 (backing here: %s).",
			MS(cpu_ns(large)), MS(cpu_ns(small)),
			backing_kind_name(r->cell[0][USAGE_LOW].times.got));
	if (n_good == n)
		report_conclude(report,
				"Each of the %u frames measured had the folios "
				"that its policy asked for.",
				n);
	else
		report_conclude(report,
				"Of the %u frames measured %u had the folios "
				"that their policies asked for, the others %s: "
				"these times compare the backing, not the "
				"orders.",
				n, n_good,
				sight == USAGE_SEEN_ALL
					? "had not"
					: "had not or cannot be seen into");
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
		conclude_cpu(r, report);
}

void usage_report(const struct usage_result *result, struct report *report)
{
	report_device(result, report);
	report_cpu(result, report);
	report_recording(result, report);
	conclude(result, report);
}
