/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "integration/common.h"
#include "support/raw.h"

#define CONFIG "[daemon]\nconfine = kill\n[node]\nsize = 512M\n"

#define CONFIG_EVENT                                                           \
	"[daemon]\nconfine = kill\nclock = event\n[node]\nsize = 512M\n"

static struct raw_reply reply;
static struct dmaheap_alloc_report report;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int press(uint32_t kind, uint32_t flags, uint64_t leave_bytes,
		 uint32_t max_order)
{
	struct dmaheap_pressure_req req = {.kind = kind,
					   .flags = flags,
					   .leave_bytes = leave_bytes,
					   .max_order = max_order};

	return (int)it_call(it_dh, DMAHEAP_OP_PRESSURE, &req, sizeof(req), NULL,
			    0);
}

static uint64_t vmstat(const char *name)
{
	const struct dmaheap_stats *s = it_stats();

	for (uint64_t i = 0; i < s->vmstat.n_items; i++)
		if (!strcmp(s->vmstat.item[i].name, name))
			return s->vmstat.item[i].value;
	CU_FAIL("no such counter");
	fprintf(stderr, "no counter %s\n", name);
	return 0;
}

static uint64_t free_bytes(void)
{
	return it_stats()->node.zone[0].free_bytes;
}

/* 10 MiB, reported and freed. Return: how long it took the client. */
static uint64_t alloc_10m(void)
{
	uint64_t start = now_ns(), took;
	int fd = it_alloc("system", IT_MIB(10), &report);

	took = now_ns() - start;
	if (fd < 0) {
		CU_FAIL("no buffer");
		fprintf(stderr, "alloc: %s\n", it_error);
		return 0;
	}
	close(fd);
	return took;
}

static void low_memory_stalls_mid_order_and_not_high_order(void)
{
	uint64_t before, took, wakes;

	T_REQUIRE(it_set_policy("system", "pool.limit=0\n") == 0);
	T_REQUIRE(press(DMAHEAP_PRESSURE_LOW_MEMORY, 0, 0, 0) == 0);
	before = vmstat("compact_stall");
	wakes = vmstat("allocstall_normal");
	alloc_10m();
	CU_ASSERT_EQUAL(report.modelled_stall_ns, 0);
	CU_ASSERT_EQUAL(vmstat("compact_stall"), before);
	CU_ASSERT_EQUAL(vmstat("allocstall_normal"), wakes);
	T_REQUIRE(it_set_policy("system", "gfp.4=MID_ORDER\n") == 0);
	/* The first may still find what kswapd has freed. */
	for (int i = 0; i < 8; i++) {
		took = alloc_10m();
		if (report.modelled_stall_ns)
			break;
	}
	CU_ASSERT_TRUE(report.modelled_stall_ns > 0);
	CU_ASSERT_TRUE(took >= report.modelled_stall_ns);
	CU_ASSERT_TRUE(report.measured_total_ns >= report.modelled_stall_ns);
	CU_ASSERT_TRUE(vmstat("compact_stall") > before);
}

/* As README.md tells a tester: what is parked does not need the node. */
static void a_parked_buffer_never_stalls_and_shrinking_drops_it(void)
{
	alloc_10m();
	T_REQUIRE(it_wait_all_free("system"));
	T_REQUIRE(press(DMAHEAP_PRESSURE_LOW_MEMORY, 0, 0, 0) == 0);
	T_REQUIRE(it_set_policy("system", "gfp.4=MID_ORDER\n") == 0);
	alloc_10m();
	CU_ASSERT_EQUAL(report.source, DMAHEAP_SOURCE_PARKED);
	CU_ASSERT_EQUAL(report.modelled_stall_ns, 0);
	T_REQUIRE(it_wait_all_free("system"));
	T_REQUIRE(press(DMAHEAP_PRESSURE_RELEASE, 0, 0, 0) == 0);
	T_REQUIRE(it_shrink(0) == 0);
	T_REQUIRE(press(DMAHEAP_PRESSURE_LOW_MEMORY, 0, 0, 0) == 0);
	alloc_10m();
	CU_ASSERT_NOT_EQUAL(report.source, DMAHEAP_SOURCE_PARKED);
	CU_ASSERT_TRUE(report.modelled_stall_ns > 0);
}

