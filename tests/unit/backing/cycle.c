/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"

static struct harness h;

static void setup(void)
{
	harness_start(&h, NULL);
}

static void teardown(void)
{
	harness_stop(&h);
}

static void scribble(int fd, uint64_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	T_REQUIRE(p != MAP_FAILED);
	memset(p, 0xa5, bytes);
	munmap(p, bytes);
}

static void a_new_buffer_is_whole_sealed_and_zero(void)
{
	static const uint64_t sizes[] = {KIB(4),          KIB(60),
					 MIB(1) + KIB(4), MIB(2),
					 MIB(3),          MIB(4) + KIB(4),
					 MIB(10),         MIB(10) + KIB(12)};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct backing_buffer *bb = harness_make(&h, sizes[i]);
		struct stat st;
		int fd;

		T_REQUIRE(bb != NULL);
		fd = harness_open(&h, bb, O_RDWR);
		T_REQUIRE(fstat(fd, &st) == 0);
		CU_ASSERT_EQUAL(st.st_size, (off_t)sizes[i]);
		CU_ASSERT_EQUAL(st.st_blocks * 512, (off_t)sizes[i]);
		CU_ASSERT_EQUAL(st.st_mode & 07777, 0600);
		CU_ASSERT_EQUAL(fcntl(fd, F_GET_SEALS) &
					(F_SEAL_SEAL | F_SEAL_SHRINK |
					 F_SEAL_GROW | F_SEAL_WRITE),
				F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW);
		CU_ASSERT_EQUAL(ftruncate(fd, 4096 * 2000), -1);
		CU_ASSERT_EQUAL(errno, EPERM);
		CU_ASSERT_TRUE(harness_is_zero(fd, sizes[i]));
		close(fd);
		harness_wait(&h, &h.n_released, (unsigned int)i + 1);
		backing_drop(h.b, bb);
	}
}

static void access_mode_is_the_clients_alone(void)
{
	struct backing_buffer *bb = harness_make(&h, KIB(64));
	int fd = harness_open(&h, bb, O_RDONLY);
	unsigned int n = h.n_released;

	CU_ASSERT_EQUAL(fcntl(fd, F_GETFL) & (O_ACCMODE | O_NONBLOCK),
			O_RDONLY);
	CU_ASSERT_EQUAL(fcntl(fd, F_GETFD), FD_CLOEXEC);
	CU_ASSERT_PTR_EQUAL(mmap(NULL, KIB(64), PROT_WRITE, MAP_SHARED, fd, 0),
			    MAP_FAILED);
	CU_ASSERT_EQUAL(errno, EACCES);
	close(fd);
	harness_wait(&h, &h.n_released, n + 1);
	backing_drop(h.b, bb);
}

static void a_parked_buffer_comes_back_zero_and_at_once(void)
{
	static const uint64_t sizes[] = {KIB(64), MIB(1), MIB(10) + KIB(4)};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct backing_buffer *bb = harness_make(&h, sizes[i]);
		int fd = harness_open(&h, bb, O_RDWR);
		struct backing_stats stats;

		scribble(fd, sizes[i]);
		h.n_released = 0;
		close(fd);
		harness_wait(&h, &h.n_released, 1);
		CU_ASSERT_PTR_EQUAL(h.released, bb);
		CU_ASSERT_EQUAL(harness_recycle(&h, bb), BACKING_PARKABLE);
		backing_get_stats(h.b, &stats);
		CU_ASSERT_EQUAL(stats.parked_bytes, sizes[i]);
		fd = harness_open(&h, bb, O_RDWR);
		CU_ASSERT_TRUE(harness_is_zero(fd, sizes[i]));
		backing_get_stats(h.b, &stats);
		CU_ASSERT_EQUAL(stats.parked_bytes, 0);
		h.n_released = 0;
		close(fd);
		harness_wait(&h, &h.n_released, 1);
		backing_drop(h.b, bb);
	}
}

