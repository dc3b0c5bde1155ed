/* SPDX-License-Identifier: MIT */
/* Requests and answers of the library, good ones and malicious ones. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/dma-buf.h>

#include <dmaheap/dmaheap.h>

#include "support/test.h"
#include "unit/client/fake.h"

static struct fake *fake;
static struct dmaheap *dh;

/* What the hook does to the next replies that are not to HELLO. */
static _Atomic(fake_hook) spoil;

static void hook(const struct fake_request *req, struct fake_reply *reply,
		 void *ctx)
{
	fake_hook now = spoil;

	if (now && req->header.opcode != DMAHEAP_OP_HELLO)
		now(req, reply, ctx);
}

static void setup(void)
{
	spoil = NULL;
	fake = fake_start("s", 1, hook, NULL);
	T_REQUIRE(dmaheap_connect(&dh, fake->path) == 0);
}

static void teardown(void)
{
	dh = dmaheap_close(dh);
	fake = fake_stop(fake);
}

static void a_buffer_has_the_size_and_flags_asked_for(void)
{
	struct stat st;
	int fd = dmaheap_alloc(dh, NULL, 5000, O_RDWR | O_CLOEXEC, 0);

	CU_ASSERT(fd >= 0);
	CU_ASSERT_EQUAL(fstat(fd, &st), 0);
	CU_ASSERT_EQUAL(st.st_size, 8192);
	CU_ASSERT_EQUAL(fcntl(fd, F_GETFD), FD_CLOEXEC);
	close(fd);
	fd = dmaheap_alloc(dh, "system", 1, O_RDWR, 0);
	CU_ASSERT_EQUAL(fcntl(fd, F_GETFD), 0);
	close(fd);
}

static void many_buffers_come_in_one_request(void)
{
	struct dmaheap_alloc_report reports[DMAHEAP_ALLOC_MAX_COUNT];
	int fds[DMAHEAP_ALLOC_MAX_COUNT];
	unsigned int before = fake->n_requests;

	CU_ASSERT_EQUAL(dmaheap_alloc_ex(dh, NULL, 4096, O_RDWR, 0, 64, fds,
					 reports, NULL, 0),
			0);
	CU_ASSERT_EQUAL(fake->n_requests, before + 1);
	for (unsigned int i = 0; i < 64; i++) {
		CU_ASSERT_EQUAL(reports[i].id, i + 1);
		CU_ASSERT_EQUAL(close(fds[i]), 0);
	}
}

static void bad_arguments_are_refused_with_a_sentence(void)
{
	char why[DMAHEAP_ERROR_TEXT_MAX_BYTES], name[64];
	struct dmaheap_alloc_report report;
	int fd = 42;

	CU_ASSERT_EQUAL(dmaheap_alloc_ex(dh, NULL, 4096, O_RDWR, 0, 0, &fd,
					 &report, why, sizeof(why)),
			-EINVAL);
	CU_ASSERT_STRING_EQUAL(why, "count: 0 is not within 1 to 64");
	CU_ASSERT_EQUAL(dmaheap_alloc_many(dh, NULL, 4096, O_RDWR, 0, 65, &fd),
			-EINVAL);
	memset(name, 'x', sizeof(name));
	name[32] = '\0';
	CU_ASSERT_EQUAL(dmaheap_alloc_ex(dh, name, 4096, O_RDWR, 0, 1, &fd,
					 &report, why, sizeof(why)),
			-ENOENT);
	CU_ASSERT_STRING_EQUAL(why,
			       "heap: a name has at most 31 bytes, not 32");
	CU_ASSERT_EQUAL(dmaheap_set_name(dh, 0, name), -EINVAL);
	CU_ASSERT_EQUAL(fd, 42);
}

static void refuse(const struct fake_request *req, struct fake_reply *reply,
		   void *ctx)
{
	(void)req;
	(void)ctx;
	while (reply->n_fds > 0)
		close(reply->fds[--reply->n_fds]);
	memset(reply->payload, 'e', 600);
	reply->payload_bytes = 600;
	reply->header.n_fds = 0;
	reply->header.payload_bytes = 600;
	reply->header.status = -EDQUOT;
}