static void native_latency_reports_the_stall_and_does_not_wait(void)
{
	daemon_write_config(&it_daemon,
			    "[daemon]\nconfine = kill\nlatency = native\n"
			    "[node]\nsize = 512M\n[heap system]\n"
			    "pool.limit = 0\ngfp.4 = MID_ORDER\n");
	T_REQUIRE(it_call(it_dh, DMAHEAP_OP_RELOAD, NULL, 0, reply.payload,
			  sizeof(reply.payload)) >= 0);
	T_REQUIRE(press(DMAHEAP_PRESSURE_LOW_MEMORY, 0, 0, 0) == 0);
	for (int i = 0; i < 8; i++) {
		alloc_10m();
		if (report.modelled_stall_ns)
			break;
	}
	CU_ASSERT_TRUE(report.modelled_stall_ns > 0);
	CU_ASSERT_EQUAL(report.waited_stall_ns, 0);
}

static void device_latency_pads_to_the_modelled_time(void)
{
	daemon_write_config(&it_daemon,
			    "[daemon]\nconfine = kill\nlatency = device\n"
			    "[node]\nsize = 512M\n[heap system]\n"
			    "pool.limit = 0\npolicy = 0-only\n");
	T_REQUIRE(it_call(it_dh, DMAHEAP_OP_RELOAD, NULL, 0, reply.payload,
			  sizeof(reply.payload)) >= 0);
	alloc_10m();
	CU_ASSERT_TRUE(report.modelled_node_ns > 0);
	CU_ASSERT_TRUE(report.measured_total_ns >= report.modelled_node_ns);
}

static void one_clients_stall_does_not_delay_another(void)
{
	struct dmaheap_inject_req inject = {.uid = DMAHEAP_INJECT_ANY_ID,
					    .pid = DMAHEAP_INJECT_ANY_ID,
					    .stall_ms = 500,
					    .count = 1};
	struct dmaheap_alloc_req req = {.len_bytes = 4096,
					.fd_flags = O_RDWR,
					.count = 1};
	int sock = raw_open(it_daemon.socket);
	uint64_t start;
	int fd;

	T_REQUIRE(sock >= 0);
	T_REQUIRE(it_call(it_dh, DMAHEAP_OP_INJECT, &inject, sizeof(inject),
			  NULL, 0) == 0);
	raw_request(sock, DMAHEAP_OP_ALLOC, &req, sizeof(req), NULL, 0);
	T_REQUIRE(raw_call(sock, DMAHEAP_OP_HEAPS, NULL, 0, &reply) == 0);
	start = now_ns();
	fd = it_alloc("system", 4096, &report);
	CU_ASSERT_TRUE(fd >= 0);
	close(fd);
	/* The stalled one's reply has not come yet. */
	CU_ASSERT_TRUE(now_ns() - start < 400000000u);
	CU_ASSERT_EQUAL(raw_receive(sock, &reply), 0);
	CU_ASSERT_EQUAL(reply.header.opcode, DMAHEAP_OP_ALLOC);
	close(reply.fds[0]);
	close(sock);
}

static void pressure_ends_with_its_connection_unless_it_is_to_be_kept(void)
{
	struct dmaheap_pressure_req req = {.kind = DMAHEAP_PRESSURE_FILL,
					   .leave_bytes = IT_MIB(64)};
	uint64_t at_first = free_bytes();
	int sock = raw_open(it_daemon.socket);

	T_REQUIRE(sock >= 0);
	CU_ASSERT_EQUAL(raw_call(sock, DMAHEAP_OP_PRESSURE, &req, sizeof(req),
				 &reply),
			0);
	CU_ASSERT_TRUE(free_bytes() <= IT_MIB(64));
	close(sock);
	for (int i = 0; i < 1000 && free_bytes() <= IT_MIB(64); i++)
		;
	CU_ASSERT_TRUE(free_bytes() > at_first - IT_MIB(4));
	sock = raw_open(it_daemon.socket);
	req.flags = DMAHEAP_PRESSURE_KEEP;
	raw_call(sock, DMAHEAP_OP_PRESSURE, &req, sizeof(req), &reply);
	close(sock);
	for (int i = 0; i < 100; i++)
		CU_ASSERT_TRUE(free_bytes() <= IT_MIB(64));
	CU_ASSERT_EQUAL(press(DMAHEAP_PRESSURE_RELEASE, 0, 0, 0), 0);
	CU_ASSERT_TRUE(free_bytes() > at_first - IT_MIB(4));
}

static void fragmenting_leaves_no_large_block(void)
{
	const struct dmaheap_stats_zone *z;
	uint64_t above = 0;

	T_REQUIRE(press(DMAHEAP_PRESSURE_FRAGMENT, 0, 0, 3) == 0);
	z = &it_stats()->node.zone[0];
	for (int i = 4; i < 11; i++)
		above += z->free_blocks[i];
	CU_ASSERT_EQUAL(above, 0);
	CU_ASSERT_TRUE(z->unusable_free_index[8] == 1000);
	alloc_10m();
	IT_COMPOSITION(&report, 0, 0, 2560);
	CU_ASSERT_EQUAL(press(DMAHEAP_PRESSURE_RELEASE, 0, 0, 0), 0);
}