static void dropping_gives_the_memory_back(void)
{
	struct backing_buffer *bb = harness_make(&h, MIB(10));
	struct backing_stats stats;
	unsigned int n_fds = harness_n_fds();

	backing_get_stats(h.b, &stats);
	CU_ASSERT_EQUAL(stats.resident_bytes, MIB(10));
	backing_drop(h.b, bb);
	/* On a busy host the workers get their turn late. */
	for (int i = 0; i < 5000 && stats.resident_bytes; i++) {
		harness_linger(&h, 1);
		backing_get_stats(h.b, &stats);
	}
	harness_linger(&h, 5);
	backing_get_stats(h.b, &stats);
	CU_ASSERT_EQUAL(stats.resident_bytes, 0);
	CU_ASSERT_EQUAL(stats.n_buffers, 0);
	CU_ASSERT_EQUAL(harness_n_fds(), n_fds - 1);
}

/* Each way of holding a buffer: it must not be released before it ends. */

static void a_mapping_alone_keeps_a_buffer(void)
{
	struct backing_buffer *bb = harness_make(&h, KIB(64));
	int fd = harness_open(&h, bb, O_RDWR);
	void *p = mmap(NULL, KIB(64), PROT_READ, MAP_SHARED, fd, 0);

	h.n_released = 0;
	close(fd);
	harness_linger(&h, 30);
	CU_ASSERT_EQUAL(h.n_released, 0);
	munmap(p, KIB(64));
	harness_wait(&h, &h.n_released, 1);
	backing_drop(h.b, bb);
}

static void a_descriptor_in_flight_keeps_a_buffer(void)
{
	struct backing_buffer *bb = harness_make(&h, KIB(64));
	int fd = harness_open(&h, bb, O_RDWR), pair[2];
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} control = {.head = {.cmsg_len = CMSG_LEN(sizeof(int)),
			      .cmsg_level = SOL_SOCKET,
			      .cmsg_type = SCM_RIGHTS}};
	char byte = 0;
	struct iovec iov = {.iov_base = &byte, .iov_len = 1};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};

	memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	T_REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0);
	T_REQUIRE(sendmsg(pair[0], &msg, 0) == 1);
	h.n_released = 0;
	close(fd);
	harness_linger(&h, 30);
	CU_ASSERT_EQUAL(h.n_released, 0);
	close(pair[0]);
	close(pair[1]);
	harness_wait(&h, &h.n_released, 1);
	backing_drop(h.b, bb);
}

static void a_killed_holder_lets_go(void)
{
	struct backing_buffer *bb = harness_make(&h, KIB(64));
	int fd = harness_open(&h, bb, O_RDWR);
	pid_t pid = fork();

	if (pid == 0) {
		pause();
		_exit(0);
	}
	h.n_released = 0;
	close(fd);
	harness_linger(&h, 30);
	CU_ASSERT_EQUAL(h.n_released, 0);
	kill(pid, SIGKILL);
	harness_wait(&h, &h.n_released, 1);
	waitpid(pid, NULL, 0);
	backing_drop(h.b, bb);
}

static void a_second_description_keeps_a_buffer(void)
{
	struct backing_buffer *bb = harness_make(&h, KIB(64));
	int first = harness_open(&h, bb, O_RDWR);
	int second = harness_open(&h, bb, O_RDONLY);

	h.n_released = 0;
	close(first);
	harness_linger(&h, 30);
	CU_ASSERT_EQUAL(h.n_released, 0);
	close(second);
	harness_wait(&h, &h.n_released, 1);
	backing_drop(h.b, bb);
}

static void ten_thousand_closes_are_all_noticed(void)
{
	struct backing_buffer *bb = harness_make(&h, KIB(4));
	struct backing_stats stats;
	unsigned int n = 10000;

	/* Without inotify each takes 20 ms. */
	backing_get_stats(h.b, &stats);
	if (stats.lifetime != BACKING_LIFETIME_EXACT)
		n = 50;
	h.n_released = 0;
	for (unsigned int i = 0; i < n; i++) {
		int fd = harness_open(&h, bb, O_RDWR);

		close(fd);
		harness_wait(&h, &h.n_released, i + 1);
		T_REQUIRE(harness_recycle(&h, bb) == BACKING_PARKABLE);
	}
	backing_drop(h.b, bb);
}

