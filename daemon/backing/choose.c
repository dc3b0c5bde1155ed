/* SPDX-License-Identifier: MIT */
#include "backing/choose.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "backing/hugetlb.h"
#include "backing/selftest.h"
#include "backing/thp.h"

/* Model orders of @page_bytes as orders of 4 KiB pages that folios can have. */
static uint32_t folio_orders(uint32_t orders, uint32_t page_bytes)
{
	uint32_t mask = 0;

	for (unsigned int i = 0; i < BACKING_ORDER_COUNT; i++) {
		unsigned int order = i;

		if (!(orders & (1u << i)))
			continue;
		for (uint64_t b = page_bytes; b > KIB(4); b /= 2)
			order++;
		mask |= 1u << MIN(order, THP_ORDER_MAX);
	}
	return mask & ~1u; /* order 0 needs nothing */
}

static void manage_thp(struct backing *b, const struct backing_params *params,
		       uint32_t wanted, char reason[BACKING_REASON_BYTES])
{
	if (geteuid() != 0) {
		snprintf(reason, BACKING_REASON_BYTES,
			 "folio: manage_thp = yes needs root");
		return;
	}
	if (!b->thp && thp_new(&b->thp, params->thp_state_file, reason))
		b->thp = NULL;
	if (b->thp)
		(void)thp_enable(b->thp, wanted);
}

/* Return: true if every order that is wanted comes as a folio. */
static bool folio_works(struct backing *b, const struct backing_params *params,
			char reason[BACKING_REASON_BYTES])
{
	uint32_t wanted = folio_orders(params->orders, b->page_size_bytes);
	uint32_t lacking;

	reason[0] = '\0';
	if (params->manage_thp)
		manage_thp(b, params, wanted, reason);
	lacking = wanted & ~thp_enabled_orders();
	if (!lacking)
		return selftest_folio(wanted, reason);
	if (reason[0])
		return false;
	if (lacking & ~thp_known_orders())
		snprintf(reason, BACKING_REASON_BYTES,
			 "folio: this kernel has no per-size switches (since "
			 "Linux 6.11)");
	else
		snprintf(reason, BACKING_REASON_BYTES,
			 "folio: hugepages-%" PRIu64
			 "kB/shmem_enabled is off; see manage_thp",
			 thp_bytes((unsigned int)__builtin_ctz(lacking)) /
				 1024);
	return false;
}

static void collapse_or_plain(struct backing *b,
			      const struct backing_params *params)
{
	char why[SELFTEST_REASON_BYTES], managed[BACKING_REASON_BYTES];

	b->collapse_works = selftest_collapse(why);
	if (!b->collapse_works && params->manage_thp) {
		manage_thp(b, params, 1u << THP_ORDER_MAX, managed);
		b->collapse_works = selftest_collapse(why);
	}
	b->in_force = b->collapse_works ? BACKING_COLLAPSE : BACKING_PLAIN;
	if (!b->collapse_works && !b->reason[0])
		snprintf(b->reason, sizeof(b->reason), "%s", why);
}

void choose_backing(struct backing *b, const struct backing_params *params)
{
	b->mode = params->mode;
	b->page_size_bytes =
		params->page_size_bytes ? params->page_size_bytes : KIB(4);
	b->reason[0] = '\0';
	switch (params->mode) {
	case BACKING_PLAIN:
		b->in_force = BACKING_PLAIN;
		break;
	case BACKING_HUGETLB:
		collapse_or_plain(b, params);
		if (hugetlb_n_pages() > 0)
			b->in_force = BACKING_HUGETLB;
		else
			snprintf(b->reason, sizeof(b->reason),
				 "hugetlb: no reserved pages (sysctl "
				 "vm.nr_hugepages)");
		break;
	case BACKING_AUTO:
	case BACKING_FOLIO:
		if (folio_works(b, params, b->reason))
			b->in_force = BACKING_FOLIO;
		else
			collapse_or_plain(b, params);
		break;
	case BACKING_COLLAPSE:
		collapse_or_plain(b, params);
		break;
	}
}

void choose_more_orders(struct backing *b, uint32_t orders)
{
	if (b->thp)
		(void)thp_enable(b->thp,
				 folio_orders(orders, b->page_size_bytes));
}
