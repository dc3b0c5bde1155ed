/* SPDX-License-Identifier: MIT */
/* The stats segment: refused when it is odd, copied when it is being written.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <dmaheap/dmaheap.h>

#include "support/test.h"
#include "unit/client/fake.h"

static struct fake *fake;
static struct dmaheap *dh;
static struct dmaheap_stats *segment; /* as the daemon sees it */
static struct dmaheap_stats *copy;
static int segment_fd = -1;
static atomic_uint n_asked;

static void answer_stats(const struct fake_request *req,
			 struct fake_reply *reply, void *ctx)
{
	(void)ctx;
	if (req->header.opcode != DMAHEAP_OP_STATS)
		return;
	n_asked++;
	reply->fds[0] = fcntl(segment_fd, F_DUPFD_CLOEXEC, 3);
	reply->n_fds = reply->header.n_fds = 1;
}

static void make_segment(size_t bytes, int seals)
{
	segment_fd = memfd_create("stats", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	T_REQUIRE(segment_fd >= 0);
	T_REQUIRE(ftruncate(segment_fd, (off_t)bytes) == 0);
	segment = mmap(NULL, sizeof(*segment), PROT_READ | PROT_WRITE,
		       MAP_SHARED, segment_fd, 0);
	T_REQUIRE(segment != MAP_FAILED);
	segment->magic = DMAHEAP_STATS_MAGIC;
	segment->version = DMAHEAP_STATS_VERSION;
	segment->segment_bytes = bytes;
	segment->n_heaps = 1;
	T_REQUIRE(fcntl(segment_fd, F_ADD_SEALS, seals) == 0);
}

static void drop_segment(void)
{
	munmap(segment, sizeof(*segment));
	close(segment_fd);
}

static void setup(void)
{
	make_segment(sizeof(*segment), F_SEAL_SHRINK);
	copy = malloc(sizeof(*copy));
	T_REQUIRE(copy != NULL);
	fake = fake_start("s", 1, answer_stats, NULL);
	T_REQUIRE(dmaheap_connect(&dh, fake->path) == 0);
	n_asked = 0;
}

static void teardown(void)
{
	dh = dmaheap_close(dh);
	fake = fake_stop(fake);
	free(copy);
	drop_segment();
}

static void the_segment_is_asked_for_once_per_daemon(void)
{
	segment->daemon.requests = 42;
	CU_ASSERT_EQUAL(dmaheap_stats(dh, copy), 0);
	CU_ASSERT_EQUAL(copy->daemon.requests, 42);
	segment->daemon.requests = 43;
	CU_ASSERT_EQUAL(dmaheap_stats(dh, copy), 0);
	CU_ASSERT_EQUAL(copy->daemon.requests, 43);
	CU_ASSERT_EQUAL(n_asked, 1);
	fake_stop(fake);
	fake = fake_start("s", 2, answer_stats, NULL);
	CU_ASSERT_EQUAL(dmaheap_stats(dh, copy), 0);
	CU_ASSERT_EQUAL(n_asked, 2);
}

static void another_layout_is_refused(void)
{
	segment->version++;
	CU_ASSERT_EQUAL(dmaheap_stats(dh, copy), -EPROTO);
	segment->version--;
	segment->magic++;
	CU_ASSERT_EQUAL(dmaheap_stats(dh, copy), -EPROTO);
	segment->magic--;
	segment->n_heaps = DMAHEAP_STATS_HEAPS_MAX + 1;
	CU_ASSERT_EQUAL(dmaheap_stats(dh, copy), -EPROTO);
	segment->n_heaps = 1;
	CU_ASSERT_EQUAL(dmaheap_stats(dh, copy), 0);
}

static void a_segment_that_is_short_or_could_shrink_is_refused(void)
{
	drop_segment();
	make_segment(sizeof(*segment) + 4096, F_SEAL_GROW);
	CU_ASSERT_EQUAL(dmaheap_stats(dh, copy), -EPROTO);
	drop_segment();
	make_segment(4096, F_SEAL_SHRINK);
	CU_ASSERT_EQUAL(dmaheap_stats(dh, copy), -EPROTO);
}

static void a_section_left_half_written_is_busy(void)
{
	segment->node.seq = 7;
	CU_ASSERT_EQUAL(dmaheap_stats(dh, copy), -EBUSY);
	segment->node.seq = 8;
	CU_ASSERT_EQUAL(dmaheap_stats(dh, copy), 0);
}

static atomic_bool stop;

/* Writes the whole section again and again, every word the same number. */
static void *write_section(void *arg)
{
	uint64_t *words = (uint64_t *)&segment->events;
	uint64_t n = 0;

	(void)arg;
	while (!stop) {
		__atomic_store_n(words, 2 * n + 1, __ATOMIC_SEQ_CST);
		n++;
		for (size_t i = 1; i < sizeof(segment->events) / 8; i++)
			__atomic_store_n(words + i, n, __ATOMIC_RELEASE);
		__atomic_store_n(words, 2 * n, __ATOMIC_SEQ_CST);
		usleep(50);
	}
	return NULL;
}

static void a_copied_section_is_consistent(void)
{
	const uint64_t *words = (const uint64_t *)&copy->events;
	unsigned int n_torn = 0, n_good = 0;
	pthread_t thread;

	stop = false;
	pthread_create(&thread, NULL, write_section, NULL);
	for (unsigned int round = 0; round < 500; round++) {
		if (dmaheap_stats(dh, copy) != 0)
			continue;
		n_good++;
		for (size_t i = 1; i < sizeof(copy->events) / 8; i++)
			n_torn += words[i] != words[0] / 2;
	}
	stop = true;
	pthread_join(thread, NULL);
	CU_ASSERT_EQUAL(n_torn, 0);
	CU_ASSERT(n_good > 400);
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"the segment is asked for once per daemon",
		 the_segment_is_asked_for_once_per_daemon},
		{"another layout is refused", another_layout_is_refused},
		{"a segment that is short or could shrink is refused",
		 a_segment_that_is_short_or_could_shrink_is_refused},
		{"a section left half written is busy",
		 a_section_left_half_written_is_busy},
		{"a copied section is consistent",
		 a_copied_section_is_consistent},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "stats",
		 .pSetUpFunc = setup,
		 .pTearDownFunc = teardown,
		 .pTests = tests},
		CU_SUITE_INFO_NULL,
	};
	int r = t_main(argc, argv, suites);

	fake_dir_remove();
	return r;
}
