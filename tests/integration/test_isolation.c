/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "integration/common.h"
#include "support/memcg.h"
#include "support/raw.h"

/*
 * A client writes SECRET into a buffer, keeps hold of it in some way and lets
 * go of its descriptor. Another client then gets buffers and writes NEW into
 * them. The second must find zeros, the first must never see NEW, and the
 * memory must be the host's again.
 *
 * Run twice by ctest: recycle = uid with two users (as root), where memory may
 * stay with its user, and recycle = never with one user.
 */
#define BYTES     IT_MIB(4)
#define N_NEW     6
#define SECRET    'S'
#define NEW       'N'
#define OTHER_UID 65533
#define FIRST_UID 65534

struct hold {
	int fd;   /* of the buffer, until take() is over */
	int kept; /* descriptor */
	char *map;
	int pipe[2];
	int pair[2];
	struct io_uring ring;
	bool unavailable; /* this way of holding does not work here */
};

struct way {
	const char *name;
	void (*take)(struct hold *h);
	/* Return: a byte of what is held, or -1. */
	int (*peek)(struct hold *h);
	/* Seen by the lease: the buffer lives as long as the holder. */
	bool keeps_alive;
	bool pins; /* a page is held without the file */
};

static void reopened_path(const struct hold *h, int fd, char path[64])
{
	(void)h;
	snprintf(path, 64, "/proc/self/fd/%d", fd);
}

static void take_o_path(struct hold *h)
{
	char path[64];

	reopened_path(h, h->fd, path);
	h->kept = open(path, O_PATH | O_CLOEXEC);
}

static int peek_o_path(struct hold *h)
{
	char path[64];
	char byte;
	int fd, seen = -1;

	reopened_path(h, h->kept, path);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0 && pread(fd, &byte, 1, 0) == 1)
		seen = byte;
	if (fd >= 0)
		close(fd);
	return seen;
}

/* With mode 0600 only the daemon's own user can; others keep what they have. */
static void take_reader(struct hold *h)
{
	char path[64];

	reopened_path(h, h->fd, path);
	h->kept = open(path, O_RDONLY | O_CLOEXEC);
	if (h->kept < 0)
		h->kept = dup(h->fd);
}

static int peek_reader(struct hold *h)
{
	char byte;

	return pread(h->kept, &byte, 1, 0) == 1 ? byte : -1;
}

static void take_mapping(struct hold *h)
{
	h->map = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, h->fd, 0);
}

static int peek_mapping(struct hold *h)
{
	return h->map[0];
}

static void take_pipe(struct hold *h)
{
	off_t at = 0;

	if (pipe(h->pipe) < 0 ||
	    splice(h->fd, &at, h->pipe[1], NULL, 4096, 0) != 4096)
		h->unavailable = true;
}

static int peek_pipe(struct hold *h)
{
	int copy[2];
	char byte;
	int seen = -1;

	/* tee() copies the reference, not the bytes, so it can be repeated. */
	if (pipe(copy) == 0 && tee(h->pipe[0], copy[1], 4096, 0) > 0 &&
	    read(copy[0], &byte, 1) == 1)
		seen = byte;
	close(copy[0]);
	close(copy[1]);
	return seen;
}

static void take_ring(struct hold *h)
{
	struct iovec iov = {.iov_len = 4096};

	h->unavailable = true;
	if (io_uring_queue_init(4, &h->ring, 0) < 0)
		return;
	h->map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, h->fd, 0);
	iov.iov_base = h->map;
	if (h->map == MAP_FAILED || pipe(h->pipe) < 0 ||
	    io_uring_register_buffers(&h->ring, &iov, 1) < 0)
		return;
	munmap(h->map, 4096);
	h->unavailable = false;
}

/* The kernel writes the registered pages into a pipe. */
static int peek_ring(struct hold *h)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&h->ring);
	struct io_uring_cqe *cqe;
	char byte;

	io_uring_prep_write_fixed(sqe, h->pipe[1], h->map, 1, 0, 0);
	if (io_uring_submit_and_wait(&h->ring, 1) < 0 ||
	    io_uring_wait_cqe(&h->ring, &cqe) < 0 || cqe->res != 1)
		return -1;
	io_uring_cqe_seen(&h->ring, cqe);
	return read(h->pipe[0], &byte, 1) == 1 ? byte : -1;
}

