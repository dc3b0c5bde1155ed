/* SPDX-License-Identifier: MIT */
/* The daemon's small objects: where they come from, and who watches them. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "integration/common.h"

#define N_BUFFERS 40u

/* A row of slabinfo: objects in use and pages held. */
struct row {
	unsigned int active, total, slabs;
};

static struct row slabinfo(const char *name)
{
	char *text = it_node_text(DMAHEAP_NODE_SLABINFO), pattern[64];
	struct row row = {0};
	const char *line;
	unsigned int active_slabs;

	(void)snprintf(pattern, sizeof(pattern), "\n%s ", name);
	line = strstr(text, pattern);
	T_REQUIRE(line);
	T_REQUIRE(sscanf(line + strlen(pattern), "%u %u", &row.active,
			 &row.total) == 2);
	line = strstr(line, "slabdata");
	T_REQUIRE(line);
	T_REQUIRE(sscanf(line, "slabdata %u %u", &active_slabs, &row.slabs) ==
		  2);
	free(text);
	return row;
}

static void take(unsigned int n, int *fds)
{
	struct dmaheap_alloc_report report;

	for (unsigned int i = 0; i < n; i++) {
		fds[i] = it_alloc("system", IT_KIB(64), &report);
		T_REQUIRE(fds[i] >= 0);
	}
}

static void give(unsigned int n, const int *fds)
{
	for (unsigned int i = 0; i < n; i++)
		close(fds[i]);
	CU_ASSERT_TRUE(it_wait_all_free("system"));
}

static void objects_come_from_slab_caches(void)
{
	struct row before = slabinfo("buffer"), row;
	int fds[N_BUFFERS];

	CU_ASSERT_EQUAL(slabinfo("session").active, 1);
	CU_ASSERT_EQUAL(slabinfo("conn").active, 1);
	take(N_BUFFERS, fds);
	row = slabinfo("buffer");
	CU_ASSERT_EQUAL(row.active, before.active + N_BUFFERS);
	CU_ASSERT(row.slabs > before.slabs && row.total >= row.active);
	CU_ASSERT_EQUAL(slabinfo("live").active, N_BUFFERS);
	give(N_BUFFERS, fds);
	CU_ASSERT_EQUAL(it_shrink(0), 0);
	CU_ASSERT_EQUAL(slabinfo("buffer").active, 0);
	CU_ASSERT_EQUAL(slabinfo("buffer").slabs, 0); /* the node's again */
	CU_ASSERT_EQUAL(slabinfo("live").active, 0);
}

static void a_busy_daemon_misuses_no_object(void)
{
	int fds[N_BUFFERS];
	char *log;

	for (int round = 0; round < 20; round++) {
		take(N_BUFFERS, fds);
		give(N_BUFFERS, fds);
		if (round % 5 == 4)
			CU_ASSERT_EQUAL(it_shrink(0), 0);
	}
	log = daemon_log_text(&it_daemon);
	T_REQUIRE(log);
	CU_ASSERT_PTR_NULL(strstr(log, "object-misuse"));
	free(log);
}

/* A daemon of its own, since all objects have to come from malloc. */
static void objects_may_come_from_malloc(void)
{
	const struct daemon_options options = {
		.config = "[daemon]\nobjects = malloc\ndebug_objects = on\n"
			  "[node]\nsize = 64M\n"};
	struct dmaheap *dh = NULL;
	struct daemon d;
	int fd;

	T_REQUIRE(daemon_start(&d, &options));
	T_REQUIRE(dmaheap_connect(&dh, d.socket) == 0);
	fd = dmaheap_alloc(dh, "system", IT_MIB(1), O_RDWR | O_CLOEXEC, 0);
	CU_ASSERT(fd >= 0);
	close(fd);
	dmaheap_close(dh);
	CU_ASSERT_TRUE(daemon_stop(&d));
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"objects come from slab caches",
		 objects_come_from_slab_caches},
		{"a busy daemon misuses no object",
		 a_busy_daemon_misuses_no_object},
		{"objects may come from malloc", objects_may_come_from_malloc},
		CU_TEST_INFO_NULL,
	};

	it_options.config = "[daemon]\ndebug_objects = on\n"
			    "[node]\nsize = 256M\n";
	return it_main(argc, argv, tests);
}
