/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "backing/memfd.h"
#include "harness.h"
#include "support/faults.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static struct harness h;
static struct backing_identity id;
static char error[BACKING_ERROR_BYTES];

static void setup(void)
{
	harness_start(&h, NULL);
}

static void teardown(void)
{
	harness_stop(&h);
}

/* A buffer of the daemon before this one: a client's descriptor of it. */
static int orphan(uint64_t bytes)
{
	struct backing_buffer *bb;
	int fd;

	bb = harness_make(&h, bytes);
	fd = harness_open(&h, bb, O_RDWR);
	T_REQUIRE(pwrite(fd, "kept", 4, 0) == 4);
	harness_stop(&h);
	harness_start(&h, NULL);
	return fd;
}

static void a_buffer_outlives_its_daemon_and_is_adopted(void)
{
	struct backing_buffer *bb = NULL, *again = NULL;
	int fd = orphan(MIB(1) + KIB(8));
	struct backing_stats stats;
	char text[5] = "";

	T_REQUIRE(backing_adopt(h.b, fd, &bb, &id, error) == 0);
	CU_ASSERT_EQUAL(id.uid, 1000);
	CU_ASSERT_EQUAL(id.id, 7);
	CU_ASSERT_EQUAL(id.size_bytes, MIB(1) + KIB(8));
	CU_ASSERT_EQUAL(id.page_size_bytes, 4096);
	CU_ASSERT_STRING_EQUAL(id.heap, "system");
	CU_ASSERT_EQUAL(id.blocks[8], 1);
	CU_ASSERT_EQUAL(id.blocks[0], 2);
	backing_get_stats(h.b, &stats);
	CU_ASSERT_EQUAL(stats.resident_bytes, MIB(1) + KIB(8));
	CU_ASSERT_EQUAL(pread(fd, text, 4, 0), 4);
	CU_ASSERT_STRING_EQUAL(text, "kept");
	/* From a second holder it is the same buffer. */
	CU_ASSERT_EQUAL(backing_adopt(h.b, fd, &again, &id, error),
			BACKING_E_KNOWN);
	CU_ASSERT_PTR_EQUAL(again, bb);
	h.n_released = 0;
	close(fd);
	harness_wait(&h, &h.n_released, 1);
	CU_ASSERT_EQUAL(harness_recycle(&h, bb), BACKING_PARKABLE);
	fd = harness_open(&h, bb, O_RDWR);
	CU_ASSERT_TRUE(harness_is_zero(fd, MIB(1) + KIB(8)));
	h.n_released = 0;
	close(fd);
	harness_wait(&h, &h.n_released, 1);
	backing_drop(h.b, bb);
}

static void a_read_only_descriptor_is_enough(void)
{
	struct backing_buffer *bb = NULL;
	int fd = orphan(KIB(64)), reader = -1;

	T_REQUIRE(memfd_reopen(fd, O_RDONLY, &reader) == 0);
	close(fd);
	T_REQUIRE(backing_adopt(h.b, reader, &bb, &id, error) == 0);
	h.n_released = 0;
	close(reader);
	harness_wait(&h, &h.n_released, 1);
	backing_drop(h.b, bb);
}

static void a_holder_with_a_lease_does_not_block_the_daemon(void)
{
	struct backing_buffer *bb = NULL;
	int fd = orphan(KIB(64));

	/* Only a client of the daemon's own uid can do this. */
	T_REQUIRE(fcntl(fd, F_SETLEASE, F_WRLCK) == 0);
	CU_ASSERT_EQUAL(backing_adopt(h.b, fd, &bb, &id, error),
			BACKING_E_FOREIGN);
	CU_ASSERT_PTR_NOT_NULL(strstr(error, "cannot be reopened"));
	close(fd);
}

/* A second daemon would never learn that the buffer's last client is gone, and
 * the first neither. */