static void a_refusal_gives_its_status_and_as_much_text_as_fits(void)
{
	struct dmaheap_message msg = {.opcode = DMAHEAP_OP_HEAPS};
	struct dmaheap_alloc_report report;
	char why[8];
	int fd = 42;

	spoil = refuse;
	CU_ASSERT_EQUAL(dmaheap_alloc_ex(dh, NULL, 1, O_RDWR, 0, 1, &fd,
					 &report, why, sizeof(why)),
			-EDQUOT);
	CU_ASSERT_STRING_EQUAL(why, "eeeeeee");
	CU_ASSERT_EQUAL(dmaheap_call(dh, &msg), -EDQUOT);
	CU_ASSERT_EQUAL(strlen(msg.error), DMAHEAP_ERROR_TEXT_MAX_BYTES - 1);
	CU_ASSERT_EQUAL(fd, 42);
}

/* Ways to answer that no daemon has. */
#define SPOILER(name, statement)                                               \
	static void name(const struct fake_request *req,                       \
			 struct fake_reply *reply, void *ctx)                  \
	{                                                                      \
		(void)req;                                                     \
		(void)ctx;                                                     \
		statement;                                                     \
	}

static void replace_fd(struct fake_reply *reply, int fd)
{
	close(reply->fds[0]);
	reply->fds[0] = fd;
}

static void put_head(struct fake_reply *reply, uint32_t n_records,
		     uint32_t record_bytes)
{
	struct dmaheap_alloc_reply head = {n_records, record_bytes};

	memcpy(reply->payload, &head, sizeof(head));
}

static void set_payload(struct fake_reply *reply, size_t bytes)
{
	reply->payload_bytes = bytes;
	reply->header.payload_bytes = (uint32_t)bytes;
}

static void add_fds(struct fake_reply *reply, size_t n)
{
	while (reply->n_fds < n)
		reply->fds[reply->n_fds++] = fake_buffer(4096, "dmaheap:x:1");
}

SPOILER(wrong_magic, reply->header.magic ^= 1)
SPOILER(wrong_version, reply->header.version = 2)
SPOILER(wrong_opcode, reply->header.opcode = DMAHEAP_OP_STATS)
SPOILER(not_a_reply, reply->header.flags = 0)
SPOILER(unknown_flag, reply->header.flags |= 2)
SPOILER(wrong_seq, reply->header.seq++)
SPOILER(positive_status, reply->header.status = 1)
SPOILER(absurd_status, reply->header.status = INT32_MIN)
SPOILER(payload_count_too_large, reply->header.payload_bytes++)
SPOILER(payload_count_too_small, reply->header.payload_bytes--)
SPOILER(half_a_header, reply->cut_bytes = 16)
SPOILER(too_long, set_payload(reply, DMAHEAP_MESSAGE_MAX_BYTES))
SPOILER(an_fd_too_many, add_fds(reply, 2))
SPOILER(an_unannounced_fd_too_many, add_fds(reply, 2); reply->header.n_fds = 2)
SPOILER(an_fd_too_few, close(reply->fds[0]); reply->n_fds = 0)
SPOILER(no_fd_at_all, close(reply->fds[0]);
	reply->n_fds = reply->header.n_fds = 0)
SPOILER(a_short_buffer, replace_fd(reply, fake_buffer(100, "dmaheap:x:1")))
SPOILER(a_device, replace_fd(reply, open("/dev/null", O_RDWR | O_CLOEXEC)))
SPOILER(no_payload, set_payload(reply, 0))
SPOILER(too_few_records, put_head(reply, 0, 200))
SPOILER(too_many_records, put_head(reply, 2, 200))
SPOILER(empty_records, put_head(reply, 1, 0))
SPOILER(huge_records, put_head(reply, 1, 0xffffffffu))
SPOILER(records_beyond_the_end, put_head(reply, 1, 201))

static void malicious_answers_are_refused_and_leak_nothing(void)
{
	static const struct {
		const char *name;
		fake_hook hook;
	} cases[] = {
#define CASE(name) {#name, name}
		CASE(wrong_magic),
		CASE(wrong_version),
		CASE(wrong_opcode),
		CASE(not_a_reply),
		CASE(unknown_flag),
		CASE(wrong_seq),
		CASE(positive_status),
		CASE(absurd_status),
		CASE(payload_count_too_large),
		CASE(payload_count_too_small),
		CASE(half_a_header),
		CASE(too_long),
		CASE(an_fd_too_many),
		CASE(an_unannounced_fd_too_many),
		CASE(an_fd_too_few),
		CASE(no_fd_at_all),
		CASE(a_short_buffer),
		CASE(a_device),
		CASE(no_payload),
		CASE(too_few_records),
		CASE(too_many_records),
		CASE(empty_records),
		CASE(huge_records),
		CASE(records_beyond_the_end),
	};
	unsigned int n_fds = fake_count_fds();

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct dmaheap_alloc_report report;
		int fd = 42, r;

		spoil = cases[i].hook;
		r = dmaheap_alloc_ex(dh, NULL, 4096, O_RDWR, 0, 1, &fd, &report,
				     NULL, 0);
		if (r != -EPROTO)
			printf("%s: %d\n", cases[i].name, r);
		CU_ASSERT_EQUAL(r, -EPROTO);
		CU_ASSERT_EQUAL(fd, 42);
		spoil = NULL;
		/* The next request is answered, on a new connection. */
		fd = dmaheap_alloc(dh, NULL, 4096, O_RDWR, 0);
		CU_ASSERT(fd >= 0);
		close(fd);
		CU_ASSERT(fake_settle_fds(n_fds));
	}
}

