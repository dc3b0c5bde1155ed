/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Backing: the real memory of the buffers. One sealed memfd per buffer, filled
 * before anyone sees it, watched until its last reference is gone, then zeroed
 * for its next use or given back to the host.
 *
 * A buffer's life, with the call that moves it on:
 *
 *	backing_create()     workers make and fill the memfd
 *	  done(r == 0)       READY: nobody but the daemon refers to it
 *	backing_open()       LIVE: one more descriptor for a client
 *	  last_reference()   IDLE: no descriptor, mapping or in-flight copy is
 *left backing_recycle()    workers verify and zero it done(PARKABLE) PARKED:
 *backing_open() makes it LIVE again at once backing_drop()       workers free
 *the memory; the pointer is gone
 *
 * Units:     *_bytes, *_ns; order is log2 of pages of page_size_bytes.
 * Ownership: a backing_buffer belongs to the caller from backing_create() until
 *            backing_drop() or backing_cancel(); backing_free() takes the rest.
 * Threads:   every function is for one thread, the loop's, and so are all
 *            callbacks, which run inside backing_dispatch() and
 *            backing_collect() only. That thread never maps, unmaps or touches
 *            buffer memory: the workers do.
 *
 * The program must call backing_process_setup() first: a lease that is broken
 * sends SIGIO, a file size limit SIGXFSZ, and both kill by default.
 */

#include <sys/types.h>

#include "base/base.h"

#define BACKING_ORDER_COUNT     11u /* orders 0..10 */
#define BACKING_RUNS_MAX        16u
#define BACKING_CREATING_MAX    8192u    /* beyond: BACKING_E_BUSY */
#define BACKING_SMALL_BYTES     KIB(256) /* made or zeroed within 50 us */
#define BACKING_HEAP_NAME_BYTES 32u      /* with NUL */
#define BACKING_REASON_BYTES    112u
#define BACKING_ERROR_BYTES     320u

/* The numbers of enum dmaheap_backing in protocol.h. */
enum backing_kind {
	BACKING_AUTO = 0, /* only ever asked for */
	BACKING_PLAIN = 1,
	BACKING_COLLAPSE = 2,
	BACKING_FOLIO = 3,
	BACKING_HUGETLB = 4,
};

/* How the end of a buffer's last reference is learnt. */
enum backing_lifetime {
	BACKING_LIFETIME_EXACT,    /* leases and inotify */
	BACKING_LIFETIME_SWEEP,    /* leases, tested every 20 ms */
	BACKING_LIFETIME_EXPLICIT, /* no leases: the caller has to know */
};

/* Outcomes; the sentence in the error text names limit, value and key. */
enum {
	BACKING_E_OK_,
	BACKING_E_BUDGET, /* budget, host or a memory cgroup has too little */
	BACKING_E_FDS,    /* no free file descriptor */
	BACKING_E_FILE_SIZE, /* RLIMIT_FSIZE is below the size */
	BACKING_E_BUSY,      /* the workers' queue is full, or the uid's part */
	BACKING_E_FOREIGN,   /* adopt: not a buffer of an earlier daemon */
	BACKING_E_KNOWN,     /* adopt: this buffer is here already */
	BACKING_E_BROKEN,    /* reuse: somebody got at it while it was parked */
};

/* What became of a released buffer. */
enum backing_recycled {
	BACKING_PARKABLE, /* zero and exclusively the daemon's */
	/* The rest is already on its way out: the pointer is gone. */
	BACKING_DROPPED_NEVER,  /* recycle = never, or no leases */
	BACKING_DROPPED_PINNED, /* a page is held by something without the file
				 */
	BACKING_DROPPED_HOLES,  /* a client punched holes */
	BACKING_DROPPED_OPEN,   /* somebody opened it again */
	BACKING_DROPPED_ERROR,  /* zeroing failed */
};

struct backing;
struct backing_buffer;

struct backing_ops {
	/**
	 * last_reference() - no descriptor, mapping or in-flight copy is left
	 * @bb: answer with backing_recycle() or backing_drop(), now or later
	 */
	void (*last_reference)(void *ctx, struct backing_buffer *bb);
	/**
	 * pressure() - memory is short: drop parked buffers
	 * @want_bytes: what a waiting buffer lacks; UINT64_MAX: all you can,
	 *              the host itself is stalling for memory
	 *
	 * May be NULL. Drops made here are waited for before the buffer that is
	 * short is tried again, once, and then refused.
	 */
	void (*pressure)(void *ctx, uint64_t want_bytes);
};

struct backing_params {
	enum backing_kind mode;
	bool recycle;               /* recycle = uid; false: never */
	uint64_t budget_bytes;      /* 0: auto */
	unsigned int n_workers;     /* 0: 2; at most 16 */
	bool manage_thp;            /* set the kernel's switches; needs root */
	uint32_t orders;            /* mask of the orders that policies use */
	uint32_t page_size_bytes;   /* of those orders; 0: 4096 */
	const char *thp_state_file; /* where manage_thp notes what to restore */
	const struct backing_ops *ops;
	void *ctx; /* for @ops */
};