static void a_living_daemons_buffer_is_refused_until_it_ends(void)
{
	struct backing_buffer *bb = harness_make(&h, KIB(64)), *adopted = NULL;
	int fd = harness_open(&h, bb, O_RDWR);
	struct backing_stats stats;
	struct harness other = {0};

	harness_start(&other, NULL);
	CU_ASSERT_EQUAL(backing_adopt(other.b, fd, &adopted, &id, error),
			BACKING_E_FOREIGN);
	CU_ASSERT_PTR_NOT_NULL(strstr(error, "another living daemon's"));
	backing_get_stats(other.b, &stats);
	CU_ASSERT_EQUAL(stats.n_buffers + stats.resident_bytes, 0);
	harness_stop(&h);
	CU_ASSERT_EQUAL(backing_adopt(other.b, fd, &adopted, &id, error), 0);
	harness_start(&h, NULL);
	CU_ASSERT_EQUAL(backing_adopt(h.b, fd, &bb, &id, error),
			BACKING_E_FOREIGN);
	other.n_released = 0;
	close(fd);
	harness_wait(&other, &other.n_released, 1);
	backing_drop(other.b, adopted);
	harness_stop(&other);
}

static void what_cannot_be_claimed_is_never_adopted(void)
{
	struct backing_buffer *bb = NULL;
	int fd;

	faults_arm(FAULT_CLAIM, 0, 1, ENOLCK);
	fd = orphan(KIB(64));
	CU_ASSERT_EQUAL(faults_hits(FAULT_CLAIM), 1);
	CU_ASSERT_EQUAL(backing_adopt(h.b, fd, &bb, &id, error),
			BACKING_E_FOREIGN);
	CU_ASSERT_PTR_NOT_NULL(strstr(error, "has no attribute"));
	close(fd);
	fd = orphan(KIB(64));
	faults_arm(FAULT_CLAIM, 0, 1, ENOLCK);
	CU_ASSERT_EQUAL(backing_adopt(h.b, fd, &bb, &id, error),
			BACKING_E_FOREIGN);
	faults_clear();
	close(fd);
}

static void a_forgotten_buffer_is_its_holders_again(void)
{
	struct backing_buffer *bb = NULL;
	int fd = orphan(KIB(64));
	struct backing_stats stats;
	char text[5] = "";

	T_REQUIRE(backing_adopt(h.b, fd, &bb, &id, error) == 0);
	backing_forget(h.b, bb);
	backing_get_stats(h.b, &stats);
	CU_ASSERT_EQUAL(stats.resident_bytes, 0);
	CU_ASSERT_EQUAL(stats.n_buffers, 0);
	CU_ASSERT_EQUAL(pread(fd, text, 4, 0), 4);
	CU_ASSERT_STRING_EQUAL(text, "kept");
	close(fd);
}

/* Forgeries: each lacks one thing. */

static void expect_refused(int fd, const char *why)
{
	struct backing_buffer *bb = NULL;

	error[0] = '\0';
	CU_ASSERT_EQUAL(backing_adopt(h.b, fd, &bb, &id, error),
			BACKING_E_FOREIGN);
	CU_ASSERT_PTR_NOT_NULL(strstr(error, why));
	CU_ASSERT_PTR_NULL(bb);
	if (!strstr(error, why))
		printf("got: %s\n", error);
	close(fd);
}

/* As the daemon makes them, but for the seals, size and mode given. */
static int forge(off_t size, int mode, int seals,
		 const struct backing_identity *identity)
{
	int fd = memfd_create("dmaheap:system:1",
			      MFD_CLOEXEC | MFD_ALLOW_SEALING);

	T_REQUIRE(fd >= 0 && ftruncate(fd, size) == 0);
	T_REQUIRE(fchmod(fd, (mode_t)mode) == 0);
	if (identity)
		T_REQUIRE(memfd_write_identity(fd, identity) == 0);
	T_REQUIRE(fcntl(fd, F_ADD_SEALS, seals) == 0);
	return fd;
}

static struct backing_identity honest(void)
{
	return (struct backing_identity){.id = 1,
					 .uid = 1000,
					 .size_bytes = KIB(8),
					 .page_size_bytes = 4096,
					 .heap = "system",
					 .blocks = {2}};
}

