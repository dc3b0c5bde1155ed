/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Names: the words for the numbers of protocol.h.
 *
 * Ownership: constant texts; names_composition() fills the caller's buffer.
 * Threads:   without state.
 */

#include <dmaheap/protocol.h>

/* Return: the word, "?" for a number that has none. */
const char *names_source(unsigned int source);
const char *names_backing(unsigned int backing);
const char *names_fallback(unsigned int fallback);
const char *names_state(unsigned int state);

struct names_composition {
	char s[160];
};

/* "8:10 4:0 0:0": blocks by order, as json_composition(). */
const char *names_composition(const uint32_t blocks[DMAHEAP_ORDER_COUNT],
			      struct names_composition *buffer);
