/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "integration/common.h"

#define N_CLIENTS 32
#define N_SHARED  8
#define ROUNDS    3 /* in CI; DMAHEAP_TEST_ROUNDS sets another number */
#define CONFIG                                                                 \
	"[daemon]\nconfine = kill\n[node]\nsize = 512M\n"                      \
	"[quota]\nconnections = 1000\n"

struct client {
	pid_t pid;
	int to;   /* 's': stop making load and check; 'g': go on; EOF: end */
	int from; /* 'k': all well; another letter: what is not */
};

static int shared[N_SHARED];

static void stamp(int fd, uint64_t len_bytes, uint64_t value)
{
	uint64_t *p = mmap(NULL, len_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			   fd, 0);

	if (p == MAP_FAILED)
		_exit(9);
	for (uint64_t i = 0; i < len_bytes / 8; i += 512)
		p[i] = value + i;
	munmap(p, len_bytes);
}

static bool is_stamped(int fd, uint64_t len_bytes, uint64_t value)
{
	uint64_t *p = mmap(NULL, len_bytes, PROT_READ, MAP_SHARED, fd, 0);
	bool ok = p != MAP_FAILED;

	for (uint64_t i = 0; ok && i < len_bytes / 8; i += 512)
		ok = p[i] == value + i;
	munmap(p, len_bytes);
	return ok;
}

static uint64_t own_len(unsigned int n)
{
	return IT_KIB(4) * (1 + n * 37 % 300);
}

/* Errors are expected while there is no daemon. */
static void make_load(struct dmaheap *dh, unsigned int n)
{
	int fd = dmaheap_alloc(dh, "system", own_len(n * 7 + 1), O_RDWR, 0);

	if (fd >= 0)
		close(fd);
}

static bool wants_check(int fd)
{
	char c;

	return read(fd, &c, 1) >= 0 || errno != EAGAIN;
}

static char check(struct dmaheap *dh, unsigned int n, const int own[2])
{
	struct dmaheap_stats stats;
	int r = -ECONNREFUSED;

	/* Reconnects, and hands over what this process has. */
	for (int i = 0; r && i < 200; i++)
		r = dmaheap_stats(dh, &stats);
	if (r)
		return 'c';
	for (unsigned int i = 0; i < 2; i++)
		if (!is_stamped(own[i], own_len(n + i), n * 100 + i))
			return 'o';
	for (unsigned int i = 0; i < N_SHARED; i++)
		if (!is_stamped(shared[i], IT_MIB(1), i))
			return 's';
	return 'k';
}

static void run_client(unsigned int n, int from_parent, int to_parent)
{
	struct dmaheap *dh;
	int own[2];
	char c;

	if (dmaheap_connect(&dh, it_daemon.socket))
		_exit(1);
	for (unsigned int i = 0; i < 2; i++) {
		own[i] = dmaheap_alloc(dh, "system", own_len(n + i),
				       O_RDWR | O_CLOEXEC, 0);
		if (own[i] < 0)
			_exit(2);
		stamp(own[i], own_len(n + i), n * 100 + i);
	}
	for (;;) {
		c = check(dh, n, own);
		if (write(to_parent, &c, 1) != 1)
			_exit(3);
		fcntl(from_parent, F_SETFL, 0);
		if (read(from_parent, &c, 1) != 1 || c == 'e')
			_exit(0);
		fcntl(from_parent, F_SETFL, O_NONBLOCK);
		while (!wants_check(from_parent))
			make_load(dh, n);
	}
}

static void start_client(struct client *c, unsigned int n)
{
	int to[2], from[2];

	T_REQUIRE(pipe2(to, O_CLOEXEC) == 0 && pipe2(from, O_CLOEXEC) == 0);
	c->pid = it_fork();
	if (c->pid == 0) {
		close(to[1]);
		close(from[0]);
		run_client(n, to[0], from[1]);
	}
	close(to[0]);
	close(from[1]);
	c->to = to[1];
	c->from = from[0];
}