static void take_in_flight(struct hold *h)
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, h->pair) < 0 ||
	    raw_send(h->pair[0], "", 1, &h->fd, 1))
		h->unavailable = true;
}

static int peek_in_flight(struct hold *h)
{
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	char byte;
	struct iovec iov = {.iov_base = &byte, .iov_len = 1};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	int fd;

	/* A look leaves it in flight, with one more descriptor here. */
	if (recvmsg(h->pair[1], &msg, MSG_PEEK | MSG_CMSG_CLOEXEC) != 1)
		return -1;
	memcpy(&fd, CMSG_DATA(&control.head), sizeof(fd));
	if (pread(fd, &byte, 1, 0) != 1)
		byte = -1;
	close(fd);
	return byte;
}

/* The holder's process: 'r' says that it holds; then each byte it gets asks for
 * a look, and the end of the pipe ends it. */
static _Noreturn void holder(const struct way *way, uid_t uid, int in, int out)
{
	struct hold h = {.kept = -1};
	struct dmaheap *dh = NULL;
	signed char seen;
	char *p, byte = 'r';

	if (uid && (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 ||
		    setresuid(uid, uid, uid) < 0))
		_exit(2);
	if (dmaheap_connect(&dh, it_daemon.socket) < 0)
		_exit(3);
	h.fd = dmaheap_alloc(dh, "system", BYTES, O_RDWR | O_CLOEXEC, 0);
	if (h.fd < 0)
		_exit(4);
	p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, h.fd, 0);
	if (p == MAP_FAILED)
		_exit(5);
	memset(p, SECRET, BYTES);
	munmap(p, BYTES);
	way->take(&h);
	close(h.fd);
	dmaheap_close(dh);
	if (h.unavailable)
		byte = 'u';
	if (write(out, &byte, 1) != 1)
		_exit(6);
	while (read(in, &byte, 1) == 1) {
		seen = (signed char)way->peek(&h);
		if (write(out, &seen, 1) != 1)
			_exit(7);
	}
	_exit(0);
}

static bool is_zero(const char *p)
{
	return p[0] == 0 && memcmp(p, p + 1, BYTES - 1) == 0;
}

/* Gets buffers as @uid, finds out whether all is zero, writes NEW and keeps
 * them until the pipe ends. */
static _Noreturn void newcomer(uid_t uid, int in, int out)
{
	struct dmaheap *dh = NULL;
	char byte = 'z', *p;
	int fd;

	if (uid && (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 ||
		    setresuid(uid, uid, uid) < 0))
		_exit(2);
	if (dmaheap_connect(&dh, it_daemon.socket) < 0)
		_exit(3);
	for (int i = 0; i < N_NEW; i++) {
		fd = dmaheap_alloc(dh, "system", BYTES, O_RDWR | O_CLOEXEC, 0);
		p = fd < 0 ? MAP_FAILED
			   : mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
				  MAP_SHARED, fd, 0);
		if (p == MAP_FAILED)
			_exit(4);
		if (!is_zero(p))
			byte = 'x';
		memset(p, NEW, BYTES);
	}
	if (write(out, &byte, 1) != 1)
		_exit(5);
	(void)!read(in, &byte, 1);
	_exit(0);
}

struct child {
	pid_t pid;
	int in, out; /* ours: to write to it, to read from it */
};

static struct child start(const struct way *way, uid_t uid)
{
	struct child c;
	int in[2], out[2];

	T_REQUIRE(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0);
	c.pid = fork();
	T_REQUIRE(c.pid >= 0);
	if (c.pid == 0) {
		close(in[1]);
		close(out[0]);
		if (way)
			holder(way, uid, in[0], out[1]);
		newcomer(uid, in[0], out[1]);
	}
	close(in[0]);
	close(out[1]);
	c.in = in[1];
	c.out = out[0];
	return c;
}

/* Return: what the child says next, 0 if it has ended. */
static char hear(const struct child *c)
{
	char byte;

	return read(c->out, &byte, 1) == 1 ? byte : 0;
}

