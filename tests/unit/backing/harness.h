/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Harness: one backing with its callbacks recorded, and a loop that waits.
 *
 * Units:     *_bytes, *_ms.
 * Ownership: harness_start() to harness_stop(), one at a time.
 * Threads:   the main thread.
 */

#include "backing/backing.h"
#include "support/test.h"

struct harness {
	struct backing *b;
	unsigned int n_created;
	unsigned int n_released;
	unsigned int n_recycled;
	unsigned int n_pressure;
	int r;                    /* of the last done() */
	struct backing_info info; /* of the last done(), without error */
	char error[BACKING_ERROR_BYTES];
	struct backing_buffer *created; /* the last */
	struct backing_buffer *released;
	enum backing_recycled recycled;
	/* What pressure() drops: set to NULL once dropped. */
	struct backing_buffer *spare;
	uint64_t want_bytes;
};

/* The defaults are collapse, recycle, budget auto, 1 worker. */
void harness_params(struct harness *h, struct backing_params *ret);
void harness_start(struct harness *h, const struct backing_params *params);
void harness_stop(struct harness *h);

/* Dispatches until @counter is at least @n; fails the test after 10 s. */
void harness_wait(struct harness *h, const unsigned int *counter,
		  unsigned int n);

/* Dispatches whatever comes within @ms. */
void harness_linger(struct harness *h, unsigned int ms);

/* Until no memory is left and no job, or 10 s have passed. */
void harness_settle(struct harness *h);

/* A buffer of pages of order 0 but for as much of @order as fits. */
int harness_create(struct harness *h, uint64_t bytes, unsigned int order,
		   struct backing_buffer **ret);

/* As @spec says. */
int harness_create_spec(struct harness *h, const struct backing_spec *spec,
			struct backing_buffer **ret);

/* Creates of orders 8 and 0, and waits for done(). Return: the buffer, or NULL
 * and h->r. */
struct backing_buffer *harness_make(struct harness *h, uint64_t bytes);

/* Recycles h->released and waits. */
enum backing_recycled harness_recycle(struct harness *h,
				      struct backing_buffer *bb);

/* Opens, or fails the test. */
int harness_open(struct harness *h, struct backing_buffer *bb, uint32_t flags);

/* Return: true if all bytes of the buffer are zero. */
bool harness_is_zero(int fd, uint64_t bytes);

/* Open descriptors of this process. */
unsigned int harness_n_fds(void);