static void tell_all(struct client *clients, char c)
{
	for (int i = 0; i < N_CLIENTS; i++)
		CU_ASSERT_EQUAL(write(clients[i].to, &c, 1), 1);
}

static bool all_well(struct client *clients)
{
	bool well = true;

	for (int i = 0; i < N_CLIENTS; i++) {
		char c = '-';

		if (read(clients[i].from, &c, 1) != 1 || c != 'k') {
			fprintf(stderr, "client %d: '%c'\n", i, c);
			well = false;
		}
	}
	return well;
}

struct books {
	uint64_t buffers, bytes, blocks[DMAHEAP_ORDER_COUNT];
};

static void read_books(struct books *b)
{
	struct dmaheap_buffers_req req = {0};
	static struct {
		struct dmaheap_buffers_reply head;
		struct dmaheap_buffer_record records[256];
	} list;

	memset(b, 0, sizeof(*b));
	do {
		T_REQUIRE(it_call(it_dh, DMAHEAP_OP_BUFFERS, &req, sizeof(req),
				  &list, sizeof(list)) > 0);
		for (uint32_t i = 0; i < list.head.n_records; i++) {
			req.after_id = list.records[i].id;
			if (list.records[i].state != DMAHEAP_BUFFER_LIVE)
				continue;
			b->buffers++;
			b->bytes += list.records[i].size_bytes;
			for (int n = 0; n < 11; n++)
				b->blocks[n] += list.records[i].blocks[n];
		}
	} while (list.head.more);
}

static struct books wanted;

/* Load that the kill has interrupted may take a moment to be gone. */
static bool books_are_right(void *ctx)
{
	struct books now;

	(void)ctx;
	read_books(&now);
	return !memcmp(&now, &wanted, sizeof(now));
}

static void next_daemon(void)
{
	it_options.keep_dir = true;
	daemon_kill(&it_daemon);
	T_REQUIRE(daemon_start(&it_daemon, &it_options));
	it_options.keep_dir = false;
}

static void no_client_loses_anything_when_the_daemon_is_killed(void)
{
	const char *text = getenv("DMAHEAP_TEST_ROUNDS");
	unsigned int rounds =
		text ? (unsigned int)strtoul(text, NULL, 10) : ROUNDS;
	struct client clients[N_CLIENTS];

	for (unsigned int i = 0; i < N_SHARED; i++) {
		shared[i] = it_alloc("system", IT_MIB(1), NULL);
		T_REQUIRE(shared[i] >= 0);
		stamp(shared[i], IT_MIB(1), i);
	}
	for (unsigned int i = 0; i < N_CLIENTS; i++)
		start_client(&clients[i], i);
	CU_ASSERT_TRUE(all_well(clients));
	read_books(&wanted);
	CU_ASSERT_EQUAL(wanted.buffers, 2 * N_CLIENTS + N_SHARED);
	for (unsigned int r = 0; r < rounds; r++) {
		const struct timespec load_for = {.tv_nsec = 5000000};

		tell_all(clients, 'g');
		nanosleep(&load_for, NULL);
		next_daemon();
		tell_all(clients, 's');
		CU_ASSERT_TRUE(all_well(clients));
		if (!wait_until(books_are_right, NULL, 5000)) {
			struct books now;

			read_books(&now);
			CU_FAIL("the books are not right");
			fprintf(stderr, "buffers %llu of %llu\n",
				(unsigned long long)now.buffers,
				(unsigned long long)wanted.buffers);
		}
	}
	tell_all(clients, 'e');
	for (unsigned int i = 0; i < N_CLIENTS; i++) {
		int status;

		close(clients[i].to);
		close(clients[i].from);
		waitpid(clients[i].pid, &status, 0);
		CU_ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
	for (unsigned int i = 0; i < N_SHARED; i++)
		close(shared[i]);
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"no client loses anything when the daemon is killed",
		 no_client_loses_anything_when_the_daemon_is_killed},
		CU_TEST_INFO_NULL,
	};

	signal(SIGPIPE, SIG_IGN);
	it_options.config = CONFIG;
	return it_main(argc, argv, tests);
}