static _Atomic uint32_t record_bytes;

SPOILER(other_records, put_head(reply, 1, record_bytes);
	set_payload(reply, sizeof(struct dmaheap_alloc_reply) + record_bytes))

static void a_longer_record_is_cut_and_a_shorter_one_filled_up(void)
{
	static const uint32_t sizes[] = {16, 200, 300};

	spoil = other_records;
	for (size_t i = 0; i < 3; i++) {
		struct dmaheap_alloc_report report;
		int fd = -1;

		memset(&report, 0xff, sizeof(report));
		record_bytes = sizes[i];
		CU_ASSERT_EQUAL(dmaheap_alloc_ex(dh, NULL, 4096, O_RDWR, 0, 1,
						 &fd, &report, NULL, 0),
				0);
		CU_ASSERT_EQUAL(report.size_bytes, 4096);
		CU_ASSERT_EQUAL(report.modelled_stall_ns, 0);
		close(fd);
	}
}

/* Fds 500 and up: closing them makes no room for the receiver. */
static void move_fds_up(const struct fake_request *req,
			struct fake_reply *reply, void *ctx)
{
	(void)req;
	(void)ctx;
	for (size_t i = 0; i < reply->n_fds; i++) {
		int fd = fcntl(reply->fds[i], F_DUPFD_CLOEXEC, 500);

		close(reply->fds[i]);
		reply->fds[i] = fd;
	}
}

struct tight {
	struct rlimit before;
	struct rlimit now;
};

static struct tight tight;

static void move_up_and_tighten(const struct fake_request *req,
				struct fake_reply *reply, void *ctx)
{
	move_fds_up(req, reply, ctx);
	setrlimit(RLIMIT_NOFILE, &tight.now);
}

static void fds_that_do_not_fit_are_all_given_back(void)
{
	unsigned int n_fds = fake_count_fds();
	int fds[8] = {42}, lowest = dup(0), r;

	close(lowest);
	getrlimit(RLIMIT_NOFILE, &tight.before);
	tight.now = tight.before;
	tight.now.rlim_cur = (rlim_t)lowest + 3; /* room for three */
	spoil = move_up_and_tighten;
	r = dmaheap_alloc_many(dh, NULL, 4096, O_RDWR, 0, 8, fds);
	setrlimit(RLIMIT_NOFILE, &tight.before);
	CU_ASSERT_EQUAL(r, -EMFILE);
	CU_ASSERT_EQUAL(fds[0], 42);
	CU_ASSERT(fake_settle_fds(n_fds));
	/* The connection is still in step. */
	spoil = NULL;
	CU_ASSERT_EQUAL(dmaheap_alloc_many(dh, NULL, 4096, O_RDWR, 0, 8, fds),
			0);
	CU_ASSERT_EQUAL(fake->n_connections, 1);
	for (unsigned int i = 0; i < 8; i++)
		close(fds[i]);
}

SPOILER(reply_100_bytes_and_3_fds, memset(reply->payload, 'p', 100);
	set_payload(reply, 100); add_fds(reply, 3); reply->header.n_fds = 3)

static void a_call_stores_what_fits_and_closes_the_rest(void)
{
	unsigned int n_fds = fake_count_fds();
	char text[60];
	int fds[2];
	struct dmaheap_message msg = {.opcode = DMAHEAP_OP_TRACE,
				      .reply = text,
				      .reply_capacity_bytes = sizeof(text),
				      .reply_fds = fds,
				      .reply_fds_capacity = 2};

	spoil = reply_100_bytes_and_3_fds;
	CU_ASSERT_EQUAL(dmaheap_call(dh, &msg), -EMSGSIZE);
	CU_ASSERT_EQUAL(msg.reply_bytes, 60);
	CU_ASSERT_EQUAL(msg.n_reply_fds, 2);
	CU_ASSERT_EQUAL(text[59], 'p');
	CU_ASSERT(fake_settle_fds(n_fds + 2));
	close(fds[0]);
	close(fds[1]);
}