static void every_page_is_accounted_for_at_every_step(void)
{
	/* Debug builds assert it after each request; here as a client sees. */
	for (int i = 0; i < 10; i++) {
		alloc_10m();
		press(i % 2 ? DMAHEAP_PRESSURE_RELEASE
			    : DMAHEAP_PRESSURE_LOW_MEMORY,
		      0, 0, 0);
	}
	press(DMAHEAP_PRESSURE_RELEASE, 0, 0, 0);
	CU_ASSERT_TRUE(it_wait_all_free("system"));
	CU_ASSERT_EQUAL(it_shrink(0), 0);
}

#define N_SCRIPT 24

static bool as_many_live(void *n_live)
{
	return it_heap_stats("system")->buffers == *(uint64_t *)n_live;
}

/*
 * The daemon itself waits for a release before it takes the next request, if it
 * can know of it at once; where only the sweep finds out, we wait for that.
 */
static void close_and_wait(int fd, uint64_t n_left)
{
	close(fd);
	if (strcmp(it_stats()->daemon.lifetime, "exact"))
		CU_ASSERT_TRUE(wait_until(as_many_live, &n_left, 5000));
}

/* A client's script on a fresh node; what it was told of each step. */
static void run_script(struct dmaheap_alloc_report *ret)
{
	int fds[4] = {-1, -1, -1, -1};

	T_REQUIRE(it_set_policy("system", "gfp.4=MID_ORDER\n") == 0);
	T_REQUIRE(press(DMAHEAP_PRESSURE_LOW_MEMORY, 0, 0, 0) == 0);
	for (unsigned int i = 0; i < N_SCRIPT; i++) {
		int *fd = &fds[i * 5 % 4];

		if (*fd >= 0)
			close_and_wait(*fd, 3);
		*fd = it_alloc("system", IT_KIB(4) * (1 + i * 97 % 1500),
			       &ret[i]);
		CU_ASSERT_TRUE(*fd >= 0);
	}
	for (int i = 0; i < 4; i++)
		close(fds[i]);
}

static void with_the_event_clock_every_run_is_the_same(void)
{
	static struct dmaheap_alloc_report runs[2][N_SCRIPT];
	uint64_t stall = 0;

	it_options.config = CONFIG_EVENT;
	for (int r = 0; r < 2; r++) {
		it_options.keep_dir = true;
		it_dh = dmaheap_close(it_dh);
		daemon_kill(&it_daemon);
		T_REQUIRE(daemon_start(&it_daemon, &it_options));
		it_options.keep_dir = false;
		T_REQUIRE(dmaheap_connect(&it_dh, it_daemon.socket) == 0);
		run_script(runs[r]);
	}
	it_options.config = CONFIG;
	for (int i = 0; i < N_SCRIPT; i++) {
		const struct dmaheap_alloc_report *a = &runs[0][i];
		const struct dmaheap_alloc_report *b = &runs[1][i];

		stall += a->modelled_stall_ns;
		CU_ASSERT_EQUAL(a->id, b->id);
		CU_ASSERT_EQUAL(a->source, b->source);
		CU_ASSERT_EQUAL(memcmp(a->blocks, b->blocks, sizeof(a->blocks)),
				0);
		CU_ASSERT_EQUAL(a->modelled_node_ns, b->modelled_node_ns);
		CU_ASSERT_EQUAL(a->modelled_stall_ns, b->modelled_stall_ns);
	}
	CU_ASSERT_TRUE(stall > 0);
}

static int sealed(const char *text)
{
	int fd = memfd_create("text", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (write(fd, text, strlen(text)) != (ssize_t)strlen(text) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK) <
		    0)
		abort();
	return fd;
}

static int play(int sock, const char *text)
{
	struct dmaheap_pressure_req req = {.kind = DMAHEAP_PRESSURE_PLAY,
					   .fd_kinds = {DMAHEAP_TEXT_SCENARIO}};
	int fd = sealed(text), r;

	r = raw_request(sock, DMAHEAP_OP_PRESSURE, &req, sizeof(req), &fd, 1);
	if (!r)
		r = raw_receive(sock, &reply);
	close(fd);
	return r ? r : reply.header.status;
}

static bool is_playing(void)
{
	struct dmaheap_pressure_req req = {.kind = DMAHEAP_PRESSURE_STATUS};
	char text[1024] = "";

	it_call(it_dh, DMAHEAP_OP_PRESSURE, &req, sizeof(req), text,
		sizeof(text) - 1);
	return strstr(text, "scenario=playing");
}

