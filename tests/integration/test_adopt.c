/* SPDX-License-Identifier: MIT */
/*
 * The daemon is killed again and again while clients allocate; each new one
 * must be handed every buffer that lives, once, with its size and composition,
 * and no client may lose a byte. DMAHEAP_ROUNDS says how often (3).
 *
 * Clients are processes. Each holds private buffers and one that it shares with
 * its neighbour, allocates and frees others all the time, and looks after the
 * patterns in those that it holds. What they hold stands in shared memory,
 * which the parent compares with the daemon's list while they pause.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "integration/common.h"
#include "support/raw.h"

#define N_CLIENTS 32
#define N_HELD    4 /* the last one is shared with the neighbour */
#define BYTES_MAX IT_MIB(1)

struct held {
	uint64_t ino;
	uint64_t size_bytes;
	uint32_t blocks[DMAHEAP_ORDER_COUNT];
};

/* What parent and clients say to each other. */
struct board {
	atomic_uint pause; /* even: run; odd: be quiet, and say so */
	atomic_bool stop;
	struct {
		atomic_uint quiet; /* the value of @pause that it obeys */
		atomic_uint n_allocs;
		atomic_int error; /* line of the first thing that went wrong */
		struct held held[N_HELD];
	} client[N_CLIENTS];
};

static struct board *board;
static int pairs[N_CLIENTS / 2][2];
static pid_t pids[N_CLIENTS];

/* A client's own state. */
static struct dmaheap *dh;
static unsigned int me;
static int fds[N_HELD], neighbours_fd = -1;
static uint64_t *maps[N_HELD];
static uint32_t lot;

#define FAIL_IF(cond)                                                          \
	do {                                                                   \
		if (cond) {                                                    \
			int none_ = 0;                                         \
			atomic_compare_exchange_strong(&board->client[me]      \
								.error,        \
						       &none_, __LINE__);      \
			fprintf(stderr, "client %u: " #cond ": %s\n", me,      \
				strerror(errno));                              \
			_exit(1);                                              \
		}                                                              \
	} while (0)

static uint32_t draw(uint32_t below)
{
	lot = lot * 1664525u + 1013904223u;
	return (lot >> 8) % below;
}

/* A word that no other place of any buffer holds. */
static uint64_t pattern(const struct held *held, size_t word)
{
	return held->ino * 0x9e3779b97f4a7c15u + word;
}

static void fill(uint64_t *map, const struct held *held)
{
	for (size_t w = 0; w < held->size_bytes / 8; w++)
		map[w] = pattern(held, w);
}

static bool is_whole(const uint64_t *map, const struct held *held)
{
	for (size_t w = 0; w < held->size_bytes / 8; w++)
		if (map[w] != pattern(held, w))
			return false;
	return true;
}

/* Allocates, finds it zero, and fills it. Return: the mapping. */
static uint64_t *take(int *ret_fd, struct held *ret)
{
	uint64_t len = (1 + draw(BYTES_MAX / 4096)) * 4096;
	struct dmaheap_alloc_report report;
	char why[256];
	struct stat st;
	uint64_t *map;
	int r = dmaheap_alloc_ex(dh, NULL, len, O_RDWR | O_CLOEXEC, 0, 1,
				 ret_fd, &report, why, sizeof(why));

	if (r) {
		errno = -r;
		fprintf(stderr, "client %u: %s\n", me, why);
	}
	FAIL_IF(r != 0);
	FAIL_IF(fstat(*ret_fd, &st) < 0);
	*ret = (struct held){.ino = st.st_ino, .size_bytes = len};
	memcpy(ret->blocks, report.blocks, sizeof(ret->blocks));
	map = dmaheap_map(*ret_fd, len, PROT_READ | PROT_WRITE);
	FAIL_IF(map == MAP_FAILED);
	for (size_t w = 0; w < len / 8; w++)
		FAIL_IF(map[w] != 0);
	fill(map, ret);
	atomic_fetch_add(&board->client[me].n_allocs, 1);
	return map;
}

/* Gives the last buffer to the neighbour and gets his. */
static void share(void)
{
	int sock = pairs[me / 2][me % 2];

	FAIL_IF(raw_send(sock, "", 1, &fds[N_HELD - 1], 1));
	neighbours_fd = raw_receive_fd(sock);
	FAIL_IF(neighbours_fd < 0);
}

/* Says that it is quiet, once it has handed over what it holds. */
static void obey(void)
{
	struct dmaheap_hello_reply hello;
	unsigned int pause = board->pause;

	if (pause % 2 == 0)
		return;
	FAIL_IF(dmaheap_hello(dh, &hello) != 0);
	board->client[me].quiet = pause;
	while (board->pause == pause && !board->stop)
		usleep(500);
}

static void step(void)
{
	struct held *held = board->client[me].held;
	unsigned int i = draw(N_HELD);
	struct held passing;
	uint64_t *map;
	int fd;

	map = take(&fd, &passing);
	FAIL_IF(!is_whole(map, &passing));
	munmap(map, passing.size_bytes);
	close(fd);
	FAIL_IF(!is_whole(maps[i], &held[i]));
	if (i == N_HELD - 1 || draw(4) > 0)
		return;
	munmap(maps[i], held[i].size_bytes);
	close(fds[i]);
	maps[i] = take(&fds[i], &held[i]);
}