static void holes_mean_drop(void)
{
	struct backing_buffer *bb = harness_make(&h, MIB(4));
	int fd = harness_open(&h, bb, O_RDWR);
	struct backing_stats stats;

	h.n_released = 0;
	T_REQUIRE(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			    MIB(1), KIB(4)) == 0);
	close(fd);
	harness_wait(&h, &h.n_released, 1);
	CU_ASSERT_EQUAL(harness_recycle(&h, bb), BACKING_DROPPED_HOLES);
	backing_get_stats(h.b, &stats);
	CU_ASSERT_EQUAL(stats.dropped_holes, 1);
	CU_ASSERT_EQUAL(stats.resident_bytes, 0);
}

static void a_page_that_a_pipe_holds_is_reported(void)
{
	struct backing_buffer *bb = harness_make(&h, MIB(8));
	int fd = harness_open(&h, bb, O_RDWR), pipe_fds[2];
	struct backing_stats stats;
	uint64_t before;
	off_t at = MIB(5) + KIB(8);

	if (h.info.got != BACKING_COLLAPSE) {
		printf(" (no folios here: not tried) ");
		return;
	}
	backing_get_stats(h.b, &stats);
	before = stats.dropped_pinned;
	T_REQUIRE(pipe(pipe_fds) == 0);
	T_REQUIRE(splice(fd, &at, pipe_fds[1], NULL, KIB(4), 0) == KIB(4));
	h.n_released = 0;
	close(fd);
	harness_wait(&h, &h.n_released, 1); /* the lease does not see it */
	backing_drop(h.b, bb);
	harness_settle(&h);
	backing_get_stats(h.b, &stats);
	CU_ASSERT_EQUAL(stats.dropped_pinned, before + 1);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	/* And without a pipe there is nothing to report. */
	backing_drop(h.b, harness_make(&h, MIB(8)));
	harness_settle(&h);
	backing_get_stats(h.b, &stats);
	CU_ASSERT_EQUAL(stats.dropped_pinned, before + 1);
}

static void a_cancelled_buffer_leaves_nothing(void)
{
	struct backing_buffer *bb;
	struct backing_stats stats;
	unsigned int n = h.n_created, n_fds = harness_n_fds();

	for (int i = 0; i < 20; i++) {
		T_REQUIRE(harness_create(&h, MIB(32), 0, &bb) == 0);
		if (i % 2)
			usleep(500);
		backing_cancel(h.b, bb);
	}
	harness_settle(&h);
	backing_get_stats(h.b, &stats);
	CU_ASSERT_EQUAL(stats.resident_bytes, 0);
	CU_ASSERT_EQUAL(stats.n_buffers, 0);
	CU_ASSERT_EQUAL(h.n_created, n);
	CU_ASSERT_EQUAL(harness_n_fds(), n_fds);
}

static void recycle_never_drops_every_buffer(void)
{
	struct backing_buffer *bb = harness_make(&h, KIB(64));
	int fd = harness_open(&h, bb, O_RDWR);

	backing_set_limits(h.b, 0, false);
	h.n_released = 0;
	close(fd);
	harness_wait(&h, &h.n_released, 1);
	CU_ASSERT_EQUAL(harness_recycle(&h, bb), BACKING_DROPPED_NEVER);
	backing_set_limits(h.b, 0, true);
}

