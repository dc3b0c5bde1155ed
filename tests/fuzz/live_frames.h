/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Frames for a live daemon: valid requests, ones that are mutated past their
 * header, ones with a mutated header, and garbage.
 *
 * Ownership: plain structs.
 * Threads:   no state but the caller's random numbers.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"

#define FRAME_MAX_BYTES 1024u

struct frame {
	uint8_t bytes[FRAME_MAX_BYTES];
	size_t n_bytes;
	unsigned int n_fds; /* to be sent along */
};

enum frame_kind {
	FRAME_VALID,
	FRAME_PAYLOAD, /* a valid one, mutated past the header */
	FRAME_HEADER,
	FRAME_GARBAGE,
	FRAME_KINDS,
};

/* Fills @frame with what must come first. */
void frame_hello(struct frame *frame);

/* Return: which kind it became; about two in three are FRAME_PAYLOAD. */
enum frame_kind frame_make(struct frame *frame, struct rng *rng,
			   bool with_admin);
