/* SPDX-License-Identifier: MIT */
/*
 * Mutated frames against a live daemon, from 64 connections, while a client
 * that behaves watches its latency:
 *
 *   fuzz_live [-n FRAMES] [-r RUNS] [-s SEED] [-l LOOP]
 *
 * In each run the client measures its p99 alone and then under FRAMES frames;
 * the median of the ratios is printed, and must be at most 3. Daemon and client
 * share one CPU, the mutator has another. As root the mutator is nobody, so
 * that administrative requests are refused; afterwards as many frames come
 * from an administrator, without a limit on time. In the end the daemon must
 * live and hold nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <dmaheap/dmaheap.h>

#include "bench.h"
#include "live_frames.h"
#include "support/daemon.h"

#define N_CONNECTIONS 64u
#define LEN_BYTES     65536u
#define IDLE_ROUNDS   5000u
#define MAX_ROUNDS    1000000u
#define NOBODY        65534u
#define MAX_RATIO     3.0
#define PATIENCE_S    10

static const char config[] = "[daemon]\n"
			     "latency = native\n"
			     "log_level = error\n"
			     "[node]\n"
			     "size = 1G\n"
			     "[backing]\n"
			     "mode = plain\n"
			     "[quota]\n"
			     "connections = 200\n"
			     "[quota uid 65534]\n"
			     "bytes = 64M\n";

static struct counts {
	uint64_t kind[FRAME_KINDS];
	uint64_t n_replies;
	uint64_t n_closed;
} * counts; /* shared with the mutator */

/* ---- the mutator, a process ---- */

static struct sockaddr_un address;

static int connect_once(void)
{
	struct timeval patience = {.tv_sec = PATIENCE_S};
	struct frame hello;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0 ||
	    connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		bench_fail("mutator: connect");
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience,
			 sizeof(patience));
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience,
			 sizeof(patience));
	frame_hello(&hello);
	(void)send(fd, hello.bytes, hello.n_bytes, MSG_NOSIGNAL);
	return fd;
}