static void a_buffer_opened_while_parked_is_not_reused(void)
{
	struct backing_buffer *bb = harness_make(&h, KIB(64));
	int fd = harness_open(&h, bb, O_RDWR), path_fd, stolen = -1;
	char path[64];
	pid_t pid;

	/* What a client of the daemon's own uid could do. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	path_fd = open(path, O_PATH | O_CLOEXEC);
	h.n_released = 0;
	close(fd);
	harness_wait(&h, &h.n_released, 1);
	CU_ASSERT_EQUAL(harness_recycle(&h, bb), BACKING_PARKABLE);
	pid = fork();
	if (pid == 0) { /* waits until the lease is gone */
		snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
		(void)!open(path, O_RDWR);
		_exit(0);
	}
	harness_linger(&h, 50);
	CU_ASSERT_EQUAL(backing_open(h.b, bb, O_RDWR, &stolen),
			BACKING_E_BROKEN);
	backing_drop(h.b, bb);
	waitpid(pid, NULL, 0);
	close(path_fd);
}

static void a_buffer_can_be_found_by_its_file(void)
{
	struct backing_buffer *bb = harness_make(&h, KIB(64));
	struct stat st;
	int mine = 5;

	T_REQUIRE(fstat(backing_buffer_fd(bb), &st) == 0);
	CU_ASSERT_PTR_EQUAL(backing_find(h.b, st.st_dev, st.st_ino), bb);
	CU_ASSERT_PTR_NULL(backing_find(h.b, st.st_dev, st.st_ino + 1));
	CU_ASSERT_PTR_NULL(backing_buffer_owner(bb));
	backing_buffer_set_owner(bb, &mine);
	CU_ASSERT_PTR_EQUAL(backing_buffer_owner(bb), &mine);
	CU_ASSERT_EQUAL(backing_buffer_size(bb), KIB(64));
	backing_drop(h.b, bb);
	CU_ASSERT_PTR_NULL(backing_find(h.b, st.st_dev, st.st_ino));
}

static void the_end_takes_what_is_left(void)
{
	unsigned int n_fds;
	struct backing_buffer *bb;
	int fd;

	harness_stop(&h);
	n_fds = harness_n_fds();
	harness_start(&h, NULL);
	(void)harness_make(&h, MIB(4));
	bb = harness_make(&h, KIB(64));
	fd = harness_open(&h, bb, O_RDWR);
	CU_ASSERT_EQUAL(pwrite(fd, "x", 1, 0), 1);
	for (int i = 0; i < 10; i++)
		T_REQUIRE(harness_create(&h, MIB(16), 0, &bb) == 0);
	harness_stop(&h);
	/* What a client holds stays as it is. */
	CU_ASSERT_FALSE(harness_is_zero(fd, KIB(64)));
	close(fd);
	CU_ASSERT_EQUAL(harness_n_fds(), n_fds);
	harness_start(&h, NULL);
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"a new buffer is whole, sealed and zero",
		 a_new_buffer_is_whole_sealed_and_zero},
		{"the access mode is the client's alone",
		 access_mode_is_the_clients_alone},
		{"a parked buffer comes back zero and at once",
		 a_parked_buffer_comes_back_zero_and_at_once},
		{"dropping gives the memory back",
		 dropping_gives_the_memory_back},
		{"a mapping alone keeps a buffer",
		 a_mapping_alone_keeps_a_buffer},
		{"a descriptor in flight keeps a buffer",
		 a_descriptor_in_flight_keeps_a_buffer},
		{"a killed holder lets go", a_killed_holder_lets_go},
		{"a second description keeps a buffer",
		 a_second_description_keeps_a_buffer},
		{"ten thousand closes are all noticed",
		 ten_thousand_closes_are_all_noticed},
		{"holes mean drop", holes_mean_drop},
		{"a page that a pipe holds is reported",
		 a_page_that_a_pipe_holds_is_reported},
		{"a cancelled buffer leaves nothing",
		 a_cancelled_buffer_leaves_nothing},
		{"recycle = never drops every buffer",
		 recycle_never_drops_every_buffer},
		{"a buffer opened while parked is not reused",
		 a_buffer_opened_while_parked_is_not_reused},
		{"a buffer can be found by its file",
		 a_buffer_can_be_found_by_its_file},
		{"the end takes what is left", the_end_takes_what_is_left},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "cycle",
		 .pSetUpFunc = setup,
		 .pTearDownFunc = teardown,
		 .pTests = tests},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
