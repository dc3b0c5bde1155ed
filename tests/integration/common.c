/* SPDX-License-Identifier: MIT */
#include "integration/common.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct daemon it_daemon;
struct dmaheap *it_dh;
struct daemon_options it_options;
char it_error[DMAHEAP_ERROR_TEXT_MAX_BYTES];

static unsigned int own_fds, daemon_fds, daemon_watches;
static struct dmaheap_stats stats;

static void setup(const char *loop)
{
	own_fds = count_fds(0);
	it_options.loop = loop;
	if (!daemon_start(&it_daemon, &it_options)) {
		daemon_stop(&it_daemon); /* prints its log */
		abort();
	}
	daemon_fds = count_fds(it_daemon.pid);
	daemon_watches = count_watches(it_daemon.pid);
	T_REQUIRE(dmaheap_connect(&it_dh, it_daemon.socket) == 0);
}

static void setup_uring(void)
{
	setup("uring");
}

static void setup_epoll(void)
{
	setup("epoll");
}

static bool is_idle(void *ctx)
{
	(void)ctx;
	return count_fds(it_daemon.pid) <= daemon_fds &&
	       count_watches(it_daemon.pid) <= daemon_watches;
}

static void teardown(void)
{
	if (it_daemon.pid && it_dh) {
		const struct dmaheap_stats *s = it_stats();

		for (uint32_t i = 0; i < s->n_heaps; i++)
			CU_ASSERT_TRUE(it_wait_all_free(s->heap[i].name));
		CU_ASSERT_EQUAL(it_shrink(0), 0);
	}
	it_dh = dmaheap_close(it_dh);
	if (it_daemon.pid && !wait_until(is_idle, NULL, 5000)) {
		CU_FAIL("the daemon holds more than before");
		fprintf(stderr, "fds %u -> %u, watches %u -> %u\n", daemon_fds,
			count_fds(it_daemon.pid), daemon_watches,
			count_watches(it_daemon.pid));
	}
	CU_ASSERT_TRUE(daemon_stop(&it_daemon));
	CU_ASSERT_EQUAL(count_fds(0), own_fds);
}

int it_main(int argc, char **argv, CU_TestInfo *tests)
{
	CU_SuiteInfo suites[] = {
		{.pName = "epoll",
		 .pSetUpFunc = setup_epoll,
		 .pTearDownFunc = teardown,
		 .pTests = tests},
		{.pName = "uring",
		 .pSetUpFunc = setup_uring,
		 .pTearDownFunc = teardown,
		 .pTests = tests},
		CU_SUITE_INFO_NULL,
	};

	if (!uring_works()) {
		printf("note: io_uring does not work here, epoll only\n");
		suites[1] = (CU_SuiteInfo)CU_SUITE_INFO_NULL;
	}
	return t_main(argc, argv, suites);
}

int it_alloc(const char *heap, uint64_t len_bytes,
	     struct dmaheap_alloc_report *ret)
{
	struct dmaheap_alloc_report report;
	int fd = -1;
	int r = dmaheap_alloc_ex(it_dh, heap, len_bytes, O_RDWR | O_CLOEXEC, 0,
				 1, &fd, &report, it_error, sizeof(it_error));

	if (r)
		return r;
	if (ret)
		*ret = report;
	return fd;
}

long it_call(struct dmaheap *dh, uint16_t opcode, const void *payload,
	     size_t payload_bytes, void *reply, size_t reply_bytes)
{
	struct dmaheap_message m = {
		.opcode = opcode,
		.payload = payload,
		.payload_bytes = payload_bytes,
		.reply = reply,
		.reply_capacity_bytes = reply_bytes,
	};
	int r = dmaheap_call(dh, &m);

	memcpy(it_error, m.error, sizeof(it_error));
	return r ? r : (long)m.reply_bytes;
}

int it_set_policy(const char *heap, const char *lines)
{
	char buf[512];
	struct dmaheap_policy_req req = {.op = DMAHEAP_POLICY_SET};
	size_t n = strlen(lines);
	long r;

	snprintf(req.heap_name, sizeof(req.heap_name), "%s", heap);
	memcpy(buf, &req, sizeof(req));
	memcpy(buf + sizeof(req), lines, n);
	r = it_call(it_dh, DMAHEAP_OP_POLICY, buf, sizeof(req) + n, NULL, 0);
	return r < 0 ? (int)r : 0;
}