static bool send_frame(int fd, const struct frame *frame, int borrowed)
{
	union {
		char buf[CMSG_SPACE(4 * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {.iov_base = (void *)(uintptr_t)frame->bytes,
			    .iov_len = frame->n_bytes};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	if (frame->n_fds) {
		int fds[4] = {borrowed, borrowed, borrowed, borrowed};
		struct cmsghdr *c = &control.align;

		msg.msg_control = control.buf;
		msg.msg_controllen = CMSG_SPACE(frame->n_fds * sizeof(int));
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(frame->n_fds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, frame->n_fds * sizeof(int));
	}
	return sendmsg(fd, &msg, MSG_NOSIGNAL) >= 0;
}

static void close_fds_of(struct msghdr *msg)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c;
	     c = CMSG_NXTHDR(msg, c)) {
		size_t n_fds = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		for (size_t i = 0; i < n_fds; i++) {
			int got;

			memcpy(&got, CMSG_DATA(c) + i * sizeof(int),
			       sizeof(int));
			close(got);
		}
	}
}

/* Waits for the answer to a frame. Return: false when the daemon has closed. */
static bool await_answer(int fd)
{
	static char bytes[DMAHEAP_MESSAGE_MAX_BYTES];
	union {
		char buf[CMSG_SPACE(64 * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {.iov_base = bytes, .iov_len = sizeof(bytes)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control.buf,
			     .msg_controllen = sizeof(control.buf)};
	ssize_t n = recvmsg(fd, &msg, 0);

	if (n < 0 && errno == EAGAIN) {
		fprintf(stderr, "a frame got no answer within %d s\n",
			PATIENCE_S);
		exit(EXIT_FAILURE);
	}
	if (n <= 0)
		return false;
	counts->n_replies++;
	close_fds_of(&msg);
	return true;
}

static _Noreturn void be_mutator(uint64_t n_frames, uint64_t seed,
				 bool as_admin)
{
	int fds[N_CONNECTIONS], borrowed;
	struct rng rng;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)bench_pin(0, bench_n_cpus() > 1 ? 1 : 0);
	if (!as_admin && geteuid() == 0 &&
	    (setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
	     setresuid(NOBODY, NOBODY, NOBODY) < 0))
		bench_fail("setresuid");
	borrowed = memfd_create("mutator", MFD_CLOEXEC);
	rng_seed(&rng, seed);
	for (size_t i = 0; i < N_CONNECTIONS; i++)
		fds[i] = connect_once();
	for (uint64_t n = 0; n < n_frames; n++) {
		int *fd = &fds[n % N_CONNECTIONS];
		struct frame frame;

		counts->kind[frame_make(&frame, &rng,
					as_admin || geteuid() == NOBODY)]++;
		/* One frame in each connection waits for its answer, that of
		 * HELLO being the first. */
		if (await_answer(*fd) && send_frame(*fd, &frame, borrowed))
			continue;
		counts->n_closed++;
		close(*fd);
		*fd = connect_once();
		(void)await_answer(*fd);
		(void)send_frame(*fd, &frame, borrowed);
	}
	_exit(EXIT_SUCCESS);
}

static pid_t start_mutator(uint64_t n_frames, uint64_t seed, bool as_admin)
{
	pid_t pid = fork();

	if (pid < 0)
		bench_fail("fork");
	if (pid == 0)
		be_mutator(n_frames, seed, as_admin);
	return pid;
}

/* ---- the client that behaves ---- */

static void one_round(struct dmaheap *dh, struct samples *s)
{
	uint64_t start_ns = bench_now_ns();
	int fd = dmaheap_alloc(dh, NULL, LEN_BYTES, O_RDWR | O_CLOEXEC, 0);

	if (fd < 0) {
		fprintf(stderr, "the client that behaves got %s\n",
			strerror(-fd));
		exit(EXIT_FAILURE);
	}
	close(fd);
	samples_add(s, bench_now_ns() - start_ns);
}

static double ratio_of_run(struct dmaheap *dh, uint64_t n_frames, uint64_t seed)
{
	struct samples idle, busy;
	double a, b;
	int status = 0;
	pid_t pid;

	samples_init(&idle, IDLE_ROUNDS);
	samples_init(&busy, MAX_ROUNDS);
	for (unsigned int i = 0; i < IDLE_ROUNDS; i++)
		one_round(dh, &idle);
	pid = start_mutator(n_frames, seed, false);
	while (waitpid(pid, &status, WNOHANG) == 0)
		one_round(dh, &busy);
	if (status != 0)
		exit(EXIT_FAILURE);
	a = (double)samples_quantile(&busy, 990) / 1000.0;
	b = (double)samples_quantile(&idle, 990) / 1000.0;
	printf("  p99 %.1f us under %llu frames (%zu rounds), %.1f us alone: "
	       "%.2f\n",
	       a, (unsigned long long)n_frames, busy.n, b, a / b);
	samples_fini(&idle);
	samples_fini(&busy);
	return a / b;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void as_administrator(uint64_t n_frames, uint64_t seed)
{
	pid_t pid = start_mutator(n_frames, seed, true);
	int status;

	if (waitpid(pid, &status, 0) < 0 || status != 0)
		exit(EXIT_FAILURE);
}

/* ---- the end ---- */

struct books {
	struct dmaheap *dh;
	struct dmaheap_stats stats;
};

static bool is_empty(void *ctx)
{
	struct books *books = ctx;

	if (dmaheap_stats(books->dh, &books->stats) < 0)
		return false;
	for (uint32_t i = 0; i < books->stats.n_heaps; i++)
		if (books->stats.heap[i].buffers)
			return false;
	return books->stats.daemon.n_connections == 1;
}

static void print_counts(void)
{
	uint64_t all = 0;

	for (int i = 0; i < FRAME_KINDS; i++)
		all += counts->kind[i];
	printf("%llu frames: %.0f %% mutated past the header, %.0f %% valid, "
	       "%.0f %% in the header, %.0f %% garbage; %llu replies, %llu "
	       "connections closed\n",
	       (unsigned long long)all,
	       100.0 * (double)counts->kind[FRAME_PAYLOAD] / (double)all,
	       100.0 * (double)counts->kind[FRAME_VALID] / (double)all,
	       100.0 * (double)counts->kind[FRAME_HEADER] / (double)all,
	       100.0 * (double)counts->kind[FRAME_GARBAGE] / (double)all,
	       (unsigned long long)counts->n_replies,
	       (unsigned long long)counts->n_closed);
}

int main(int argc, char **argv)
{
	struct daemon_options options = {.config = config};
	uint64_t n_frames = 100000, seed = 1;
	unsigned int n_runs = 5;
	struct books books = {0};
	struct daemon daemon;
	double ratio[100];
	bool good;
	int opt;

	while ((opt = getopt(argc, argv, "n:r:s:l:")) != -1) {
		if (opt == 'n')
			n_frames = strtoull(optarg, NULL, 10);
		else if (opt == 'r')
			n_runs = (unsigned int)strtoul(optarg, NULL, 10);
		else if (opt == 's')
			seed = strtoull(optarg, NULL, 10);
		else if (opt == 'l')
			options.loop = optarg;
		else
			return 2;
	}
	if (n_runs < 1 || n_runs > 100)
		return 2;
	counts = mmap(NULL, sizeof(*counts), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (counts == MAP_FAILED)
		bench_fail("mmap");
	if (!daemon_start(&daemon, &options)) {
		fprintf(stderr, "dmaheapd did not start\n");
		daemon_stop(&daemon);
		return EXIT_FAILURE;
	}
	address.sun_family = AF_UNIX;
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s",
		       daemon.socket);
	if (chmod(daemon.socket, 0666) < 0)
		bench_fail("chmod");
	bench_pin_process(daemon.pid, 0, bench_n_cpus() > 1 ? 1 : 0);
	if (!bench_pin(0, 0))
		bench_fail("pinning");
	if (dmaheap_connect(&books.dh, daemon.socket) < 0)
		bench_fail("connect");
	for (unsigned int i = 0; i < n_runs; i++)
		ratio[i] = ratio_of_run(books.dh, n_frames, seed + i);
	qsort(ratio, n_runs, sizeof(ratio[0]), compare);
	good = ratio[n_runs / 2] <= MAX_RATIO;
	printf("median %.2f, at most %.0f: %s\n", ratio[n_runs / 2], MAX_RATIO,
	       good ? "met" : "MISSED");
	as_administrator(n_frames, seed + n_runs);
	print_counts();
	dmaheap_close(books.dh);
	if (dmaheap_connect(&books.dh, daemon.socket) < 0 ||
	    !wait_until(is_empty, &books, 5000)) {
		fprintf(stderr, "the daemon does not answer or holds on to "
				"something\n");
		good = false;
	}
	dmaheap_close(books.dh);
	return daemon_stop(&daemon) && good ? EXIT_SUCCESS : EXIT_FAILURE;
}