static void be_client(unsigned int number)
{
	struct held *held = board->client[number].held;

	me = number;
	lot = number + 1;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	FAIL_IF(dmaheap_connect(&dh, it_daemon.socket) != 0);
	for (unsigned int i = 0; i < N_HELD; i++)
		maps[i] = take(&fds[i], &held[i]);
	share();
	while (!board->stop) {
		obey();
		step();
	}
	for (unsigned int i = 0; i < N_HELD; i++)
		FAIL_IF(!is_whole(maps[i], &held[i]));
	_exit(0);
}

static bool all_quiet(void *ctx)
{
	unsigned int pause = board->pause;

	(void)ctx;
	for (unsigned int i = 0; i < N_CLIENTS; i++)
		if (board->client[i].quiet != pause && !board->client[i].error)
			return false;
	return true;
}

static struct dmaheap_buffer_record list[8 * N_CLIENTS * N_HELD];

/* All buffers that the daemon calls live. Return: how many. */
static unsigned int list_live(void)
{
	struct dmaheap_buffers_req req = {0};
	struct {
		struct dmaheap_buffers_reply head;
		struct dmaheap_buffer_record records[200];
	} reply;
	unsigned int n = 0;

	do {
		long r = it_call(it_dh, DMAHEAP_OP_BUFFERS, &req, sizeof(req),
				 &reply, sizeof(reply));

		T_REQUIRE(r >= (long)sizeof(reply.head));
		for (uint32_t i = 0; i < reply.head.n_records; i++) {
			req.after_id = reply.records[i].id;
			if (reply.records[i].state == DMAHEAP_BUFFER_LIVE &&
			    n < sizeof(list) / sizeof(list[0]))
				list[n++] = reply.records[i];
		}
	} while (reply.head.more);
	return n;
}

static bool only_the_held_live(void *ctx)
{
	(void)ctx;
	return list_live() == N_CLIENTS * N_HELD;
}

static unsigned int times_listed(const struct held *held, unsigned int n,
				 bool *ret_same)
{
	unsigned int times = 0;

	for (unsigned int i = 0; i < n; i++) {
		if (list[i].ino != held->ino)
			continue;
		times++;
		*ret_same = list[i].size_bytes == held->size_bytes &&
			    !memcmp(list[i].blocks, held->blocks,
				    sizeof(held->blocks)) &&
			    list[i].uid == getuid();
	}
	return times;
}

/* While the clients pause: is each buffer there, once and as it was? */
static void check_books(unsigned int round)
{
	unsigned int n, n_wrong = 0;

	if (!wait_until(only_the_held_live, NULL, 10000))
		fprintf(stderr, "round %u: %u live, not %u\n", round,
			list_live(), N_CLIENTS * N_HELD);
	n = list_live();
	CU_ASSERT_EQUAL(n, N_CLIENTS * N_HELD);
	for (unsigned int c = 0; c < N_CLIENTS; c++) {
		for (unsigned int i = 0; i < N_HELD; i++) {
			bool same = false;

			if (times_listed(&board->client[c].held[i], n, &same) !=
				    1 ||
			    !same)
				n_wrong++;
		}
	}
	CU_ASSERT_EQUAL(n_wrong, 0);
}

static void quiet_and_check(unsigned int round)
{
	board->pause++;
	CU_ASSERT_TRUE(wait_until(all_quiet, NULL, 30000));
	check_books(round);
	board->pause++;
}

static void kill_and_start_again(void)
{
	struct timespec run = {.tv_nsec = 20000000L};

	nanosleep(&run,
		  NULL); /* a load to interrupt, not a wait for anything */
	daemon_kill(&it_daemon);
	it_options.keep_dir = true;
	T_REQUIRE(daemon_start(&it_daemon, &it_options));
}

static unsigned int allocs(void)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < N_CLIENTS; i++)
		n += board->client[i].n_allocs;
	return n;
}

static void no_buffer_is_lost_when_the_daemon_is_killed(void)
{
	const char *text = getenv("DMAHEAP_ROUNDS");
	unsigned int rounds = text ? (unsigned int)atoi(text) : 3;
	unsigned int done = 0;

	for (unsigned int i = 0; i < N_CLIENTS; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			be_client(i);
	}
	quiet_and_check(0);
	for (; done < rounds && CU_get_number_of_failures() == 0; done++) {
		kill_and_start_again();
		quiet_and_check(done + 1);
	}
	board->stop = true;
	for (unsigned int i = 0; i < N_CLIENTS; i++) {
		int status;

		CU_ASSERT_EQUAL(waitpid(pids[i], &status, 0), pids[i]);
		CU_ASSERT_EQUAL(status, 0);
	}
	CU_ASSERT_EQUAL(done, rounds);
	printf("%u rounds, %u allocations; ", done, allocs());
}

static void setup(void)
{
	it_options.config = "[quota]\nconnections = 128\n";
	T_REQUIRE(daemon_start(&it_daemon, &it_options));
	T_REQUIRE(dmaheap_connect(&it_dh, it_daemon.socket) == 0);
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	T_REQUIRE(board != MAP_FAILED);
	for (unsigned int i = 0; i < N_CLIENTS / 2; i++)
		T_REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0,
				     pairs[i]) == 0);
}

static void teardown(void)
{
	CU_ASSERT_TRUE(it_wait_all_free("system"));
	CU_ASSERT_EQUAL(it_shrink(0), 0);
	it_dh = dmaheap_close(it_dh);
	CU_ASSERT_TRUE(daemon_stop(&it_daemon));
	munmap(board, sizeof(*board));
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"no buffer is lost when the daemon is killed",
		 no_buffer_is_lost_when_the_daemon_is_killed},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "adopt",
		 .pSetUpFunc = setup,
		 .pTearDownFunc = teardown,
		 .pTests = tests},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
