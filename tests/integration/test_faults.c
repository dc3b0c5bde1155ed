/* SPDX-License-Identifier: MIT */
/*
 * The main path of a client against a daemon in which calls fail now and then:
 * it starts or says why not, each request is served or refused with an errno,
 * nothing is left behind, and it ends in peace.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <dmaheap/dmaheap.h>

#include "support/daemon.h"
#include "support/test.h"

#define ROUNDS 12

#define CONFIG(mode)                                                           \
	"[daemon]\nlatency = native\nconfine = kill\n[node]\nsize = 256M\n"    \
	"[backing]\nmode = " mode "\n"

static const char *config = CONFIG("plain");

static const char *loop_kind;
static unsigned int n_served, n_refused;
static char last_refusal[DMAHEAP_ERROR_TEXT_MAX_BYTES + 32];

/* ---- the client ---- */

static bool is_zero(const unsigned char *p, size_t n)
{
	for (size_t i = 0; i < n; i += 512)
		if (p[i])
			return false;
	return true;
}

static void use_buffer(struct dmaheap *dh, int fd, uint64_t len_bytes)
{
	unsigned char *p;
	struct stat st;

	CU_ASSERT_EQUAL(fstat(fd, &st), 0);
	CU_ASSERT((uint64_t)st.st_size >= len_bytes);
	p = dmaheap_map(fd, len_bytes, PROT_READ | PROT_WRITE);
	CU_ASSERT(p != MAP_FAILED);
	if (p != MAP_FAILED) {
		CU_ASSERT_TRUE(is_zero(p, len_bytes));
		memset(p, 0xa5, len_bytes);
		munmap(p, len_bytes);
	}
	(void)dmaheap_set_name(dh, fd, "faulty");
}

static void ask_for_texts(struct dmaheap *dh)
{
	static const uint16_t opcodes[] = {DMAHEAP_OP_HEAPS, DMAHEAP_OP_BUFFERS,
					   DMAHEAP_OP_NODE, DMAHEAP_OP_QUOTA};
	static char reply[DMAHEAP_MESSAGE_MAX_BYTES];

	for (size_t i = 0; i < sizeof(opcodes) / sizeof(opcodes[0]); i++) {
		struct dmaheap_message msg = {.opcode = opcodes[i],
					      .reply = reply,
					      .reply_capacity_bytes =
						      sizeof(reply)};
		int r = dmaheap_call(dh, &msg);

		CU_ASSERT(r <= 0);
		if (r < 0 && r != -ECONNRESET)
			CU_ASSERT(msg.error[0] != '\0');
	}
}

static void allocate(struct dmaheap *dh, unsigned int round)
{
	static const uint64_t sizes[] = {1, 65536, (1 << 20) + 4096, 10 << 20};
	uint64_t len_bytes = sizes[round % 4];
	uint32_t count = round % 3 ? 1 : 3;
	struct dmaheap_alloc_report reports[3];
	char why[DMAHEAP_ERROR_TEXT_MAX_BYTES];
	int fds[3];
	int r = dmaheap_alloc_ex(dh, NULL, len_bytes, O_RDWR | O_CLOEXEC, 0,
				 count, fds, reports, why, sizeof(why));

	if (r < 0) {
		n_refused++;
		snprintf(last_refusal, sizeof(last_refusal), "%s: %s",
			 strerror(-r), why);
		/* A connection that broke says nothing; a refusal does. */
		if (r != -ECONNRESET && r != -ECONNREFUSED)
			CU_ASSERT(why[0] != '\0');
		return;
	}
	n_served++;
	for (uint32_t i = 0; i < count; i++) {
		use_buffer(dh, fds[i], len_bytes);
		close(fds[i]);
	}
}

/* ---- what is left ---- */

struct books {
	struct daemon *daemon;
	struct dmaheap *dh;
};

static bool are_empty(void *ctx)
{
	struct books *books = ctx;
	struct dmaheap_stats stats;

	if (!books->dh &&
	    dmaheap_connect(&books->dh, books->daemon->socket) < 0)
		return false;
	if (dmaheap_stats(books->dh, &stats) < 0)
		return false;
	for (uint32_t i = 0; i < stats.n_heaps; i++)
		if (stats.heap[i].buffers)
			return false;
	return true;
}

static void main_path(struct daemon *daemon)
{
	struct books books = {.daemon = daemon};
	struct dmaheap *dh = NULL;
	int r = -1;

	for (int i = 0; i < 20 && r < 0; i++)
		r = dmaheap_connect(&dh, daemon->socket);
	CU_ASSERT_EQUAL(r, 0);
	for (unsigned int i = 0; i < ROUNDS && r == 0; i++) {
		allocate(dh, i);
		if (i % 8 == 0)
			ask_for_texts(dh);
	}
	dmaheap_close(dh);
	CU_ASSERT_TRUE(wait_until(are_empty, &books, 10000));
	dmaheap_close(books.dh);
}