static void end(struct child *c)
{
	int status = -1;

	close(c->in);
	close(c->out);
	waitpid(c->pid, &status, 0);
	CU_ASSERT_EQUAL(status, 0);
}

static struct memcg cg;
static bool have_cg, never;

/* Of the daemon's cgroup, where one can be made, so that neighbours do not
 * count; else of the host. */
static uint64_t shmem_bytes(void)
{
	char line[128];
	unsigned long kb = 0;
	FILE *f;

	if (have_cg)
		return memcg_shmem_bytes(&cg);
	f = fopen("/proc/meminfo", "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "Shmem: %lu", &kb) == 1)
			break;
	if (f)
		fclose(f);
	return (uint64_t)kb * 1024;
}

static bool shmem_is_back(void *ctx)
{
	const uint64_t *before = ctx;

	it_shrink(0); /* what has been parked meanwhile */
	return shmem_bytes() <= *before + IT_KIB(512);
}

static void expect_shmem(uint64_t before)
{
	CU_ASSERT_TRUE(wait_until(shmem_is_back, &before, 1000));
}

static void look(const struct way *way, const struct child *c)
{
	char seen;

	CU_ASSERT_EQUAL(write(c->in, "?", 1), 1);
	seen = hear(c);
	CU_ASSERT_NOT_EQUAL(seen, NEW);
	/* What keeps the buffer alive keeps its content. */
	if (way->keeps_alive)
		CU_ASSERT_EQUAL(seen, SECRET);
}

static void keep(const struct way *way, uid_t first, uid_t second)
{
	uint64_t before, pinned;
	struct child holding, fresh;
	char said;

	it_shrink(0);
	before = shmem_bytes();
	pinned = it_stats()->backing.dropped_pinned;
	holding = start(way, first);
	said = hear(&holding);
	if (said == 'u') {
		printf(" (%s: not possible here) ", way->name);
		end(&holding);
		return;
	}
	CU_ASSERT_EQUAL(said, 'r');
	fresh = start(NULL, second);
	CU_ASSERT_EQUAL(hear(&fresh), 'z');
	look(way, &holding);
	end(&fresh);
	look(way, &holding);
	if (!way->keeps_alive)
		expect_shmem(before);
	/* What a pipe or a ring holds is out of the books, and told. */
	if (way->pins && !way->keeps_alive)
		CU_ASSERT_TRUE(it_stats()->backing.dropped_pinned > pinned);
	end(&holding);
	CU_ASSERT_TRUE(it_wait_all_free("system"));
	expect_shmem(before);
}

/* As another user, and as the same one where nothing is used again. */
static void hold_by(const struct way *way)
{
	CU_ASSERT_EQUAL(chmod(it_daemon.dir, 0711), 0);
	if (never) {
		keep(way, 0, 0);
		if (geteuid() == 0)
			keep(way, FIRST_UID, FIRST_UID);
	} else if (geteuid() == 0) {
		keep(way, FIRST_UID, OTHER_UID);
		keep(way, 0, OTHER_UID);
	}
	/* What the lease sees is safe from one's own user too. */
	if (way->keeps_alive)
		keep(way, 0, 0);
}

#define WAY(fn, text, ...)                                                     \
	static void fn(void)                                                   \
	{                                                                      \
		static const struct way way = {.name = text, __VA_ARGS__};     \
                                                                               \
		hold_by(&way);                                                 \
	}                                                                      \
	_Static_assert(1, "")

WAY(an_o_path_descriptor, "O_PATH", .take = take_o_path, .peek = peek_o_path);
WAY(a_reopened_reader, "reader", .take = take_reader, .peek = peek_reader,
    .keeps_alive = true);
WAY(a_mapping, "mapping", .take = take_mapping, .peek = peek_mapping,
    .keeps_alive = true);
WAY(a_page_in_a_pipe, "pipe", .take = take_pipe, .peek = peek_pipe,
    .pins = true);
WAY(a_registered_buffer, "io_uring", .take = take_ring, .peek = peek_ring,
    .pins = true);
WAY(a_descriptor_in_flight, "in flight", .take = take_in_flight,
    .peek = peek_in_flight, .keeps_alive = true);

/* Misuse of a buffer by its client: the books and the next owner. */

static bool nothing_is_resident(void *ctx)
{
	(void)ctx;
	return it_stats()->backing.resident_bytes == 0;
}

static void misused(void (*misuse)(int fd))
{
	struct dmaheap_alloc_report report;
	uint64_t before;
	struct stat st;
	char *p;
	int fd;

	it_shrink(0);
	before = shmem_bytes();
	fd = it_alloc("system", BYTES, NULL);
	T_REQUIRE(fd >= 0);
	CU_ASSERT_EQUAL(pwrite(fd, "S", 1, IT_MIB(1)), 1);
	misuse(fd);
	close(fd);
	CU_ASSERT_TRUE(it_wait_all_free("system"));
	for (int i = 0; i < 3; i++) {
		fd = it_alloc("system", BYTES, &report);
		T_REQUIRE(fd >= 0);
		CU_ASSERT_EQUAL(fstat(fd, &st), 0);
		CU_ASSERT_EQUAL((uint64_t)st.st_blocks * 512, BYTES);
		p = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, fd, 0);
		T_REQUIRE(p != MAP_FAILED);
		CU_ASSERT_TRUE(is_zero(p));
		munmap(p, BYTES);
		close(fd);
		CU_ASSERT_TRUE(it_wait_all_free("system"));
	}
	expect_shmem(before);
	CU_ASSERT_TRUE(wait_until(nothing_is_resident, NULL, 1000));
}