static void a_call_that_is_too_long_is_not_sent(void)
{
	static char bytes[DMAHEAP_MESSAGE_MAX_BYTES];
	struct dmaheap_message msg = {.opcode = DMAHEAP_OP_HEAPS,
				      .payload = bytes,
				      .payload_bytes = sizeof(bytes)};
	unsigned int before = fake->n_requests;

	CU_ASSERT_EQUAL(dmaheap_call(dh, &msg), -EINVAL);
	msg.payload_bytes = 0;
	msg.n_fds = 65;
	CU_ASSERT_EQUAL(dmaheap_call(dh, &msg), -EINVAL);
	CU_ASSERT_EQUAL(fake->n_requests, before);
}

static void see_name(const struct fake_request *req, struct fake_reply *reply,
		     void *ctx)
{
	(void)ctx;
	if (req->n_fds != 1 || strcmp((const char *)req->payload, "camera"))
		reply->header.status = -EBADMSG;
}

static void a_name_goes_with_the_buffers_fd(void)
{
	int fd = dmaheap_alloc(dh, NULL, 1, O_RDWR, 0);

	spoil = see_name;
	CU_ASSERT_EQUAL(dmaheap_set_name(dh, fd, "camera"), 0);
	CU_ASSERT_EQUAL(dmaheap_set_name(dh, fd, "other"), -EBADMSG);
	CU_ASSERT_EQUAL(dmaheap_set_name(dh, 9999, "camera"), -EBADF);
	close(fd);
}

static void a_mapping_is_congruent_populated_and_ends_with_munmap(void)
{
	size_t len = 5 << 20;
	int fd = dmaheap_alloc(dh, NULL, len, O_RDWR, 0);
	unsigned char core[5 << 8];
	char *map = dmaheap_map(fd, len, PROT_READ | PROT_WRITE);
	unsigned int resident = 0;

	T_REQUIRE(map != MAP_FAILED);
	CU_ASSERT_EQUAL((uintptr_t)map % (2 << 20), 0);
	CU_ASSERT_EQUAL(mincore(map, len, core), 0);
	for (size_t i = 0; i < sizeof(core); i++)
		resident += core[i] & 1;
	CU_ASSERT_EQUAL(resident, sizeof(core));
	map[len - 1] = 1;
	CU_ASSERT_EQUAL(munmap(map, len), 0);
	close(fd);
}

static void a_mapping_beyond_the_buffer_or_its_rights_is_refused(void)
{
	int fd = dmaheap_alloc(dh, NULL, 4096, O_RDWR, 0);
	char path[64];
	int ro;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ro = open(path, O_RDONLY | O_CLOEXEC);
	errno = 0;
	CU_ASSERT_PTR_EQUAL(dmaheap_map(fd, 4097, PROT_READ), MAP_FAILED);
	CU_ASSERT_EQUAL(errno, EINVAL);
	CU_ASSERT_PTR_EQUAL(dmaheap_map(fd, 0, PROT_READ), MAP_FAILED);
	CU_ASSERT_EQUAL(errno, EINVAL);
	CU_ASSERT_PTR_EQUAL(dmaheap_map(fd, SIZE_MAX, PROT_READ), MAP_FAILED);
	CU_ASSERT_EQUAL(errno, EINVAL);
	CU_ASSERT_PTR_EQUAL(dmaheap_map(ro, 4096, PROT_WRITE), MAP_FAILED);
	CU_ASSERT_EQUAL(errno, EACCES);
	CU_ASSERT_PTR_EQUAL(dmaheap_map(-1, 4096, PROT_READ), MAP_FAILED);
	CU_ASSERT_EQUAL(errno, EBADF);
	close(ro);
	close(fd);
}