uint64_t it_shrink(uint64_t to_bytes)
{
	struct dmaheap_shrink_req req = {.to_bytes = to_bytes};
	struct dmaheap_shrink_reply reply = {.pool_bytes = UINT64_MAX};

	if (it_call(it_dh, DMAHEAP_OP_SHRINK, &req, sizeof(req), &reply,
		    sizeof(reply)) < 0)
		fprintf(stderr, "shrink: %s\n", it_error);
	return reply.pool_bytes;
}

const struct dmaheap_stats *it_stats(void)
{
	struct dmaheap_stats_reply reply;
	long r = it_call(it_dh, DMAHEAP_OP_STATS, NULL, 0, &reply,
			 sizeof(reply)); /* refreshes */

	if (r < 0 || dmaheap_stats(it_dh, &stats)) {
		CU_FAIL("no statistics");
		memset(&stats, 0, sizeof(stats));
	}
	return &stats;
}

const struct dmaheap_stats_heap *it_heap_stats(const char *name)
{
	static const struct dmaheap_stats_heap none;
	const struct dmaheap_stats *s = it_stats();

	for (uint32_t i = 0; i < s->n_heaps; i++)
		if (!strcmp(s->heap[i].name, name))
			return &s->heap[i];
	CU_FAIL("no such heap in the statistics");
	return &none;
}

const struct dmaheap_stats_pool *it_pool(const char *heap, uint32_t order)
{
	static const struct dmaheap_stats_pool none;
	const struct dmaheap_stats_heap *h = it_heap_stats(heap);

	for (uint32_t i = 0; i < h->n_pools; i++)
		if (h->pool[i].order == order)
			return &h->pool[i];
	CU_FAIL("no pool of that order");
	return &none;
}

static bool all_free(void *ctx)
{
	return it_heap_stats(ctx)->buffers == 0;
}

bool it_wait_all_free(const char *heap)
{
	char name[DMAHEAP_NAME_MAX_BYTES];

	snprintf(name, sizeof(name), "%s", heap);
	return wait_until(all_free, name, 5000);
}

char *it_node_text(uint32_t text)
{
	struct dmaheap_node_req req = {.text = text};
	struct {
		struct dmaheap_text_reply head;
		char text[DMAHEAP_MESSAGE_MAX_BYTES];
	} reply;
	char *all = calloc(1, 1 << 20);
	size_t n = 0;
	long r;

	do {
		req.offset_bytes = n;
		r = it_call(it_dh, DMAHEAP_OP_NODE, &req, sizeof(req), &reply,
			    sizeof(reply));
		if (!all || r < (long)sizeof(reply.head))
			break;
		memcpy(all + n, reply.text, (size_t)r - sizeof(reply.head));
		n += (size_t)r - sizeof(reply.head);
	} while (n < reply.head.total_bytes);
	return all;
}

void it_check_composition(const struct dmaheap_alloc_report *report,
			  uint32_t n8, uint32_t n4, uint32_t n0, int line)
{
	uint32_t others = 0;
	bool ok;

	for (uint32_t i = 0; i < DMAHEAP_ORDER_COUNT; i++)
		if (i != 8 && i != 4 && i != 0)
			others += report->blocks[i];
	ok = report->blocks[8] == n8 && report->blocks[4] == n4 &&
	     report->blocks[0] == n0 && !others;
	if (!ok)
		fprintf(stderr,
			"line %d: composition 8:%u 4:%u 0:%u others:%u\n", line,
			report->blocks[8], report->blocks[4], report->blocks[0],
			others);
	CU_ASSERT_TRUE(ok);
}

pid_t it_fork(void)
{
	pid_t pid = fork();

	if (pid < 0)
		abort();
	/* A test that fails must not leave a child that waits for ever. */
	if (pid == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		_exit(253);
	return pid;
}

int it_in_child(uid_t uid, int (*body)(void *ctx), void *ctx)
{
	int status;
	pid_t pid = it_fork();

	if (pid == 0) {
		if (uid &&
		    (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 ||
		     setresuid(uid, uid, uid) < 0))
			_exit(254);
		/* A change of uid clears both. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_DUMPABLE, 1);
		_exit(body(ctx));
	}
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return 255;
	return WEXITSTATUS(status);
}