static void forgeries_are_refused_each_with_its_reason(void)
{
	struct backing_identity a = honest();
	int pipe_fds[2], fd;

	T_REQUIRE(pipe(pipe_fds) == 0);
	expect_refused(pipe_fds[0], "no seals");
	close(pipe_fds[1]);
	fd = open("/tmp", O_TMPFILE | O_RDWR, 0600);
	if (fd >= 0)
		expect_refused(fd, "seals");
	expect_refused(memfd_create("x", MFD_CLOEXEC), "seals");
	expect_refused(forge(KIB(8), 0600, F_SEAL_SHRINK | F_SEAL_GROW, &a),
		       "seals");
	expect_refused(forge(KIB(8), 0600, SEALS | F_SEAL_WRITE, &a), "seals");
	expect_refused(forge(KIB(8), 0666, SEALS, &a), "mode");
	expect_refused(forge(KIB(8), 0600, SEALS, NULL), "attribute");
	expect_refused(forge(KIB(12), 0600, SEALS, &a), "size");
	a = honest();
	a.blocks[0] = 3;
	expect_refused(forge(KIB(8), 0600, SEALS, &a), "add up");
	a = honest();
	a.page_size_bytes = 3000;
	expect_refused(forge(KIB(8), 0600, SEALS, &a), "page size");
	a = honest();
	memset(a.heap, 'x', sizeof(a.heap));
	expect_refused(forge(KIB(8), 0600, SEALS, &a), "malformed");
	a = honest();
	a.heap[0] = '\0';
	expect_refused(forge(KIB(8), 0600, SEALS, &a), "malformed");
	fd = forge(KIB(8), 0600, SEALS, NULL);
	T_REQUIRE(fsetxattr(fd, "user.dmaheap", "short", 5, 0) == 0);
	expect_refused(fd, "attribute");
	fd = forge(KIB(8), 0600, SEALS, NULL);
	CU_ASSERT_EQUAL(fcntl(fd, F_SETFD, FD_CLOEXEC), 0);
	close(fd);
}

static void another_users_memfd_is_refused(void)
{
	struct backing_identity a = honest();
	int fd;

	if (geteuid() != 0) {
		printf(" (needs root: not tried) ");
		return;
	}
	fd = forge(KIB(8), 0600, SEALS, &a);
	T_REQUIRE(fchown(fd, 12345, 12345) == 0);
	expect_refused(fd, "another user");
}

static void an_o_path_descriptor_is_refused(void)
{
	int fd = orphan(KIB(64));
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	expect_refused(open(path, O_PATH | O_CLOEXEC), "seals");
	close(fd);
}

static void a_resized_buffer_cannot_exist(void)
{
	int fd = orphan(KIB(64));

	CU_ASSERT_EQUAL(ftruncate(fd, KIB(128)), -1);
	CU_ASSERT_EQUAL(ftruncate(fd, 0), -1);
	CU_ASSERT_EQUAL(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
	close(fd);
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"a living daemon's buffer is refused until it ends",
		 a_living_daemons_buffer_is_refused_until_it_ends},
		{"what cannot be claimed is never adopted",
		 what_cannot_be_claimed_is_never_adopted},
		{"a buffer outlives its daemon and is adopted",
		 a_buffer_outlives_its_daemon_and_is_adopted},
		{"a read-only descriptor is enough",
		 a_read_only_descriptor_is_enough},
		{"a holder with a lease does not block the daemon",
		 a_holder_with_a_lease_does_not_block_the_daemon},
		{"a forgotten buffer is its holder's again",
		 a_forgotten_buffer_is_its_holders_again},
		{"forgeries are refused, each with its reason",
		 forgeries_are_refused_each_with_its_reason},
		{"another user's memfd is refused",
		 another_users_memfd_is_refused},
		{"an O_PATH descriptor is refused",
		 an_o_path_descriptor_is_refused},
		{"a resized buffer cannot exist",
		 a_resized_buffer_cannot_exist},
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