static void sync_checks_its_arguments_as_the_kernel_does(void)
{
	int fd = dmaheap_alloc(dh, NULL, 4096, O_RDWR, 0);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int plain = memfd_create("plain", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	for (uint64_t flags = 0; flags < 16; flags++) {
		int want = flags < 8 && (flags & 3) ? 0 : -EINVAL;

		CU_ASSERT_EQUAL(dmaheap_sync(fd, flags), want);
	}
	CU_ASSERT_EQUAL(dmaheap_sync(fd, DMA_BUF_SYNC_READ | 1ull << 63),
			-EINVAL);
	CU_ASSERT_EQUAL(dmaheap_sync(null, DMA_BUF_SYNC_READ), -ENOTTY);
	CU_ASSERT_EQUAL(dmaheap_sync(plain, DMA_BUF_SYNC_READ), -ENOTTY);
	CU_ASSERT_EQUAL(dmaheap_sync(-1, DMA_BUF_SYNC_READ), -EBADF);
	close(plain);
	close(null);
	close(fd);
}

static void hello_tells_of_the_daemon(void)
{
	struct dmaheap_hello_reply hello;

	CU_ASSERT_EQUAL(dmaheap_hello(dh, &hello), 0);
	CU_ASSERT_EQUAL(hello.instance_id, 1);
	CU_ASSERT_STRING_EQUAL(hello.daemon_version, "fake");
}

/* Accepts one connection, refuses it unheard, as over a limit. */
static void *refuse_one(void *arg)
{
	static const char text[] = "too many connections";
	const struct dmaheap_header header = {.magic = DMAHEAP_PROTOCOL_MAGIC,
					      .version =
						      DMAHEAP_PROTOCOL_VERSION,
					      .opcode = DMAHEAP_OP_HELLO,
					      .flags = DMAHEAP_F_REPLY,
					      .payload_bytes = sizeof(text) - 1,
					      .status = -EDQUOT};
	char bytes[sizeof(header) + sizeof(text) - 1];
	int fd = accept(*(int *)arg, NULL, NULL);

	memcpy(bytes, &header, sizeof(header));
	memcpy(bytes + sizeof(header), text, sizeof(text) - 1);
	if (fd < 0 || send(fd, bytes, sizeof(bytes), 0) < 0)
		perror("refuse_one");
	close(fd);
	return NULL;
}

static void a_connection_that_is_refused_unheard_gives_the_status(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct dmaheap *refused = NULL;
	pthread_t thread;

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/refuses",
		 fake_dir());
	T_REQUIRE(bind(listener, (struct sockaddr *)&address,
		       sizeof(address)) == 0);
	T_REQUIRE(listen(listener, 1) == 0);
	T_REQUIRE(pthread_create(&thread, NULL, refuse_one, &listener) == 0);
	CU_ASSERT_EQUAL(dmaheap_connect(&refused, address.sun_path), -EDQUOT);
	CU_ASSERT_PTR_NULL(refused);
	pthread_join(thread, NULL);
	close(listener);
	unlink(address.sun_path);
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"a buffer has the size and flags asked for",
		 a_buffer_has_the_size_and_flags_asked_for},
		{"many buffers come in one request",
		 many_buffers_come_in_one_request},
		{"bad arguments are refused with a sentence",
		 bad_arguments_are_refused_with_a_sentence},
		{"a refusal gives its status and as much text as fits",
		 a_refusal_gives_its_status_and_as_much_text_as_fits},
		{"malicious answers are refused and leak nothing",
		 malicious_answers_are_refused_and_leak_nothing},
		{"a longer record is cut and a shorter one filled up",
		 a_longer_record_is_cut_and_a_shorter_one_filled_up},
		{"fds that do not fit are all given back",
		 fds_that_do_not_fit_are_all_given_back},
		{"a call stores what fits and closes the rest",
		 a_call_stores_what_fits_and_closes_the_rest},
		{"a call that is too long is not sent",
		 a_call_that_is_too_long_is_not_sent},
		{"a name goes with the buffer's fd",
		 a_name_goes_with_the_buffers_fd},
		{"a mapping is congruent, populated and ends with munmap",
		 a_mapping_is_congruent_populated_and_ends_with_munmap},
		{"a mapping beyond the buffer or its rights is refused",
		 a_mapping_beyond_the_buffer_or_its_rights_is_refused},
		{"sync checks its arguments as the kernel does",
		 sync_checks_its_arguments_as_the_kernel_does},
		{"hello tells of the daemon", hello_tells_of_the_daemon},
		{"a connection that is refused unheard gives the status",
		 a_connection_that_is_refused_unheard_gives_the_status},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "library",
		 .pSetUpFunc = setup,
		 .pTearDownFunc = teardown,
		 .pTests = tests},
		CU_SUITE_INFO_NULL,
	};
	int r = t_main(argc, argv, suites);

	fake_dir_remove();
	return r;
}
