/* SPDX-License-Identifier: MIT */
/*
 * The stress tool: many clients of one daemon allocate buffers of random sizes,
 * check that they are zero, fill them with a pattern, hold them, check the
 * pattern and let go, or hand them to a forked process that does. On a daemon
 * of its own it starts with a node so full that allocations stall and occupants
 * are killed, an administrator puts pressure and injected failures on and off
 * meanwhile, and afterwards everything must be as it was.
 *
 *   stress [--seconds N | --allocs N] [--clients N] [--seed N] [--socket PATH]
 *
 * It goes on for a minute, for so many seconds, or until so many allocations
 * were tried. With --socket it loads a daemon that runs already, for instance
 * while `dmaheapctl trace record FILE` follows it.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <dmaheap/dmaheap.h>
#include <dmaheap/stats.h>

#include "support/daemon.h"
#include "support/raw.h"

#define CLIENTS_MAX 32u
#define HELD_MAX    12u
#define PAGE_BYTES  4096u
#define MIN_STALLS  100u
#define MIN_ALLOCS  10000u /* in a minute */
#define PASS_ONE_IN 64u
#define TURN_MS     200u /* with pressure, and without */

/* Anonymous memory without swap: what reclaim cannot get, the killer must. */
static const char config[] = "[daemon]\n"
			     "latency = native\n"
			     "debug_objects = on\n"
			     "[node]\n"
			     "size = 256M\n"
			     "occupants = kernel:10% file:20% anon:50%\n"
			     "swap = zram\n"
			     "swap_size = 64M\n"
			     "[heap system]\n"
			     "policy = 840-mid\n"
			     "pool.limit = 8M\n"
			     "[quota]\n"
			     "bytes = 100%\n";

static struct options {
	const char *socket;
	unsigned long seconds;
	unsigned long allocs; /* 0: by time */
	unsigned long clients;
	unsigned long seed;
} options = {.seconds = 60, .clients = 16, .seed = 1};

static _Atomic unsigned long n_done, n_refused, n_stalled, n_passed, n_wrong;
static time_t end_s; /* CLOCK_MONOTONIC */

struct held {
	int fd;
	size_t len;
	uint64_t id;
};

struct client {
	pthread_t thread;
	unsigned long n;
	uint64_t random;
	struct dmaheap *dh;
	struct held held[HELD_MAX];
};

/* xorshift64 */
static uint64_t next_random(struct client *c)
{
	c->random ^= c->random << 13;
	c->random ^= c->random >> 7;
	c->random ^= c->random << 17;
	return c->random;
}

/* From one page to 8 MiB, each power of two as likely. */
static size_t next_size(struct client *c)
{
	size_t top = (size_t)PAGE_BYTES << next_random(c) % 11;

	return top + next_random(c) % top;
}

/* Walks the first word of each page: zero turns into the pattern, or the
 * pattern is found again. Return: how many words are wrong. */
static unsigned long walk(const struct held *h, bool write)
{
	unsigned long wrong = 0;
	char *p = mmap(NULL, h->len, PROT_READ | PROT_WRITE, MAP_SHARED, h->fd,
		       0);

	if (p == MAP_FAILED)
		return 1;
	for (size_t i = 0; i < h->len; i += PAGE_BYTES) {
		uint64_t *word = (uint64_t *)(void *)(p + i);
		uint64_t pattern = h->id << 24 ^ (i / PAGE_BYTES) ^ 0x5aa5;

		wrong += *word != (write ? 0 : pattern);
		if (write)
			*word = pattern;
	}
	munmap(p, h->len);
	return wrong;
}

static void let_go(struct held *h)
{
	if (h->fd < 0)
		return;
	n_wrong += walk(h, false);
	close(h->fd);
	h->fd = -1;
}

/* ---- to another process ---- */

