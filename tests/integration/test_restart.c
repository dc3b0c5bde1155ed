/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "integration/common.h"
#include "support/raw.h"

#define OTHER_UID 54321u
#define CONFIG                                                                 \
	"[daemon]\nsocket_mode = 0666\nconfine = kill\n[node]\nsize = 64M\n"

static struct raw_reply reply;
static struct dmaheap_alloc_report report;

/* kill -9, and a new daemon on the same socket. */
static void restart(void)
{
	it_options.keep_dir = true;
	daemon_kill(&it_daemon);
	T_REQUIRE(daemon_start(&it_daemon, &it_options));
	it_options.keep_dir = false;
	it_dh = dmaheap_close(it_dh);
}

static void connect_again(void)
{
	/* A new handle hands nothing over by itself. */
	T_REQUIRE(dmaheap_connect(&it_dh, it_daemon.socket) == 0);
}

/* Return: the status of the first record, or of the request. */
static int adopt(const int *fds, size_t n, struct dmaheap_adopt_record *ret)
{
	struct dmaheap_adopt_req req = {0};
	struct dmaheap_records_reply head;
	int sock = raw_open(it_daemon.socket), r;

	T_REQUIRE(sock >= 0);
	r = raw_request(sock, DMAHEAP_OP_ADOPT, &req, sizeof(req), fds, n);
	if (!r)
		r = raw_receive(sock, &reply);
	close(sock);
	if (r || reply.header.status)
		return r ? r : reply.header.status;
	memcpy(&head, reply.payload, sizeof(head));
	CU_ASSERT_EQUAL(head.n_records, n);
	CU_ASSERT_EQUAL(head.record_bytes, sizeof(*ret));
	memcpy(ret, reply.payload + sizeof(head), n * sizeof(*ret));
	return ret[0].status;
}

static void a_buffer_is_handed_to_the_next_daemon(void)
{
	struct dmaheap_adopt_record record[1];
	int fd = it_alloc("system", IT_MIB(3) + IT_KIB(68), &report);
	uint64_t *p;

	T_REQUIRE(fd >= 0);
	p = mmap(NULL, report.size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
		 fd, 0);
	T_REQUIRE(p != MAP_FAILED);
	p[1000] = 4711;
	restart();
	CU_ASSERT_EQUAL(p[1000], 4711);
	CU_ASSERT_EQUAL(adopt(&fd, 1, record), 0);
	CU_ASSERT_EQUAL(record[0].id, report.id);
	connect_again();
	CU_ASSERT_EQUAL(it_heap_stats("system")->buffers, 1);
	CU_ASSERT_EQUAL(it_heap_stats("system")->bytes, report.size_bytes);
	CU_ASSERT_EQUAL(p[1000], 4711);
	munmap(p, report.size_bytes);
	close(fd);
	CU_ASSERT_TRUE(it_wait_all_free("system"));
	CU_ASSERT_EQUAL(it_pool("system", 8)->blocks, report.blocks[8]);
	CU_ASSERT_EQUAL(it_pool("system", 4)->blocks, report.blocks[4]);
	CU_ASSERT_EQUAL(it_pool("system", 0)->blocks, report.blocks[0]);
}

static void the_library_does_it_by_itself(void)
{
	int fd = it_alloc("system", IT_MIB(1), NULL);

	T_REQUIRE(fd >= 0);
	it_options.keep_dir = true;
	daemon_kill(&it_daemon);
	T_REQUIRE(daemon_start(&it_daemon, &it_options));
	it_options.keep_dir = false;
	/* The same handle: it reconnects at its next request. */
	CU_ASSERT_EQUAL(it_heap_stats("system")->buffers, 1);
	close(fd);
}

static void two_descriptors_of_one_buffer_are_one(void)
{
	struct dmaheap_adopt_record record[3];
	int fds[3];

	fds[0] = it_alloc("system", IT_MIB(1), &report);
	fds[1] = fcntl(fds[0], F_DUPFD_CLOEXEC, 3);
	fds[2] = it_alloc("system", IT_KIB(64), NULL);
	T_REQUIRE(fds[0] >= 0 && fds[1] >= 0 && fds[2] >= 0);
	restart();
	CU_ASSERT_EQUAL(adopt(fds, 3, record), 0);
	CU_ASSERT_EQUAL(record[1].status, 0);
	CU_ASSERT_EQUAL(record[0].id, record[1].id);
	CU_ASSERT_NOT_EQUAL(record[0].id, record[2].id);
	/* And once more, by somebody else. */
	CU_ASSERT_EQUAL(adopt(fds, 2, record), 0);
	CU_ASSERT_EQUAL(record[0].id, report.id);
	connect_again();
	CU_ASSERT_EQUAL(it_heap_stats("system")->buffers, 2);
	for (int i = 0; i < 3; i++)
		close(fds[i]);
}

/* A buffer as another uid would forge it, with a real one's attribute. */
struct forgery {
	char attribute[512]; /* which others cannot even read */
	ssize_t n;
	int seals;
	mode_t mode;
	uint64_t size;
};

