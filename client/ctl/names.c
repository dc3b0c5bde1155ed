/* SPDX-License-Identifier: MIT */
#include "ctl/names.h"

#include <stdio.h>

#include "ctl/ctl.h"

static const char *name(const char *const *names, size_t n, unsigned int i)
{
	return i < n && names[i] ? names[i] : "?";
}

const char *names_source(unsigned int source)
{
	static const char *const names[] = {
		[DMAHEAP_SOURCE_NODE] = "node",
		[DMAHEAP_SOURCE_POOL] = "pool",
		[DMAHEAP_SOURCE_PARKED] = "parked",
		[DMAHEAP_SOURCE_MIXED] = "mixed",
		[DMAHEAP_SOURCE_ADOPTED] = "adopted",
	};

	return name(names, ARRAY_SIZE(names), source);
}

const char *names_backing(unsigned int backing)
{
	static const char *const names[] = {
		[DMAHEAP_BACKING_AUTO] = "auto",
		[DMAHEAP_BACKING_PLAIN] = "plain",
		[DMAHEAP_BACKING_COLLAPSE] = "collapse",
		[DMAHEAP_BACKING_FOLIO] = "folio",
		[DMAHEAP_BACKING_HUGETLB] = "hugetlb",
	};

	return name(names, ARRAY_SIZE(names), backing);
}

const char *names_fallback(unsigned int fallback)
{
	static const char *const names[] = {
		[DMAHEAP_FALLBACK_NONE] = "none",
		[DMAHEAP_FALLBACK_TOO_LARGE] = "too-large",
		[DMAHEAP_FALLBACK_NO_BLOCK] = "no-block",
		[DMAHEAP_FALLBACK_WATERMARK] = "watermark",
		[DMAHEAP_FALLBACK_RECLAIM] = "reclaim-failed",
		[DMAHEAP_FALLBACK_INJECTED] = "injected",
	};

	return name(names, ARRAY_SIZE(names), fallback);
}

const char *names_state(unsigned int state)
{
	static const char *const names[] = {
		[DMAHEAP_BUFFER_LIVE] = "live",
		[DMAHEAP_BUFFER_RELEASED] = "released",
		[DMAHEAP_BUFFER_PARKED] = "parked",
	};

	return name(names, ARRAY_SIZE(names), state);
}

const char *names_composition(const uint32_t blocks[DMAHEAP_ORDER_COUNT],
			      struct names_composition *buffer)
{
	size_t n = 0;

	for (int order = DMAHEAP_ORDER_COUNT - 1; order >= 0; order--) {
		if (blocks[order] == 0 && order != 8 && order != 4 &&
		    order != 0)
			continue;
		n += (size_t)snprintf(buffer->s + n, sizeof(buffer->s) - n,
				      "%s%d:%u", n ? " " : "", order,
				      blocks[order]);
	}
	return buffer->s;
}