/* The forked one: what it inherited and what it is sent must be the buffer. */
_Noreturn static void check_passed(int sock, struct held *h)
{
	unsigned long wrong = walk(h, false);

	close(h->fd);
	h->fd = raw_receive_fd(sock);
	_exit(h->fd < 0 || wrong || walk(h, false) ? EXIT_FAILURE
						   : EXIT_SUCCESS);
}

/* Its last reference goes in another process. */
static void pass_on(struct held *h)
{
	int socks[2], status = -1;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks) < 0)
		abort();
	pid = fork();
	if (pid < 0)
		abort();
	if (pid == 0) {
		/* Else it would wait for itself. */
		close(socks[0]);
		check_passed(socks[1], h);
	}
	close(socks[1]);
	n_wrong += raw_send(socks[0], "", 1, &h->fd, 1) != 0;
	close(socks[0]);
	close(h->fd);
	h->fd = -1;
	n_wrong += waitpid(pid, &status, 0) != pid || status != 0;
	n_passed++;
}

/* ---- clients ---- */

static void allocate(struct client *c, struct held *h)
{
	struct dmaheap_alloc_report report;
	size_t len = next_size(c);
	int r = dmaheap_alloc_ex(c->dh, NULL, len, O_RDWR | O_CLOEXEC, 0, 1,
				 &h->fd, &report, NULL, 0);

	if (r < 0) {
		h->fd = -1;
		n_refused++;
		if (r != -ENOMEM && r != -EDQUOT) {
			fprintf(stderr, "allocation: %s\n", strerror(-r));
			n_wrong++;
		}
		return;
	}
	h->len = report.size_bytes;
	h->id = report.id;
	n_done++;
	n_stalled += report.modelled_stall_ns > 0;
	n_wrong += walk(h, true);
}

static bool goes_on(const struct client *c, unsigned long i)
{
	struct timespec now;

	if (options.allocs)
		return i < c->n;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec < end_s;
}

static void *client_main(void *arg)
{
	struct client *c = arg;

	for (unsigned int i = 0; i < HELD_MAX; i++)
		c->held[i].fd = -1;
	for (unsigned long i = 0; goes_on(c, i); i++) {
		struct held *h = &c->held[next_random(c) % HELD_MAX];

		if (h->fd >= 0 && next_random(c) % PASS_ONE_IN == 0)
			pass_on(h);
		let_go(h);
		allocate(c, h);
	}
	for (unsigned int i = 0; i < HELD_MAX; i++)
		let_go(&c->held[i]);
	return NULL;
}

static bool load(const char *socket)
{
	static struct client clients[CLIENTS_MAX];
	struct timespec now;
	bool ok = true;

	clock_gettime(CLOCK_MONOTONIC, &now);
	end_s = now.tv_sec + (time_t)options.seconds;

	for (unsigned int i = 0; i < options.clients; i++) {
		struct client *c = &clients[i];
		int r = dmaheap_connect(&c->dh, socket);

		c->n = options.allocs / options.clients;
		c->random = (options.seed + i + 1) * 0x9e3779b97f4a7c15u;
		if (r == 0)
			r = -pthread_create(&c->thread, NULL, client_main, c);
		if (r) {
			fprintf(stderr, "client: %s\n", strerror(-r));
			options.clients = i;
			ok = false;
		}
	}
	for (unsigned int i = 0; i < options.clients; i++) {
		pthread_join(clients[i].thread, NULL);
		clients[i].dh = dmaheap_close(clients[i].dh);
	}
	return ok;
}

/* ---- the administrator ---- */

struct administrator {
	pthread_t thread;
	struct dmaheap *dh;
	atomic_bool stop;
	unsigned long n_turns;
};

static void call(struct administrator *a, uint16_t opcode, const void *req,
		 size_t n_bytes)
{
	struct dmaheap_message msg = {.opcode = opcode,
				      .payload = req,
				      .payload_bytes = n_bytes};
	int r = dmaheap_call(a->dh, &msg);

	if (r) {
		fprintf(stderr, "administrator: opcode %u: %s\n", opcode,
			strerror(-r));
		n_wrong++;
	}
}

