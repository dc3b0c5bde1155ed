/* SPDX-License-Identifier: MIT */
#include "backing/workers.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"

/*
 * loop --inbox--> [lock: bulk, small, quiet queues] --step()--> done --> loop
 *
 * inbox and done are stacks that are pushed to and taken whole with one atomic
 * operation. A mutex would not do there: a worker at SCHED_IDLE that loses its
 * CPU while it holds one would keep the loop waiting for as long as the host is
 * busy. The queues' lock is between workers only.
 *
 * The same happens in the middle of a step, which then holds up its buffer. So
 * on a host that is busy ("contended") the bulk threads take no jobs and the
 * rescue does them, a step in each period. A canary tells when that is over: a
 * bulk thread is woken each time and must have run before the next,
 * CANARY_TIMES in a row.
 */

enum role {
	ROLE_BULK,
	ROLE_EXPRESS,
	ROLE_RESCUE,
};

/* What a thread's futex says; anything but AWAKE is waited at. */
enum sleep {
	AWAKE,
	ASLEEP,
	NAPPING, /* looks again by itself: see rest() */
};

enum stopping {
	STOP_NOTHING,
	STOP_RESCUE, /* first: it may put a job back for the others */
	STOP_ALL,
};

struct thread {
	struct workers *workers;
	enum role role;
	struct worker local;
	pthread_t id;
	bool started;
	atomic_uint asleep;          /* a futex: enum sleep */
	const struct job *not_taken; /* workers::done when it last napped */
};

struct workers {
	_Atomic(struct job *) inbox;
	_Atomic(struct job *) done;
	atomic_size_t n_pending; /* submitted, not done */
	atomic_size_t n_small;   /* of them small */
	atomic_uint n_steps;     /* that bulk threads ended; wraps */
	atomic_bool contended;   /* the bulk threads get no time */
	atomic_uint ping;        /* the rescue asks, */
	atomic_uint pong;        /* the canary answers */
	atomic_uint stopping;    /* enum stopping */
	int event_fd;
	atomic_uint_fast64_t n_told;    /* written to event_fd */
	atomic_uint_fast64_t n_cleared; /* read from it, by the loop */
	atomic_uint hurry; /* 0: none; else quiet ends until they are told */

	pthread_mutex_t lock; /* of the queues */
	struct queue bulk;
	struct queue small; /* but for the quiet ones */
	struct queue quiet;
	bool quiet_next; /* for whoever does small jobs */

	unsigned int n_threads;
	struct thread threads[WORKERS_MAX + 2]; /* express, rescue, bulk... */
};

#define EXPRESS      0u
#define RESCUE       1u
#define FIRST_BULK   2u
#define BACKLOG_JOBS 512u /* small jobs that are more than express' work */
#define CANARY       FIRST_BULK
#define CANARY_TIMES 10u
#define RESCUE_NS    NSEC_PER_MSEC
#define PERIOD_NS    (WORKERS_PERIOD_MS * NSEC_PER_MSEC)
#define NAPS         25u /* without work, until express goes to sleep: */
#define SHORT_NAPS   5u  /* the first ones are short */
#define NAP_NS       NSEC_PER_MSEC
#define SHORT_NAP_NS (NSEC_PER_MSEC / 5)

static void push(_Atomic(struct job *) *stack, struct job *job)
{
	struct job *head = atomic_load(stack);

	do {
		job->next = head;
	} while (!atomic_compare_exchange_weak(stack, &head, job));
}

/* Return: the stack's jobs, oldest first. */
static struct job *take(_Atomic(struct job *) *stack)
{
	struct job *job, *next, *oldest = NULL;

	for (job = atomic_exchange(stack, NULL); job; job = next) {
		next = job->next;
		job->next = oldest;
		oldest = job;
	}
	return oldest;
}

/* Waits while @word is @value, at most @timeout (NULL: for ever). */
static void futex_wait(atomic_uint *word, unsigned int value,
		       const struct timespec *timeout)
{
	(void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, timeout, NULL,
		      0);
}

