/* SPDX-License-Identifier: MIT */
/*
 * The stress tool: many clients of one daemon allocate buffers of random sizes,
 * check that they are zero, fill them with a pattern, hold them, check the
 * pattern and let go. On a daemon of its own it starts with a node so full that
 * allocations stall and occupants are killed, and afterwards everything must be
 * as it was.
 *
 *   stress [--allocs N] [--clients N] [--seed N] [--socket PATH]
 *
 * With --socket it loads a daemon that runs already, for instance while
 * `dmaheapctl trace record FILE` follows it.
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
#include <unistd.h>

#include <dmaheap/dmaheap.h>
#include <dmaheap/stats.h>

#include "support/daemon.h"

#define CLIENTS_MAX 32u
#define HELD_MAX    12u
#define PAGE_BYTES  4096u
#define MIN_STALLS  100u

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
	unsigned long allocs;
	unsigned long clients;
	unsigned long seed;
} options = {.allocs = 16000, .clients = 16, .seed = 1};

static _Atomic unsigned long n_done, n_refused, n_stalled, n_wrong;

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

static void *client_main(void *arg)
{
	struct client *c = arg;

	for (unsigned int i = 0; i < HELD_MAX; i++)
		c->held[i].fd = -1;
	for (unsigned long i = 0; i < c->n; i++) {
		struct held *h = &c->held[next_random(c) % HELD_MAX];

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
	bool ok = true;

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

/* What has to be the same before and after. */
struct books {
	unsigned int n_fds, n_watches;
	uint64_t buffers, pool_bytes;
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

static void read_books(struct dmaheap *dh, const struct daemon *d,
		       struct books *ret)
{
	if (dmaheap_stats(dh, &stats))
		abort();
	*ret = (struct books){.n_fds = count_fds(d->pid),
			      .n_watches = count_watches(d->pid),
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
	       c->now.n_fds <= c->before.n_fds &&
	       c->now.n_watches <= c->before.n_watches;
}

static bool check_own(struct calm *c)
{
	bool calm = wait_until(is_as_before, c, 10000);
	char *log = daemon_log_text(c->d);
	bool clean = log && !strstr(log, "object-misuse");

	printf("after: buffers %llu, pool bytes %llu, fds %u (before %u), "
	       "watches %u (%u), oom kills %llu, misuses %s\n",
	       (unsigned long long)c->now.buffers,
	       (unsigned long long)c->now.pool_bytes, c->now.n_fds,
	       c->before.n_fds, c->now.n_watches, c->before.n_watches,
	       (unsigned long long)c->now.oom_kills, clean ? "none" : "some");
	free(log);
	return calm && clean && n_stalled >= MIN_STALLS && c->now.oom_kills > 0;
}

static bool run_own(void)
{
	struct daemon d;
	struct calm c = {.d = &d};
	bool ok;

	if (!daemon_start(&d, &(struct daemon_options){.config = config}) ||
	    dmaheap_connect(&c.dh, d.socket)) {
		fprintf(stderr, "the daemon does not start\n");
		return false;
	}
	read_books(c.dh, &d, &c.before);
	ok = load(d.socket);
	ok = check_own(&c) && ok;
	c.dh = dmaheap_close(c.dh);
	return daemon_stop(&d) && ok;
}

static bool parse(int argc, char **argv)
{
	static const struct option longopts[] = {
		{"allocs", required_argument, NULL, 'a'},
		{"clients", required_argument, NULL, 'c'},
		{"seed", required_argument, NULL, 's'},
		{"socket", required_argument, NULL, 'S'},
		{0},
	};
	int opt;

	while ((opt = getopt_long(argc, argv, "", longopts, NULL)) != -1) {
		if (opt == 'a')
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
		fprintf(stderr, "usage: stress [--allocs N] [--clients 1..32] "
				"[--seed N] [--socket PATH]\n");
		return 2;
	}
	ok = options.socket ? load(options.socket) : run_own();
	printf("%lu allocated, %lu refused, %lu stalled, %lu pattern errors\n",
	       n_done, n_refused, n_stalled, n_wrong);
	return ok && n_wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
