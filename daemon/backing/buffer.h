/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Buffer: what backing.c, make.c and reuse.c share of one buffer and of the
 * backing. Private to this folder.
 *
 * Units:     *_bytes, *_ns.
 * Ownership: see backing.h. While a job of the buffer is with the workers only
 *            they touch it, except cancelled, owner, done and ctx.
 * Threads:   the loop's, but for the steps, which say so.
 */

#include <stdatomic.h>

#include "backing/backing.h"
#include "backing/budget.h"
#include "backing/lifetime.h"
#include "backing/workers.h"

enum buffer_state {
	BUFFER_CREATING,
	BUFFER_READY,
	BUFFER_LIVE,
	BUFFER_IDLE,
	BUFFER_RECYCLING,
	BUFFER_PARKED,
	BUFFER_DROPPING,
};

/* How many buffers of one uid are being made; freed with the last. */
struct creator {
	struct list_node link; /* backing::creators */
	uid_t uid;
	uint64_t n_creating;
};

/* Needed only until the buffer is made. */
struct making {
	struct creator *creator;
	struct backing_spec spec;
	char heap[BACKING_HEAP_NAME_BYTES];
	backing_created_fn done; /* NULL: cancelled */
	void *ctx;
	struct list_node link; /* backing::creating or backing::waiting */
	struct backing_buffer *bb;
	uint64_t submitted_ns;
	uint64_t fallbacks_before; /* BACKING_FOLIO: the host's counters */
	uint64_t queue_ns;
	uint64_t populate_ns;
	const char *reason;
	bool started;
	bool reserved;
	bool any_huge;   /* a 2 MiB folio at least */
	bool no_hugetlb; /* tried, and the pages were gone */
	bool pressed;    /* pressure() was called for it */
	bool waits;      /* in backing::waiting */
	uint8_t n_waits;
	int wd;
	int r;
	char *error; /* r != 0: the sentence, or NULL for lack of memory */
	struct backing_run runs[]; /* spec.n_runs */
};

struct backing_buffer {
	struct job job;
	struct watched watched; /* its due_link also in backing::released */
	struct backing *backing;
	struct backing_buffer *next; /* backing::by_ino */
	void *owner;
	union {
		struct making *making;            /* while CREATING */
		struct {                          /* while RECYCLING */
			backing_recycled_fn done; /* NULL: none wanted */
			void *ctx;
		};
	};
	uint64_t size_bytes;
	uint64_t done_bytes; /* of the job in hand */
	dev_t dev;
	ino_t ino;
	uint8_t state;    /* enum buffer_state */
	uint8_t kind;     /* enum backing_kind */
	uint8_t recycled; /* enum backing_recycled: the job's result */
	bool zeroed;      /* the job has zeroed all, collapse follows */
	bool lesser;      /* a part is not of 2 MiB folios and could be */
	bool probe;       /* being dropped: look for pages that are held */
	bool pinned;      /* there was one */
	atomic_bool cancelled;
};

#define BACKING_HASH_SIZE 4096u /* a power of two */

struct backing {
	struct backing_ops ops;
	void *ctx;
	/* Set before the workers start. */
	struct budget *budget;
	struct lifetime *lifetime;
	enum backing_kind mode;     /* asked for */
	enum backing_kind in_force; /* not AUTO */
	bool collapse_works;
	uint32_t page_size_bytes; /* of the model's orders */
	char reason[BACKING_REASON_BYTES];
	atomic_bool recycle; /* read by steps */

	struct workers *workers;
	struct thp *thp;           /* NULL: manage_thp = no */
	struct pressure *pressure; /* NULL: no PSI here */
	struct backing_buffer *by_ino[BACKING_HASH_SIZE];
	struct list_node released; /* last_reference() is due */
	struct list_node creating; /* with the workers */
	struct list_node waiting;  /* short of memory, drops are under way */
	struct list_node creators;
	uint64_t n_creating;
	uint64_t n_dropping;
	int epoll_fd;
	int fd_directory; /* memfd_open_directory() */
	int timer_fd;
	uint64_t armed_ns; /* of the timer; UINT64_MAX: not armed */

	/* Counters of backing_get_stats(). */
	uint64_t n_buffers;
	uint64_t n_parked;
	uint64_t parked_bytes;
	uint64_t dropped;
	uint64_t dropped_pinned;
	uint64_t dropped_holes;
	uint64_t late_releases;
	atomic_uint_fast64_t folio_fallbacks;
};

/* Return: NULL for lack of memory. */
struct backing_buffer *backing_buffer_new(struct backing *b, uint64_t bytes,
					  uid_t uid, uint64_t client);

/* Closes the daemon's descriptor too. */
void backing_buffer_free(struct backing_buffer *bb);

/* Into and out of the tables; @wd is from lifetime_watch(). */
void buffer_enter(struct backing *b, struct backing_buffer *bb, int wd);
void buffer_leave(struct backing *b, struct backing_buffer *bb);

/* What the end of a buffer's job means, by the state that it was in. */
void buffer_created(struct backing *b, struct backing_buffer *bb);
void buffer_recycled(struct backing *b, struct backing_buffer *bb);
void buffer_dropped(struct backing *b, struct backing_buffer *bb);

/* Keeps a copy of the sentence, if memory allows; from a step. */
void making_set_error(struct making *m, const char *error);
/* Ends the making, not the buffer. */
void create_end(struct backing *b, struct backing_buffer *bb);
/* Memory was given back: buffers that wait for some try again. */
void create_retry_waiting(struct backing *b);

/* A client may hold it from now on. */
void buffer_arm(struct backing *b, struct backing_buffer *bb);

/* Sets the timer to what is due next, if that has changed. */
void dispatch_arm_timer(struct backing *b, uint64_t now_ns);

/* Steps, on a worker. */
enum job_result make_step(struct job *job, struct worker *worker);
enum job_result recycle_step(struct job *job, struct worker *worker);
enum job_result drop_step(struct job *job, struct worker *worker);