static void futex_wake(atomic_uint *word)
{
	(void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static bool wake(struct thread *t)
{
	if (atomic_load(&t->asleep) == AWAKE ||
	    atomic_exchange(&t->asleep, AWAKE) == AWAKE)
		return false;
	futex_wake(&t->asleep);
	return true;
}

static void wake_one_bulk(struct workers *w)
{
	for (unsigned int i = FIRST_BULK; i < w->n_threads; i++)
		if (wake(&w->threads[i]))
			return;
}

void workers_submit(struct workers *w, struct job *job)
{
	bool small = job->small, quiet = job->quiet;
	size_t n_small = 0;

	atomic_fetch_add(&w->n_pending, 1);
	if (small)
		n_small = atomic_fetch_add(&w->n_small, 1) + 1;
	push(&w->inbox, job);
	if (small && !(quiet && n_small < WORKERS_QUIET_JOBS &&
		       !atomic_load(&w->hurry) &&
		       atomic_load(&w->threads[EXPRESS].asleep) == NAPPING))
		(void)wake(&w->threads[EXPRESS]);
	if ((!small || n_small > BACKLOG_JOBS) && !atomic_load(&w->contended))
		wake_one_bulk(w);
	/* While there is bulk work it looks by itself. */
	if (!small && atomic_load(&w->threads[RESCUE].asleep) == ASLEEP)
		(void)wake(&w->threads[RESCUE]);
}

void workers_hurry(struct workers *w, unsigned int n)
{
	atomic_store(&w->hurry, n);
	if (n)
		(void)wake(&w->threads[EXPRESS]);
}

void workers_clear_event(struct workers *w)
{
	uint64_t n;

	/* Counted before it is written: what can be read is never missed, and
	 * most times there is nothing, at no cost. */
	if (atomic_load(&w->n_told) != atomic_load(&w->n_cleared) &&
	    read(w->event_fd, &n, sizeof(n)) == sizeof(n))
		atomic_fetch_add(&w->n_cleared, n);
}

struct job *workers_take_done(struct workers *w)
{
	if (atomic_load(&w->hurry) && atomic_load(&w->n_pending) == 0)
		atomic_store(&w->hurry, 0);
	return atomic_load(&w->done) ? take(&w->done) : NULL;
}

/* Nothing to do while the loop has not cleared what it was told before: it
 * takes the jobs only after that. */
static void tell(struct workers *w)
{
	static const uint64_t one = 1;
	uint_fast64_t n_told = atomic_load(&w->n_told);

	if (n_told == atomic_load(&w->n_cleared) &&
	    atomic_compare_exchange_strong(&w->n_told, &n_told, n_told + 1))
		(void)!write(w->event_fd, &one, sizeof(one));
}

/* Return: whether the loop need not be told yet. */
static bool counts_down(struct workers *w)
{
	unsigned int n = atomic_load(&w->hurry);

	while (n > 1)
		if (atomic_compare_exchange_weak(&w->hurry, &n, n - 1))
			return true;
	return n == 0;
}

static void finish(struct thread *t, struct job *job)
{
	struct workers *w = t->workers;
	bool later = job->small && job->quiet && t->role == ROLE_EXPRESS &&
		     counts_down(w);

	if (job->small)
		atomic_fetch_sub(&w->n_small, 1);
	atomic_fetch_sub(&w->n_pending, 1);
	push(&w->done, job);
	if (!later)
		tell(w);
}

static struct queue *queue_of(struct workers *w, const struct job *job)
{
	if (!job->small)
		return &w->bulk;
	return job->quiet ? &w->quiet : &w->small;
}

/* Quiet ones and others in turns, while there are both. */
static struct job *next_small(struct workers *w)
{
	struct job *job = queue_pop(w->quiet_next ? &w->quiet : &w->small);

	if (!job)
		return queue_pop(w->quiet_next ? &w->small : &w->quiet);
	w->quiet_next = !w->quiet_next;
	return job;
}

/* Return: the job whose turn it is for this kind of thread, or NULL. */
static struct job *next_job(struct workers *w, enum role role)
{
	struct job *job, *next;

	pthread_mutex_lock(&w->lock);
	for (job = take(&w->inbox); job; job = next) {
		next = job->next;
		queue_push(queue_of(w, job), job);
	}
	job = role == ROLE_EXPRESS ? next_small(w) : queue_pop(&w->bulk);
	if (!job && role == ROLE_BULK)
		job = next_small(w);
	pthread_mutex_unlock(&w->lock);
	return job;
}

static void run_step(struct thread *t, struct job *job)
{
	struct workers *w = t->workers;

	if (job->step(job, &t->local) == JOB_DONE) {
		finish(t, job);
	} else {
		pthread_mutex_lock(&w->lock);
		queue_push_back(queue_of(w, job), job);
		pthread_mutex_unlock(&w->lock);
	}
	if (t->role == ROLE_BULK)
		atomic_fetch_add(&w->n_steps, 1);
}

/* What an express or bulk thread does next, or NULL. */
static struct job *own_job(struct thread *t)
{
	struct workers *w = t->workers;

	if (t->role == ROLE_BULK && atomic_load(&w->contended) &&
	    atomic_load(&w->stopping) != STOP_ALL)
		return NULL;
	return next_job(w, t->role);
}

/* Sleeps unless there is a job now. Return: it, or NULL. */
static struct job *rest(struct thread *t, unsigned int n_naps)
{
	bool is_short = n_naps > NAPS - SHORT_NAPS;
	enum sleep how = n_naps ? NAPPING : ASLEEP;
	const struct timespec nap = {
		.tv_nsec = (long)(is_short ? SHORT_NAP_NS : NAP_NS)};
	struct workers *w = t->workers;
	struct job *job, *done;

	/* Look again: a submit before this saw us awake. */
	atomic_store(&t->asleep, how);
	job = own_job(t);
	if (!job && atomic_load(&w->hurry) && atomic_load(&w->done))
		tell(w); /* fewer than it asked for */
	if (!job && atomic_load(&w->stopping) != STOP_ALL)
		futex_wait(&t->asleep, how, how == NAPPING ? &nap : NULL);
	atomic_store(&t->asleep, AWAKE);
	/* The quiet ones that nobody came for during a whole nap. */
	done = atomic_load(&w->done);
	if (how == NAPPING && !is_short && done && done == t->not_taken)
		tell(w);
	t->not_taken = done;
	return job;
}

/* Express and bulk threads. */
static void work(struct thread *t)
{
	struct workers *w = t->workers;
	unsigned int n_naps = 0;
	struct job *job;

	for (;;) {
		if (t == &w->threads[CANARY])
			atomic_store(&w->pong, atomic_load(&w->ping));
		job = own_job(t);
		if (!job && atomic_load(&w->stopping) == STOP_ALL)
			return;
		if (!job)
			job = rest(t, n_naps);
		if (job) {
			n_naps = t->role == ROLE_EXPRESS ? NAPS : 0;
			run_step(t, job);
		} else if (n_naps) {
			n_naps--;
		}
	}
}

/* Return: how often in a row the canary has sung. */
static unsigned int ask_canary(struct workers *w, unsigned int times)
{
	bool sings = atomic_load(&w->pong) == atomic_load(&w->ping);

	atomic_fetch_add(&w->ping, 1);
	(void)wake(&w->threads[CANARY]);
	return sings ? times + 1 : 0;
}

/* Sleeps while there is no work at all, then for a period. */
static void rescue_wait(struct thread *t)
{
	static const struct timespec period = {.tv_nsec = PERIOD_NS};
	struct workers *w = t->workers;

	atomic_store(&t->asleep, ASLEEP);
	if (atomic_load(&w->n_pending) == 0 && !atomic_load(&w->stopping))
		futex_wait(&t->asleep, ASLEEP, NULL);
	atomic_store(&t->asleep, NAPPING);
	if (!atomic_load(&w->stopping))
		futex_wait(&t->asleep, NAPPING, &period);
	atomic_store(&t->asleep, AWAKE);
}

/* Return: true if bulk work waits and no step of it has ended since. */
static bool is_stuck(struct workers *w, unsigned int *n_before)
{
	unsigned int n_steps = atomic_load(&w->n_steps);
	bool moved = n_steps != *n_before;

	*n_before = n_steps;
	return !moved && atomic_load(&w->n_pending) > atomic_load(&w->n_small);
}

static void wake_all_bulk(struct workers *w)
{
	for (unsigned int i = FIRST_BULK; i < w->n_threads; i++)
		(void)wake(&w->threads[i]);
}

/* A step of large jobs, or several if they are short. */
static void rescue_some(struct thread *t)
{
	uint64_t end_ns = clock_now_ns() + RESCUE_NS;
	struct job *job;

	do {
		job = next_job(t->workers, ROLE_RESCUE);
		if (job)
			run_step(t, job);
	} while (job && clock_now_ns() < end_ns);
}

static void rescue(struct thread *t)
{
	struct workers *w = t->workers;
	unsigned int n_before = 0, n_canary = CANARY_TIMES;
	bool contended = false, stuck;

	while (!atomic_load(&w->stopping)) {
		rescue_wait(t);
		stuck = is_stuck(w, &n_before);
		if (contended)
			rescue_some(t);
		/* Stuck for one period is a suspicion, which asks: a step may
		 * simply be long. */
		if (contended || stuck)
			n_canary = ask_canary(w, n_canary);
		else
			n_canary = CANARY_TIMES;
		contended = contended ? n_canary < CANARY_TIMES
				      : stuck && n_canary == 0;
		if (atomic_exchange(&w->contended, contended) && !contended)
			wake_all_bulk(w);
	}
}

static void *thread_main(void *arg)
{
	static const struct sched_param none = {0};
	struct thread *t = arg;

	/* Neither can fail for lack of rights: both only give way. */
	if (t->role == ROLE_RESCUE)
		(void)setpriority(PRIO_PROCESS, (id_t)gettid(),
				  WORKERS_RESCUE_NICE);
	else if (t->role == ROLE_BULK)
		(void)sched_setscheduler(0, SCHED_IDLE, &none);
	if (t->role == ROLE_RESCUE)
		rescue(t);
	else
		work(t);
	return NULL;
}

static int start_thread(struct workers *w, unsigned int i)
{
	static const char *const names[] = {"dmaheap-bulk", "dmaheap-express",
					    "dmaheap-rescue"};
	struct thread *t = &w->threads[i];
	int r;

	t->workers = w;
	t->role = i == EXPRESS  ? ROLE_EXPRESS
		  : i == RESCUE ? ROLE_RESCUE
				: ROLE_BULK;
	r = window_init(&t->local.window);
	if (r)
		return err_trace(r);
	r = pthread_create(&t->id, NULL, thread_main, t);
	if (r)
		return err_raise(-r);
	t->started = true;
	(void)pthread_setname_np(t->id, names[t->role]);
	return 0;
}

/* The process' signals are for its main thread. */
static int start_threads(struct workers *w)
{
	sigset_t all, old;
	int r = 0;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	for (unsigned int i = 0; i < w->n_threads && !r; i++)
		r = start_thread(w, i);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return r;
}

int workers_new(struct workers **ret, unsigned int n)
{
	struct workers *w;
	int r;

	if (n == 0 || n > WORKERS_MAX)
		return err_raise(-EINVAL);
	w = calloc(1, sizeof(*w));
	if (!w)
		return err_raise(-ENOMEM);
	pthread_mutex_init(&w->lock, NULL);
	queue_init(&w->bulk);
	queue_init(&w->small);
	queue_init(&w->quiet);
	w->n_threads = n + FIRST_BULK;
	w->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = w->event_fd < 0 ? -errno : start_threads(w);
	if (r) {
		workers_stop(w, NULL);
		return err_trace(r);
	}
	*ret = w;
	return 0;
}

static void stop_thread(struct thread *t)
{
	if (t->started) {
		(void)wake(t);
		pthread_join(t->id, NULL);
	}
	t->started = false;
	window_fini(&t->local.window);
}

struct workers *workers_stop(struct workers *w, struct job **ret_done)
{
	if (!w)
		return NULL;
	atomic_store(&w->stopping, STOP_RESCUE);
	stop_thread(&w->threads[RESCUE]);
	atomic_store(&w->stopping, STOP_ALL);
	for (unsigned int i = 0; i < w->n_threads; i++)
		stop_thread(&w->threads[i]);
	if (ret_done)
		*ret_done = take(&w->done);
	queue_fini(&w->bulk);
	queue_fini(&w->small);
	queue_fini(&w->quiet);
	pthread_mutex_destroy(&w->lock);
	fd_close(w->event_fd);
	free(w);
	return NULL;
}

int workers_event_fd(const struct workers *w)
{
	return w->event_fd;
}

size_t workers_n_pending(const struct workers *w)
{
	return atomic_load(&w->n_pending);
}