/* Equal-order blocks in a row; orders of one buffer do not rise. */
struct backing_run {
	uint32_t order;
	uint32_t n_blocks;
};

struct backing_spec {
	uint64_t len_bytes; /* sum of the runs */
	uid_t uid;
	uint64_t client; /* any number: buffers of one uid are made in turn */
	uint64_t id;
	uint32_t page_size_bytes; /* of the model; a multiple of the host's */
	const char *heap;         /* shorter than BACKING_HEAP_NAME_BYTES */
	const struct backing_run *runs;
	unsigned int n_runs;
};

struct backing_info {
	enum backing_kind got;
	const char *reason; /* why not what was asked, or ""; static */
	const char *error;  /* r != 0: the sentence; valid in done() only */
	uint64_t queue_ns;  /* from backing_create() to a worker's first step */
	uint64_t populate_ns; /* of the workers' time */
};

/* @r: 0, an outcome (BUDGET, FDS, FILE_SIZE), or a negated errno; then @bb is
 * gone. */
typedef void (*backing_created_fn)(void *ctx, int r, struct backing_buffer *bb,
				   const struct backing_info *info);
/* Unless @what is BACKING_PARKABLE @bb is gone. */
typedef void (*backing_recycled_fn)(void *ctx, struct backing_buffer *bb,
				    enum backing_recycled what);

struct backing_stats {
	enum backing_kind mode; /* in force */
	enum backing_lifetime lifetime;
	char reason[BACKING_REASON_BYTES]; /* why not a better one, or "" */
	char lifetime_reason[BACKING_REASON_BYTES]; /* why not exact, or "" */
	uint64_t resident_bytes; /* filled or being filled or freed */
	uint64_t parked_bytes;
	uint64_t n_buffers; /* memfds that exist */
	uint64_t n_parked;
	uint64_t n_queued; /* steps waiting for a worker */
	uint64_t dropped;
	uint64_t dropped_pinned;
	uint64_t dropped_holes;
	uint64_t budget_bytes; /* now: moves when auto */
	uint64_t budget_refusals;
	uint64_t late_releases;   /* found by the sweep, not by an event */
	uint64_t folio_fallbacks; /* kernel gave smaller folios, host-wide count
				   */
};

/**
 * backing_process_setup() - what the whole process has to set, once
 *
 * Ignores SIGIO and SIGXFSZ, raises the soft limit of open files to the hard
 * one, and asks for an oom_score_adj of -500 (refusal is fine).
 */
void backing_process_setup(void);

/**
 * backing_new() - probe the host, start the workers
 * @error: receives the reason of a failure, BACKING_ERROR_BYTES
 *
 * A mode that does not work here is replaced by the next best one and the
 * reason is in backing_stats(). Leases or inotify that do not work change the
 * lifetime likewise.
 *
 * Return: 0, -ENOMEM, -EMFILE, -EAGAIN (no threads), -EINVAL (n_workers), or
 * the errno of memfd_create() and of /proc/self/fd.
 */
int backing_new(struct backing **ret, const struct backing_params *params,
		char error[BACKING_ERROR_BYTES]) _must_check_;

/**
 * backing_free() - stop the workers, free parked and idle memory
 *
 * Finishes pending drops, then closes every buffer without punching: what
 * clients hold stays theirs. No callback is called. Restores the switches that
 * manage_thp set.
 *
 * Return: NULL, always. @b may be NULL.
 */
struct backing *backing_free(struct backing *b);
DEFINE_CLEANUP(struct backing *, backing_free);

/* An fd that polls readable when backing_dispatch() has work; timers included.
 * It stays the backing's. */
int backing_event_fd(const struct backing *b);

/**
 * backing_split_releases() - watch releases apart from the rest
 *
 * From now on backing_event_fd() is silent about descriptors that were closed;
 * the fd returned is readable instead. Who looks at it less eagerly is not
 * woken up by each close of a client that closes many.
 *
 * Return: the fd, the backing's; -1: nothing tells of closes here.
 */
int backing_split_releases(struct backing *b);

/* Runs the callbacks that are due; never blocks. */
void backing_dispatch(struct backing *b);

/*
 * Runs those of the workers alone. What nobody waits for, such as the recycling
 * of a small buffer, makes the fd readable only a moment later: who wants a
 * parked buffer now asks by this first. Cheap when there is nothing.
 */
void backing_collect(struct backing *b);

/* Somebody waits for @n small buffers to be recycled after all (0: not any
 * more): the fd tells when @n are, or there are no more. */
void backing_hurry(struct backing *b, unsigned int n);

/**
 * backing_set_orders() - other orders are in use now (a policy changed)
 *
 * With manage_thp the switches of new orders are set too.
 */
void backing_set_orders(struct backing *b, uint32_t orders);

/**
 * backing_set_limits() - change what a reload may change
 * @budget_bytes: 0: auto
 */