static int forge_and_adopt(void *ctx)
{
	const struct forgery *f = ctx;
	struct dmaheap_adopt_record record[1];
	int fd = memfd_create("dmaheap:system:1",
			      MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r;

	if (fd < 0 || ftruncate(fd, (off_t)f->size) < 0 ||
	    fallocate(fd, 0, 0, (off_t)f->size) < 0 ||
	    fsetxattr(fd, "user.dmaheap", f->attribute, (size_t)f->n, 0) < 0 ||
	    fchmod(fd, f->mode) < 0 || fcntl(fd, F_ADD_SEALS, f->seals) < 0)
		return 100;
	r = adopt(&fd, 1, record);
	close(fd);
	return -r;
}

static void forged_buffers_are_refused(void)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	struct forgery f = {.seals = seals, .mode = 0600, .size = IT_MIB(1)};
	struct dmaheap_adopt_record record[1];
	int real = it_alloc("system", IT_MIB(1), NULL);
	int other[2];

	T_REQUIRE(real >= 0);
	f.n = fgetxattr(real, "user.dmaheap", f.attribute, sizeof(f.attribute));
	T_REQUIRE(f.n > 0);
	restart();
	CU_ASSERT_EQUAL(it_in_child(OTHER_UID, forge_and_adopt, &f), EPERM);
	/* Even of the daemon's own uid it must be exactly right. */
	f.seals = F_SEAL_SHRINK;
	CU_ASSERT_EQUAL(forge_and_adopt(&f), EPERM);
	f.seals = seals | F_SEAL_WRITE;
	CU_ASSERT_EQUAL(forge_and_adopt(&f), EPERM);
	f.seals = seals;
	f.mode = 0666;
	CU_ASSERT_EQUAL(forge_and_adopt(&f), EPERM);
	f.mode = 0600;
	f.size = IT_MIB(2);
	CU_ASSERT_EQUAL(forge_and_adopt(&f), EPERM);
	other[0] = open("/dev/null", O_RDWR | O_CLOEXEC);
	CU_ASSERT_EQUAL(adopt(other, 1, record), -EPERM);
	close(other[0]);
	T_REQUIRE(pipe2(other, O_CLOEXEC) == 0);
	CU_ASSERT_EQUAL(adopt(other, 1, record), -EPERM);
	close(other[0]);
	close(other[1]);
	other[0] = memfd_create("dmaheap:system:7", MFD_CLOEXEC);
	CU_ASSERT_EQUAL(adopt(other, 1, record), -EPERM);
	close(other[0]);
	connect_again();
	CU_ASSERT_EQUAL(it_heap_stats("system")->buffers, 0);
	CU_ASSERT_EQUAL(adopt(&real, 1, record), 0);
	close(real);
}

static int alloc_as_other(void *ctx)
{
	int *pair = ctx;
	struct dmaheap_alloc_req req = {.len_bytes = IT_MIB(1),
					.fd_flags = O_RDWR,
					.count = 1};
	int sock = raw_open(it_daemon.socket);

	if (sock < 0 ||
	    raw_call(sock, DMAHEAP_OP_ALLOC, &req, sizeof(req), &reply) != 0)
		return 1;
	return raw_send(pair[1], "x", 1, reply.fds, 1) == 0 ? 0 : 2;
}

static void the_recorded_uid_is_charged_whoever_brings_it(void)
{
	struct dmaheap_adopt_record record[1];
	const struct dmaheap_quota_record *q;
	int pair[2], fd, sock;
	uint64_t bytes = 0;

	T_REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) ==
		  0);
	T_REQUIRE(it_in_child(OTHER_UID, alloc_as_other, pair) == 0);
	/* Too short for a header, but the fd comes along. */
	(void)raw_receive(pair[0], &reply);
	close(pair[0]);
	close(pair[1]);
	restart();
	fd = reply.fds[0];
	CU_ASSERT_EQUAL(adopt(&fd, 1, record), 0);
	sock = raw_open(it_daemon.socket);
	T_REQUIRE(raw_call(sock, DMAHEAP_OP_QUOTA, NULL, 0, &reply) == 0);
	q = (const void *)(reply.payload +
			   sizeof(struct dmaheap_records_reply));
	for (int i = 0; i < 2; i++)
		bytes += q[i].uid == OTHER_UID ? q[i].bytes_used : 0;
	CU_ASSERT_EQUAL(bytes, IT_MIB(1));
	close(sock);
	close(fd);
	connect_again();
}

static void what_the_new_node_cannot_hold_stays_its_holders(void)
{
	struct dmaheap_adopt_record record[1];
	int fd = it_alloc("system", IT_MIB(30), NULL);
	uint64_t *p;

	T_REQUIRE(fd >= 0);
	p = mmap(NULL, IT_MIB(30), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	T_REQUIRE(p != MAP_FAILED);
	p[99] = 12;
	it_options.config = "[daemon]\nconfine = kill\n[node]\nsize = 16M\n";
	restart();
	it_options.config = CONFIG;
	CU_ASSERT_EQUAL(adopt(&fd, 1, record), -ENOMEM);
	close(fd);
	CU_ASSERT_EQUAL(p[99], 12);
	munmap(p, IT_MIB(30));
	connect_again();
	CU_ASSERT_EQUAL(it_heap_stats("system")->buffers, 0);
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"a buffer is handed to the next daemon",
		 a_buffer_is_handed_to_the_next_daemon},
		{"the library does it by itself",
		 the_library_does_it_by_itself},
		{"two descriptors of one buffer are one",
		 two_descriptors_of_one_buffer_are_one},
		{"forged buffers are refused", forged_buffers_are_refused},
		{"the recorded uid is charged, whoever brings it",
		 the_recorded_uid_is_charged_whoever_brings_it},
		{"what the new node cannot hold stays its holder's",
		 what_the_new_node_cannot_hold_stays_its_holders},
		CU_TEST_INFO_NULL,
	};

	if (geteuid() != 0)
		t_skip("needs root to become other users");
	it_options.config = CONFIG;
	return it_main(argc, argv, tests);
}