static void a_scenario_is_played_live(void)
{
	int sock = raw_open(it_daemon.socket);
	uint64_t before = it_heap_stats("system")->allocs;

	T_REQUIRE(sock >= 0);
	CU_ASSERT_EQUAL(play(sock, "[scenario]\ntitle = t\n[step nonsense]\n"),
			-EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(reply.payload, "scenario:3: "));
	CU_ASSERT_EQUAL(play(sock, "[scenario]\ntitle = t\n[table one]\n"
				   "[step repeat]\ncount = 3\n"
				   "[step alloc]\nsize = 1M\ncount = 2\n"
				   "[step sleep]\ntime = 1ms\n"
				   "[step end]\n"
				   "[step free]\ncount = 2\n"),
			0);
	for (int i = 0; i < 5000 && is_playing(); i++)
		;
	CU_ASSERT_FALSE(is_playing());
	CU_ASSERT_EQUAL(it_heap_stats("system")->allocs, before + 6);
	/* What it still held went with its end. */
	CU_ASSERT_EQUAL(it_heap_stats("system")->buffers, 0);
	/* An endless one ends with its connection. */
	CU_ASSERT_EQUAL(play(sock, "[scenario]\ntitle = t\n[table one]\n"
				   "[step alloc]\nsize = 1M\ncount = 1000\n"
				   "every = 1s\n"),
			0);
	CU_ASSERT_TRUE(is_playing());
	close(sock);
	for (int i = 0; i < 5000 && is_playing(); i++)
		;
	CU_ASSERT_FALSE(is_playing());
}

static bool trace_has(int fd, const char *text)
{
	static char buf[1 << 16];
	size_t n = 0;
	ssize_t r;

	fcntl(fd, F_SETFL, O_NONBLOCK);
	for (int i = 0; i < 2000; i++) {
		const struct timespec ms = {.tv_nsec = 1000000};

		r = read(fd, buf + n, sizeof(buf) - 1 - n);
		n += r > 0 ? (size_t)r : 0;
		buf[n] = '\0';
		if (strstr(buf, text))
			return true;
		nanosleep(&ms, NULL);
	}
	fprintf(stderr, "trace: %s\n", buf);
	return false;
}

static void a_trace_tells_what_happens(void)
{
	struct dmaheap_trace_req req = {0};
	int sock = raw_open(it_daemon.socket);

	T_REQUIRE(sock >= 0);
	T_REQUIRE(raw_call(sock, DMAHEAP_OP_TRACE, &req, sizeof(req), &reply) ==
		  0);
	T_REQUIRE(reply.n_fds == 1);
	CU_ASSERT_TRUE(trace_has(reply.fds[0], "dmaheap-trace 1\nnode size="));
	alloc_10m();
	CU_ASSERT_TRUE(trace_has(reply.fds[0], "heap=system uid=0 "
					       "size=10485760 status=0 "
					       "blocks=8:10 spent_ns="));
	CU_ASSERT_TRUE(it_wait_all_free("system"));
	CU_ASSERT_TRUE(trace_has(reply.fds[0], " how=park\n"));
	close(reply.fds[0]);
	close(sock);
	alloc_10m(); /* its reader is gone: nothing happens */
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"low memory stalls MID_ORDER and not HIGH_ORDER",
		 low_memory_stalls_mid_order_and_not_high_order},
		{"a parked buffer never stalls, and shrinking drops it",
		 a_parked_buffer_never_stalls_and_shrinking_drops_it},
		{"native latency reports the stall and does not wait",
		 native_latency_reports_the_stall_and_does_not_wait},
		{"device latency pads to the modelled time",
		 device_latency_pads_to_the_modelled_time},
		{"one client's stall does not delay another",
		 one_clients_stall_does_not_delay_another},
		{"pressure ends with its connection, unless it is to be kept",
		 pressure_ends_with_its_connection_unless_it_is_to_be_kept},
		{"fragmenting leaves no large block",
		 fragmenting_leaves_no_large_block},
		{"every page is accounted for at every step",
		 every_page_is_accounted_for_at_every_step},
		{"with the event clock every run is the same",
		 with_the_event_clock_every_run_is_the_same},
		{"a scenario is played live", a_scenario_is_played_live},
		{"a trace tells what happens", a_trace_tells_what_happens},
		CU_TEST_INFO_NULL,
	};

	if (geteuid() != 0)
		t_skip("the trace test names uid 0");
	it_options.config = CONFIG;
	return it_main(argc, argv, tests);
}