void backing_set_limits(struct backing *b, uint64_t budget_bytes, bool recycle);

/**
 * backing_create() - make a buffer: sealed, filled, zero
 * @spec: copied
 * @ret:  receives the buffer, for backing_cancel() and as done()'s argument
 *
 * done() is called exactly once, unless cancelled, and never from in here.
 *
 * Return: 0, BACKING_E_BUSY, -ENOMEM. Asserts that @spec is consistent.
 */
int backing_create(struct backing *b, const struct backing_spec *spec,
		   backing_created_fn done, void *ctx,
		   struct backing_buffer **ret) _must_check_;

/* Gives up a buffer whose done() was not called yet: it will not be, and the
 * pointer is gone. Workers stop at the end of the chunk in hand. */
void backing_cancel(struct backing *b, struct backing_buffer *bb);

/**
 * backing_open() - a fresh open file description for one client
 * @bb:       READY, LIVE or PARKED
 * @fd_flags: O_RDONLY, O_WRONLY or O_RDWR; O_CLOEXEC is always set here
 * @ret_fd:   receives the descriptor, the caller's to close (after sending it)
 *
 * From now on last_reference() will come, even if @ret_fd is only closed.
 * A parked buffer that somebody opened meanwhile is BACKING_E_BROKEN: drop it.
 *
 * Return: 0, BACKING_E_FDS, BACKING_E_BROKEN, or a negated errno.
 */
int backing_open(struct backing *b, struct backing_buffer *bb,
		 uint32_t fd_flags, int *ret_fd) _must_check_;

/**
 * backing_recycle() - prepare an idle buffer for its next use
 * @bb: IDLE; with BACKING_LIFETIME_EXPLICIT also LIVE, and it is dropped
 *
 * done() is called exactly once, later; it is where parking ends or fails.
 */
void backing_recycle(struct backing *b, struct backing_buffer *bb,
		     backing_recycled_fn done, void *ctx);

/**
 * backing_drop() - free the memory of a buffer that nobody refers to
 * @bb: READY, IDLE, PARKED, or being recycled (its done() will not be called);
 *      also LIVE with BACKING_LIFETIME_EXPLICIT. The pointer is gone.
 *
 * A hole is punched over the whole file first: an O_PATH descriptor somewhere
 * would keep the memory otherwise.
 */
void backing_drop(struct backing *b, struct backing_buffer *bb);

/* What an adopted memfd says of itself. */
struct backing_identity {
	uint64_t id;
	uid_t uid;
	uint64_t size_bytes;
	uint32_t page_size_bytes;
	char heap[BACKING_HEAP_NAME_BYTES];
	uint32_t blocks[BACKING_ORDER_COUNT];
};

/**
 * backing_adopt() - take over a buffer of an earlier daemon
 * @fd:    borrowed; any descriptor of the memfd
 * @ret:   receives the buffer, LIVE; with BACKING_E_KNOWN the one that is here
 * @ret_id: receives what its attribute says
 * @error: receives the sentence of a refusal, BACKING_ERROR_BYTES
 *
 * Believes only what a client of another uid cannot forge: a regular memfd,
 * owned by this process' uid, mode 0600, exactly our seals, our attribute.
 *
 * Return: 0, BACKING_E_FOREIGN, BACKING_E_KNOWN, BACKING_E_FDS, -ENOMEM.
 */
int backing_adopt(struct backing *b, int fd, struct backing_buffer **ret,
		  struct backing_identity *ret_id,
		  char error[BACKING_ERROR_BYTES]) _must_check_;

/* Undoes backing_adopt(): the buffer is its holders' alone again, its content
 * untouched. The pointer is gone. */
void backing_forget(struct backing *b, struct backing_buffer *bb);

/* Return: the buffer whose memfd this is, or NULL. */
struct backing_buffer *backing_find(struct backing *b, dev_t dev, ino_t ino);

/* The caller's pointer, NULL at first. */
void backing_buffer_set_owner(struct backing_buffer *bb, void *owner);
void *backing_buffer_owner(const struct backing_buffer *bb);
enum backing_kind backing_buffer_kind(const struct backing_buffer *bb);
uint64_t backing_buffer_size(const struct backing_buffer *bb);
void backing_buffer_file(const struct backing_buffer *bb, dev_t *ret_dev,
			 ino_t *ret_ino);
/* The daemon's own descriptor; never hand it out. */
int backing_buffer_fd(const struct backing_buffer *bb);

const char *backing_kind_name(enum backing_kind kind);
const char *backing_lifetime_name(enum backing_lifetime lifetime);

/* Cheap: numbers that are kept anyway. */
void backing_get_stats(struct backing *b, struct backing_stats *ret);

/**
 * backing_check() - verify the books (for tests and debug builds)
 *
 * Buffers, parked ones and their bytes are as counted; while no worker is at
 * it the resident bytes are those of the buffers, neither more nor less.
 *
 * Return: true if they agree. O(buffers).
 */
bool backing_check(struct backing *b);
