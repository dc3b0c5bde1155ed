/* SPDX-License-Identifier: MIT */
/* The library when memory, address space or the socket gives out. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <dmaheap/dmaheap.h>

#include "support/fail_malloc.h"
#include "support/faults.h"
#include "support/test.h"
#include "unit/client/fake.h"

static struct fake *fake;

static void setup(void)
{
	fake = fake_start("s", 1, NULL, NULL);
}

static void teardown(void)
{
	faults_clear();
	fake = fake_stop(fake);
}

/* Return: mappings of this process. */
static unsigned int count_mappings(void)
{
	FILE *file = fopen("/proc/self/maps", "re");
	unsigned int n = 0;
	int c;

	T_REQUIRE(file != NULL);
	while ((c = getc(file)) != EOF)
		n += c == '\n';
	fclose(file);
	return n;
}

static void connecting_without_memory_leaves_nothing(void)
{
	unsigned int n_fds = fake_count_fds(), n_failed = 0;

	FAIL_MALLOC_EACH({
		struct dmaheap *dh = NULL;
		int r = dmaheap_connect(&dh, fake->path);

		CU_ASSERT_EQUAL(r, fail_malloc_hit() ? -ENOMEM : 0);
		n_failed += r == -ENOMEM;
		dmaheap_close(dh);
	});
	CU_ASSERT(n_failed >= 2);
	CU_ASSERT(fake_settle_fds(n_fds));
}

static void buffers_are_handed_over_once_there_is_memory(void)
{
	struct dmaheap_hello_reply hello;
	struct dmaheap *dh;
	int fds[2], r;

	T_REQUIRE(dmaheap_connect(&dh, fake->path) == 0);
	T_REQUIRE(dmaheap_alloc_many(dh, NULL, 4096, O_RDWR | O_CLOEXEC, 0, 2,
				     fds) == 0);
	fake_stop(fake);
	fake = fake_start("s", 2, NULL, NULL);
	fail_malloc_at(1);
	r = dmaheap_hello(dh, &hello);
	CU_ASSERT_EQUAL(r, -ENOMEM);
	CU_ASSERT_EQUAL(fake->n_adopted, 0);
	fail_malloc_at(0);
	CU_ASSERT_EQUAL(dmaheap_hello(dh, &hello), 0);
	CU_ASSERT_EQUAL(fake->n_adopted, 2);
	close(fds[0]);
	close(fds[1]);
	dmaheap_close(dh);
}

static void a_buffer_is_given_also_without_memory_to_remember_it(void)
{
	struct dmaheap *dh;
	int fd;

	T_REQUIRE(dmaheap_connect(&dh, fake->path) == 0);
	fail_malloc_every(1);
	fd = dmaheap_alloc(dh, NULL, 4096, O_RDWR | O_CLOEXEC, 0);
	fail_malloc_every(0);
	CU_ASSERT(fd >= 0);
	close(fd);
	dmaheap_close(dh);
}

static void a_mapping_that_fails_leaves_no_address_space_taken(void)
{
	int fd = fake_buffer(8192, "dmaheap:system:1");
	unsigned int n = count_mappings();

	for (unsigned int i = 0; i < 40; i++) {
		void *map;

		faults_arm(FAULT_MMAP, i % 2, 1, ENOMEM);
		errno = 0;
		map = dmaheap_map(fd, 8192, PROT_READ);
		CU_ASSERT_PTR_EQUAL(map, MAP_FAILED);
		CU_ASSERT_EQUAL(errno, ENOMEM);
		CU_ASSERT_EQUAL(faults_hits(FAULT_MMAP), 1);
		faults_clear();
	}
	/* A sanitizer may map a few for itself. */
	CU_ASSERT(count_mappings() < n + 20);
	close(fd);
}

static void a_request_that_cannot_be_sent_is_an_error_of_its_own(void)
{
	struct dmaheap *dh;
	int fd;

	T_REQUIRE(dmaheap_connect(&dh, fake->path) == 0);
	/* The fake sends only what it is asked: the next one is ours. */
	faults_arm(FAULT_SENDMSG, 0, 1, ENOBUFS);
	fd = dmaheap_alloc(dh, NULL, 4096, O_RDWR | O_CLOEXEC, 0);
	CU_ASSERT_EQUAL(fd, -ENOBUFS);
	faults_clear();
	fd = dmaheap_alloc(dh, NULL, 4096, O_RDWR | O_CLOEXEC, 0);
	CU_ASSERT(fd >= 0);
	close(fd);
	CU_ASSERT_EQUAL(fake->n_connections, 1);
	dmaheap_close(dh);
}

static void a_listener_whose_owner_cannot_be_asked_is_not_used(void)
{
	struct dmaheap *dh = NULL;

	faults_arm(FAULT_GETSOCKOPT, 0, 1, ENOBUFS);
	CU_ASSERT_EQUAL(dmaheap_connect(&dh, fake->path), -ENOBUFS);
	CU_ASSERT_PTR_NULL(dh);
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"connecting without memory leaves nothing",
		 connecting_without_memory_leaves_nothing},
		{"buffers are handed over once there is memory",
		 buffers_are_handed_over_once_there_is_memory},
		{"a buffer is given also without memory to remember it",
		 a_buffer_is_given_also_without_memory_to_remember_it},
		{"a mapping that fails leaves no address space taken",
		 a_mapping_that_fails_leaves_no_address_space_taken},
		{"a request that cannot be sent is an error of its own",
		 a_request_that_cannot_be_sent_is_an_error_of_its_own},
		{"a listener whose owner cannot be asked is not used",
		 a_listener_whose_owner_cannot_be_asked_is_not_used},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "faults",
		 .pSetUpFunc = setup,
		 .pTearDownFunc = teardown,
		 .pTests = tests},
		CU_SUITE_INFO_NULL,
	};
	int r = t_main(argc, argv, suites);

	fake_dir_remove();
	return r;
}