static void punch(int fd)
{
	CU_ASSERT_EQUAL(fallocate(fd,
				  FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
				  IT_MIB(2)),
			0);
}

static void punched_holes(void)
{
	misused(punch);
	if (!never)
		CU_ASSERT_EQUAL(it_stats()->backing.dropped_holes, 1);
}

static void remove_pages(int fd)
{
	char *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	T_REQUIRE(p != MAP_FAILED);
	CU_ASSERT_EQUAL(madvise(p, IT_MIB(1), MADV_REMOVE), 0);
	munmap(p, BYTES);
}

static void removed_pages(void)
{
	misused(remove_pages);
	if (!never)
		CU_ASSERT_EQUAL(it_stats()->backing.dropped_holes, 1);
}

static void lock_file(int fd)
{
	struct flock lock = {.l_type = F_WRLCK, .l_len = 4096};

	CU_ASSERT_EQUAL(fcntl(fd, F_OFD_SETLK, &lock), 0);
	lock.l_start = 4096;
	CU_ASSERT_EQUAL(fcntl(fd, F_SETLK, &lock), 0);
}

static void file_locks(void)
{
	misused(lock_file);
}

/* Only the daemon's own user may; the daemon must not wait for its end. */
static void lease_file(int fd)
{
	if (fcntl(fd, F_SETLEASE, F_WRLCK) < 0)
		CU_ASSERT_EQUAL(errno, EAGAIN); /* the daemon has it open */
}

static void a_clients_lease(void)
{
	misused(lease_file);
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"an O_PATH descriptor", an_o_path_descriptor},
		{"a reopened reader", a_reopened_reader},
		{"a mapping", a_mapping},
		{"a page in a pipe", a_page_in_a_pipe},
		{"a buffer registered with io_uring", a_registered_buffer},
		{"a descriptor in flight", a_descriptor_in_flight},
		{"punched holes", punched_holes},
		{"pages removed by madvise", removed_pages},
		{"file locks", file_locks},
		{"a lease of the client's", a_clients_lease},
		CU_TEST_INFO_NULL,
	};
	char *env[] = {cg.procs_env, NULL};
	int status;

	never = argc > 1 && strcmp(argv[1], "never") == 0;
	it_options.config = never ? "[daemon]\nsocket_mode = 0666\n"
				    "[backing]\nrecycle = never\n"
				  : "[daemon]\nsocket_mode = 0666\n"
				    "[backing]\nrecycle = uid\n";
	have_cg = memcg_create(&cg, 0) == NULL;
	if (have_cg) {
		it_options.wrap = memcg_wrap;
		it_options.env = env;
	}
	if (!never && geteuid() != 0)
		printf("note: another user's part needs root\n");
	status = it_main(never ? argc - 1 : argc, never ? argv + 1 : argv,
			 tests);
	if (have_cg)
		memcg_destroy(&cg);
	return status;
}