/* Return: whether the daemon started, so that there was something to see. */
static bool try_faults(const char *faults)
{
	char variable[128];
	char *env[] = {variable, NULL};
	struct daemon_options options = {.config = config,
					 .loop = loop_kind,
					 .env = env};
	struct daemon daemon;
	bool ok;

	(void)snprintf(variable, sizeof(variable), "DMAHEAP_FAULTS=%s", faults);
	if (!daemon_start(&daemon, &options)) {
		char *log = daemon_log_text(&daemon);

		/* It may refuse to start, with the reason, and not crash. */
		CU_ASSERT(WIFEXITED(daemon.status));
		CU_ASSERT(strstr(log, "dmaheapd: ") != NULL);
		if (!WIFEXITED(daemon.status) || !strstr(log, "dmaheapd: "))
			printf("\n  %s: status 0x%x: %s", faults, daemon.status,
			       log);
		free(log);
		(void)daemon_stop(&daemon);
		return false;
	}
	main_path(&daemon);
	ok = daemon_stop(&daemon);
	CU_ASSERT_TRUE(ok);
	if (!ok)
		printf("\n  %s: status 0x%x", faults, daemon.status);
	return true;
}

/* At least one of @faults must let it start, and serve and refuse something. */
static void try_each(const char *const *faults, bool must_refuse)
{
	unsigned int n_started = 0;

	n_served = 0;
	n_refused = 0;
	for (; *faults; faults++)
		n_started += try_faults(*faults);
	CU_ASSERT(n_started > 0);
	CU_ASSERT(n_served > 0);
	CU_ASSERT(!must_refuse || n_refused > 0);
}

#define TRY(must_refuse, ...)                                                  \
	do {                                                                   \
		static const char *const faults_[] = {__VA_ARGS__, NULL};      \
		try_each(faults_, must_refuse);                                \
	} while (0)

static void without_faults_all_is_served(void)
{
	TRY(false, "sendmsg:1000000");
	CU_ASSERT_EQUAL(n_refused, 0);
	if (n_refused)
		printf("\n  %s", last_refusal);
	CU_ASSERT_EQUAL(n_served, ROUNDS);
}

static void memory_of_its_own(void)
{
	TRY(false, "malloc:7", "malloc:61", "malloc:211", "malloc:997");
}

static void memfd_create_fails(void)
{
	TRY(true, "memfd_create:1", "memfd_create:5", "memfd_create:4:12");
}

static void mmap_fails(void)
{
	TRY(false, "mmap:3", "mmap:8", "mmap:13");
}

static void filling_and_punching_fail(void)
{
	TRY(false, "madvise:6", "madvise:5:14", "fallocate:3");
}

/* As when no 2 MiB are free: then buffers are of smaller pages. */
static void collapsing_fails(void)
{
	config = CONFIG("collapse");
	TRY(false, "madvise:5:11", "madvise:7:11");
	CU_ASSERT_EQUAL(n_refused, 0);
	config = CONFIG("plain");
}

static void sendmsg_fails(void)
{
	/* EAGAIN, ENOBUFS, ETOOMANYREFS, EPIPE */
	TRY(false, "sendmsg:2", "sendmsg:3:105", "sendmsg:3:109",
	    "sendmsg:9:32");
}

static void recvmsg_fails(void)
{
	/* ENOMEM, EINTR */
	TRY(false, "recvmsg:12", "recvmsg:2:4");
}

static void accept_fails(void)
{
	/* EMFILE, ENOMEM, ECONNABORTED; and credentials */
	TRY(false, "accept4:2", "accept4:2:12", "accept4:2:103",
	    "getsockopt:3");
}

static void inotify_add_watch_fails(void)
{
	TRY(false, "inotify_add_watch:1", "inotify_add_watch:3");
}

static void waiting_fails(void)
{
	TRY(false, "epoll_ctl:5", "epoll_wait:2", "uring_wait:2",
	    "uring_submit:1", "uring_setup:1", "uring_buf_ring:1",
	    "epoll_ctl:9 uring_wait:3 sendmsg:4 malloc:301");
}

static void use_uring(void)
{
	loop_kind = "uring";
}

static void use_epoll(void)
{
	loop_kind = "epoll";
}

/* What becomes epoll when io_uring fails. */
static void use_auto(void)
{
	loop_kind = NULL;
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"without faults all is served", without_faults_all_is_served},
		{"memory of its own", memory_of_its_own},
		{"memfd_create fails", memfd_create_fails},
		{"mmap fails", mmap_fails},
		{"filling and punching fail", filling_and_punching_fail},
		{"collapsing fails", collapsing_fails},
		{"sendmsg fails", sendmsg_fails},
		{"recvmsg fails", recvmsg_fails},
		{"accept fails", accept_fails},
		{"inotify_add_watch fails", inotify_add_watch_fails},
		CU_TEST_INFO_NULL,
	};
	CU_TestInfo auto_tests[] = {
		{"waiting fails", waiting_fails},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "epoll", .pSetUpFunc = use_epoll, .pTests = tests},
		{.pName = "auto", .pSetUpFunc = use_auto, .pTests = auto_tests},
		{.pName = uring_works() ? "uring" : NULL,
		 .pSetUpFunc = use_uring,
		 .pTests = tests},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