static void press(struct administrator *a, uint32_t kind)
{
	const struct dmaheap_pressure_req req = {.kind = kind};

	call(a, DMAHEAP_OP_PRESSURE, &req, sizeof(req));
}

static void inject(struct administrator *a, uint32_t fail_rate_ppm,
		   uint32_t stall_ms)
{
	const struct dmaheap_inject_req req = {
		.flags = fail_rate_ppm || stall_ms ? 0 : DMAHEAP_INJECT_CLEAR,
		.uid = DMAHEAP_INJECT_ANY_ID,
		.pid = DMAHEAP_INJECT_ANY_ID,
		.fail_rate_ppm = fail_rate_ppm,
		.stall_ms = stall_ms,
	};

	call(a, DMAHEAP_OP_INJECT, &req, sizeof(req));
}

/* Pressure and failures, then neither; every other time stalls as well. */
static void *administrator_main(void *arg)
{
	const struct timespec turn = {.tv_nsec = TURN_MS * 1000000l};
	struct administrator *a = arg;

	while (!a->stop) {
		press(a, DMAHEAP_PRESSURE_LOW_MEMORY);
		inject(a, 20000, 0);
		if (a->n_turns % 2)
			inject(a, 0, 5);
		nanosleep(&turn, NULL);
		inject(a, 0, 0);
		press(a, DMAHEAP_PRESSURE_RELEASE);
		nanosleep(&turn, NULL);
		a->n_turns++;
	}
	return NULL;
}

static bool load_under_pressure(struct administrator *a, const char *socket)
{
	bool ok;

	if (dmaheap_connect(&a->dh, socket) ||
	    pthread_create(&a->thread, NULL, administrator_main, a))
		return false;
	ok = load(socket);
	a->stop = true;
	pthread_join(a->thread, NULL);
	a->dh = dmaheap_close(a->dh);
	return ok;
}

/* ---- what has to be the same before and after ---- */

struct books {
	unsigned int n_fds, n_watches;
	uint64_t buffers, pool_bytes, metadata_pages;
	uint64_t oom_kills;
};

static struct dmaheap_stats stats;

static uint64_t vmstat(const char *name)
{
	for (uint64_t i = 0; i < stats.vmstat.n_items; i++)
		if (!strcmp(stats.vmstat.item[i].name, name))
			return stats.vmstat.item[i].value;
	return 0;
}

/* Of the node's text, which has more than the statistics. */
static uint64_t metadata_pages(struct dmaheap *dh)
{
	const struct dmaheap_node_req req = {.text = DMAHEAP_NODE_VMSTAT};
	struct {
		struct dmaheap_text_reply head;
		char text[DMAHEAP_MESSAGE_MAX_BYTES];
	} reply = {0};
	struct dmaheap_message msg = {.opcode = DMAHEAP_OP_NODE,
				      .payload = &req,
				      .payload_bytes = sizeof(req),
				      .reply = &reply,
				      .reply_capacity_bytes =
					      sizeof(reply) - 1};
	unsigned long long n;
	const char *line;

	if (dmaheap_call(dh, &msg))
		abort();
	line = strstr(reply.text, "model_metadata_pages ");
	if (!line || sscanf(line, "%*s %llu", &n) != 1)
		abort();
	return n;
}

static void read_books(struct dmaheap *dh, const struct daemon *d,
		       struct books *ret)
{
	if (dmaheap_stats(dh, &stats))
		abort();
	*ret = (struct books){.n_fds = count_fds(d->pid),
			      .n_watches = count_watches(d->pid),
			      .metadata_pages = metadata_pages(dh),
			      .oom_kills = vmstat("oom_kill")};
	for (uint32_t h = 0; h < stats.n_heaps; h++) {
		ret->buffers += stats.heap[h].buffers;
		for (uint32_t p = 0; p < stats.heap[h].n_pools; p++)
			ret->pool_bytes += stats.heap[h].pool[p].bytes;
	}
}

struct calm {
	struct dmaheap *dh;
	const struct daemon *d;
	struct books before, now;
};

/* Empties the pools; the workers may still be dropping memfds. */
static bool is_as_before(void *ctx)
{
	struct calm *c = ctx;
	struct dmaheap_shrink_req req = {0};
	struct dmaheap_message msg = {.opcode = DMAHEAP_OP_SHRINK,
				      .payload = &req,
				      .payload_bytes = sizeof(req)};

	if (dmaheap_call(c->dh, &msg))
		return false;
	read_books(c->dh, c->d, &c->now);
	return c->now.buffers == 0 && c->now.pool_bytes == 0 &&
	       c->now.metadata_pages == 0 && c->now.n_fds <= c->before.n_fds &&
	       c->now.n_watches <= c->before.n_watches;
}

static bool check_own(struct calm *c)
{
	bool calm = wait_until(is_as_before, c, 10000);
	char *log = daemon_log_text(c->d);
	bool clean = log && !strstr(log, "object-misuse");

	printf("after: buffers %llu, pool bytes %llu, metadata pages %llu, "
	       "fds %u (before %u), watches %u (%u), oom kills %llu, "
	       "misuses %s\n",
	       (unsigned long long)c->now.buffers,
	       (unsigned long long)c->now.pool_bytes,
	       (unsigned long long)c->now.metadata_pages, c->now.n_fds,
	       c->before.n_fds, c->now.n_watches, c->before.n_watches,
	       (unsigned long long)c->now.oom_kills, clean ? "none" : "some");
	free(log);
	return calm && clean && n_stalled >= MIN_STALLS &&
	       c->now.oom_kills > 0 && n_passed > 0 &&
	       (options.seconds < 60 || options.allocs || n_done >= MIN_ALLOCS);
}

static bool run_own(void)
{
	struct daemon d;
	struct administrator a = {0};
	struct calm c = {.d = &d};
	bool ok;

	if (!daemon_start(&d, &(struct daemon_options){.config = config}) ||
	    dmaheap_connect(&c.dh, d.socket)) {
		fprintf(stderr, "the daemon does not start\n");
		return false;
	}
	read_books(c.dh, &d, &c.before);
	ok = load_under_pressure(&a, d.socket);
	printf("pressure and injection %lu times on and off\n", a.n_turns);
	ok = check_own(&c) && ok;
	c.dh = dmaheap_close(c.dh);
	return daemon_stop(&d) && ok;
}

static bool parse(int argc, char **argv)
{
	static const struct option longopts[] = {
		{"seconds", required_argument, NULL, 't'},
		{"allocs", required_argument, NULL, 'a'},
		{"clients", required_argument, NULL, 'c'},
		{"seed", required_argument, NULL, 's'},
		{"socket", required_argument, NULL, 'S'},
		{0},
	};
	int opt;

	while ((opt = getopt_long(argc, argv, "", longopts, NULL)) != -1) {
		if (opt == 't')
			options.seconds = strtoul(optarg, NULL, 10);
		else if (opt == 'a')
			options.allocs = strtoul(optarg, NULL, 10);
		else if (opt == 'c')
			options.clients = strtoul(optarg, NULL, 10);
		else if (opt == 's')
			options.seed = strtoul(optarg, NULL, 10);
		else if (opt == 'S')
			options.socket = optarg;
		else
			return false;
	}
	return optind == argc && options.clients > 0 &&
	       options.clients <= CLIENTS_MAX;
}

int main(int argc, char **argv)
{
	bool ok;

	if (!parse(argc, argv)) {
		fprintf(stderr, "usage: stress [--seconds N | --allocs N] "
				"[--clients 1..32] [--seed N] "
				"[--socket PATH]\n");
		return 2;
	}
	ok = options.socket ? load(options.socket) : run_own();
	printf("%lu allocated, %lu refused, %lu stalled, %lu passed on, "
	       "%lu errors\n",
	       n_done, n_refused, n_stalled, n_passed, n_wrong);
	return ok && n_wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
