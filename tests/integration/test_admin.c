/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "integration/common.h"
#include "support/raw.h"

#define OTHER_UID   54321u
#define ADMIN_GROUP 54322u
#define BUSY_UID    54325u

#define CONFIG                                                                 \
	"[daemon]\nsocket_mode = 0666\nadmin_group = 54322\nconfine = kill\n"  \
	"[node]\nsize = 256M\n"                                                \
	"[quota uid 54321]\nbytes = 8M\nbuffers = 3\nconnections = 2\n"        \
	"[quota uid 54325]\nrequests_per_s = 5\n"

static struct dmaheap *connect_again(void)
{
	struct dmaheap *dh = NULL;
	int r = dmaheap_connect(&dh, it_daemon.socket);

	if (r)
		fprintf(stderr, "connect: %s\n", strerror(-r));
	return dh;
}

/* Request @which of an administrator. Return: its status; 1: no such one. */
static int admin_call(int sock, unsigned int which, struct raw_reply *reply)
{
	static const struct dmaheap_pressure_req pressure = {
		.kind = DMAHEAP_PRESSURE_LOW_MEMORY};
	static const struct dmaheap_inject_req inject =
		{.uid = DMAHEAP_INJECT_ANY_ID,
		 .pid = DMAHEAP_INJECT_ANY_ID,
		 .fail_nth = 1};
	static const struct {
		struct dmaheap_policy_req req;
		char line[8];
	} policy = {.req = {.op = DMAHEAP_POLICY_SET}, .line = "orders=0"};
	static const struct dmaheap_shrink_req shrink;
	static const struct dmaheap_trace_req trace;
	static const struct {
		uint16_t opcode;
		const void *payload;
		size_t bytes;
	} calls[] = {
		{DMAHEAP_OP_SHRINK, &shrink, sizeof(shrink)},
		{DMAHEAP_OP_PRESSURE, &pressure, sizeof(pressure)},
		{DMAHEAP_OP_INJECT, &inject, sizeof(inject)},
		{DMAHEAP_OP_POLICY, &policy, sizeof(policy)},
		{DMAHEAP_OP_TRACE, &trace, sizeof(trace)},
		{DMAHEAP_OP_RELOAD, NULL, 0},
	};

	if (which >= sizeof(calls) / sizeof(calls[0]))
		return 1;
	return raw_call(sock, calls[which].opcode, calls[which].payload,
			calls[which].bytes, reply);
}

/* Every administrative request gets EPERM; no buffer of others is seen. */
static int is_powerless(void *ctx)
{
	static struct raw_reply reply;
	const struct dmaheap_buffers_reply *list = (void *)reply.payload;
	const struct dmaheap_records_reply *quota = (void *)reply.payload;
	const struct dmaheap_quota_record *record = (void *)(quota + 1);
	struct dmaheap_buffers_req req = {0};
	int sock = raw_open(it_daemon.socket), r;
	unsigned int i;

	(void)ctx;
	if (sock < 0)
		return 1;
	for (i = 0; (r = admin_call(sock, i, &reply)) != 1; i++)
		if (r != -EPERM)
			return 2;
	if (i != 6)
		return 3;
	if (!strstr(reply.payload, "admin_group") ||
	    !strstr(reply.payload, "uid 54321"))
		return 4;
	if (raw_call(sock, DMAHEAP_OP_BUFFERS, &req, sizeof(req), &reply) ||
	    list->n_records != 0)
		return 5;
	if (raw_call(sock, DMAHEAP_OP_QUOTA, NULL, 0, &reply) ||
	    quota->n_records != 1 || record->uid != OTHER_UID)
		return 6;
	return 0;
}

static void another_uid_may_not_administer(void)
{
	int fd = it_alloc("system", IT_MIB(1), NULL);

	T_REQUIRE(fd >= 0);
	CU_ASSERT_EQUAL(it_in_child(OTHER_UID, is_powerless, NULL), 0);
	close(fd);
}

/* All capabilities, and uid 0, in a user namespace of one's own. */
static int is_powerless_in_userns(void *ctx)
{
	char map[64];
	int fd;

	snprintf(map, sizeof(map), "0 %u 1", OTHER_UID);
	if (unshare(CLONE_NEWUSER) < 0)
		return 77;
	fd = open("/proc/self/uid_map", O_WRONLY);
	if (fd < 0 || write(fd, map, strlen(map)) < 0 || geteuid() != 0)
		return 78;
	close(fd);
	return is_powerless(ctx);
}

static void root_of_another_user_namespace_may_not_administer(void)
{
	int fd = it_alloc("system", IT_MIB(1), NULL);
	int r = it_in_child(OTHER_UID, is_powerless_in_userns, NULL);

	T_REQUIRE(fd >= 0);
	if (r == 77)
		printf("(no user namespaces here) ");
	else
		CU_ASSERT_EQUAL(r, 0);
	close(fd);
}

static int may_shrink(void *ctx)
{
	static struct raw_reply reply;
	const gid_t *group = ctx;
	int sock;

	if (setgroups(1, group) < 0 ||
	    setresuid(OTHER_UID, OTHER_UID, OTHER_UID) < 0)
		return 1;
	sock = raw_open(it_daemon.socket);
	if (sock < 0)
		return 2;
	return admin_call(sock, 0, &reply) == 0 ? 0 : 3;
}

static void members_of_the_admin_group_may_administer(void)
{
	gid_t group = ADMIN_GROUP;
	gid_t another = ADMIN_GROUP + 1;

	CU_ASSERT_EQUAL(it_in_child(0, may_shrink, &group), 0);
	CU_ASSERT_EQUAL(it_in_child(0, may_shrink, &another), 3);
}

static int meets_its_limits(void *ctx)
{
	struct dmaheap *dh = connect_again(), *second, *third = NULL;
	int fds[4];

	(void)ctx;
	it_dh = dh;
	if (it_alloc("system", IT_MIB(9), NULL) != -EDQUOT ||
	    !strstr(it_error, "uid 54321") ||
	    !strstr(it_error, "bytes = 8388608: 0 in use, 9437184 asked") ||
	    !strstr(it_error, "[quota uid 54321] bytes"))
		return 1;
	for (int i = 0; i < 3; i++) {
		fds[i] = it_alloc("system", 4096, NULL);
		if (fds[i] < 0)
			return 2;
	}
	if (it_alloc("system", 4096, NULL) != -EDQUOT ||
	    !strstr(it_error, "buffers = 3: 3 in use, 1 asked"))
		return 3;
	second = connect_again();
	if (!second || dmaheap_connect(&third, it_daemon.socket) != -EDQUOT)
		return 4;
	dmaheap_close(second);
	return 0;
}

static void limits_of_a_uid_are_kept_and_named(void)
{
	CU_ASSERT_EQUAL(it_in_child(OTHER_UID, meets_its_limits, NULL), 0);
	CU_ASSERT_TRUE(daemon_log_wait(&it_daemon, "denied uid=54321 pid="));
	CU_ASSERT_TRUE(daemon_log_wait(&it_daemon,
				       "limit=bytes used=0 asked=9437184 "
				       "allowed=8388608 "
				       "key=\"[quota uid 54321] bytes\""));
	CU_ASSERT_TRUE(daemon_log_wait(&it_daemon, "limit=connections"));
}

/* HELLO is the first of the five. */
static int asks_too_often(void *ctx)
{
	static struct raw_reply reply;
	int sock = raw_open(it_daemon.socket), r = 0, n = 1;

	(void)ctx;
	if (sock < 0)
		return 100;
	while (n < 50) {
		r = raw_call(sock, DMAHEAP_OP_HEAPS, NULL, 0, &reply);
		if (r)
			break;
		n++;
	}
	if (r != -EDQUOT || !strstr(reply.payload, "requests_per_s = 5") ||
	    !strstr(reply.payload, "[quota uid 54325]"))
		return 101;
	return n;
}

static void requests_per_second_are_limited_per_uid(void)
{
	int n = it_in_child(BUSY_UID, asks_too_often, NULL);

	/* A slow machine may have earned a few more meanwhile. */
	CU_ASSERT_TRUE(n >= 5 && n < 50);
	CU_ASSERT_TRUE(daemon_log_wait(&it_daemon, "limit=requests_per_s"));
}

static void a_freed_buffer_is_not_charged_any_longer(void)
{
	struct {
		struct dmaheap_records_reply head;
		struct dmaheap_quota_record records[8];
	} reply;
	int fd = it_alloc("system", IT_MIB(1), NULL);
	long r;

	T_REQUIRE(fd >= 0);
	r = it_call(it_dh, DMAHEAP_OP_QUOTA, NULL, 0, &reply, sizeof(reply));
	T_REQUIRE(r > 0 && reply.head.n_records == 1);
	CU_ASSERT_EQUAL(reply.records[0].uid, geteuid());
	CU_ASSERT_EQUAL(reply.records[0].bytes_used, IT_MIB(1));
	CU_ASSERT_EQUAL(reply.records[0].bytes_limit,
			it_stats()->node.zone[0].size_bytes / 100 * 75);
	CU_ASSERT_EQUAL(reply.records[0].buffers_used, 1);
	CU_ASSERT_EQUAL(reply.records[0].connections_used, 1);
	close(fd);
	CU_ASSERT_TRUE(it_wait_all_free("system"));
	it_call(it_dh, DMAHEAP_OP_QUOTA, NULL, 0, &reply, sizeof(reply));
	CU_ASSERT_EQUAL(reply.records[0].bytes_used, 0);
	CU_ASSERT_EQUAL(reply.records[0].buffers_used, 0);
}

static void a_name_is_the_buffers_and_seen_in_the_list(void)
{
	struct dmaheap_buffers_req req = {0};
	struct {
		struct dmaheap_buffers_reply head;
		struct dmaheap_buffer_record records[4];
	} reply;
	struct stat st;
	int fd = it_alloc("system", IT_MIB(1), NULL), other;

	T_REQUIRE(fd >= 0 && fstat(fd, &st) == 0);
	CU_ASSERT_EQUAL(dmaheap_set_name(it_dh, fd, "preview"), 0);
	T_REQUIRE(it_call(it_dh, DMAHEAP_OP_BUFFERS, &req, sizeof(req), &reply,
			  sizeof(reply)) > 0);
	T_REQUIRE(reply.head.n_records == 1);
	CU_ASSERT_STRING_EQUAL(reply.records[0].name, "preview");
	CU_ASSERT_STRING_EQUAL(reply.records[0].heap, "system");
	CU_ASSERT_EQUAL(reply.records[0].ino, st.st_ino);
	CU_ASSERT_EQUAL(reply.records[0].dev, st.st_dev);
	CU_ASSERT_EQUAL(reply.records[0].pid, getpid());
	CU_ASSERT_EQUAL(reply.records[0].blocks[8], 1);
	CU_ASSERT_EQUAL(reply.records[0].state, DMAHEAP_BUFFER_LIVE);
	CU_ASSERT_EQUAL(reply.records[0].owner_is_dead, 0);
	other = open("/dev/null", O_RDWR | O_CLOEXEC);
	CU_ASSERT_EQUAL(dmaheap_set_name(it_dh, other, "x"), -ENOTTY);
	close(other);
	close(fd);
}

static void lists_longer_than_a_message_come_in_pages(void)
{
	struct dmaheap_buffers_req req = {0};
	static struct {
		struct dmaheap_buffers_reply head;
		struct dmaheap_buffer_record records[256];
	} reply;
	unsigned int n = 0;
	static int fds[4][64];

	for (int i = 0; i < 4; i++)
		T_REQUIRE(dmaheap_alloc_many(it_dh, "system", 4096,
					     O_RDWR | O_CLOEXEC, 0, 64,
					     fds[i]) == 0);
	do {
		T_REQUIRE(it_call(it_dh, DMAHEAP_OP_BUFFERS, &req, sizeof(req),
				  &reply, sizeof(reply)) > 0);
		n += reply.head.n_records;
		req.after_id = reply.records[reply.head.n_records - 1].id;
	} while (reply.head.more);
	CU_ASSERT_EQUAL(n, 256);
	for (int i = 0; i < 256; i++)
		close(fds[i / 64][i % 64]);
}

static void a_bad_reload_leaves_the_old_configuration(void)
{
	char text[256] = "";

	daemon_write_config(&it_daemon, CONFIG "[heap system]\norders = 0 4\n");
	CU_ASSERT_EQUAL(it_call(it_dh, DMAHEAP_OP_RELOAD, NULL, 0, NULL, 0),
			-EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(it_error, "c.conf:"));
	CU_ASSERT_PTR_NOT_NULL(strstr(it_error, ": orders: "));
	CU_ASSERT_STRING_EQUAL(it_heap_stats("system")->policy, "840-high");
	daemon_write_config(&it_daemon,
			    CONFIG "[heap system]\npolicy = 0-only\n"
				   "[heap more]\n");
	CU_ASSERT_TRUE(it_call(it_dh, DMAHEAP_OP_RELOAD, NULL, 0, text,
			       sizeof(text) - 1) > 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "need a restart: [heap]"));
	CU_ASSERT_STRING_EQUAL(it_heap_stats("system")->policy, "0-only");
}

static bool policy_is_0_only(void *ctx)
{
	(void)ctx;
	return !strcmp(it_heap_stats("system")->policy, "0-only");
}

static void sighup_reloads(void)
{
	daemon_write_config(&it_daemon, "[daemon]\nbad\n");
	kill(it_daemon.pid, SIGHUP);
	CU_ASSERT_TRUE(daemon_log_wait(&it_daemon, "reload result=refused"));
	CU_ASSERT_STRING_EQUAL(it_heap_stats("system")->policy, "840-high");
	daemon_write_config(&it_daemon,
			    CONFIG "[heap system]\npolicy = 0-only\n");
	kill(it_daemon.pid, SIGHUP);
	CU_ASSERT_TRUE(wait_until(policy_is_0_only, NULL, 5000));
}

static void the_policy_is_shown_as_it_is_set(void)
{
	struct dmaheap_policy_req req = {.op = DMAHEAP_POLICY_SHOW};
	struct {
		struct dmaheap_text_reply head;
		char text[4096];
	} reply = {.text = ""};

	CU_ASSERT_EQUAL(it_set_policy("system",
				      "orders=8 0 0\npool.8.limit=2M\n"),
			0);
	T_REQUIRE(it_call(it_dh, DMAHEAP_OP_POLICY, &req, sizeof(req), &reply,
			  sizeof(reply)) > 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(reply.text, "orders=8 0 0\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(reply.text, "pool.8.limit=2M\n"));
	/* One bad line, and none of them counts. */
	CU_ASSERT_EQUAL(it_set_policy("system", "orders=0\ngfp.0=NONE\n"),
			-EINVAL);
	CU_ASSERT_EQUAL(it_heap_stats("system")->n_pools, 2);
}

static void injected_failures_hit_what_they_should(void)
{
	struct dmaheap_inject_req req = {
		.uid = DMAHEAP_INJECT_ANY_ID,
		.pid = DMAHEAP_INJECT_ANY_ID,
		.fail_nth = 3,
		.err = ENOSPC,
	};
	struct dmaheap *other = connect_again();
	int r[5];

	CU_ASSERT_EQUAL(it_call(other, DMAHEAP_OP_INJECT, &req, sizeof(req),
				NULL, 0),
			0);
	for (int i = 0; i < 5; i++)
		r[i] = it_alloc("system", 4096, NULL);
	CU_ASSERT_TRUE(r[0] >= 0 && r[1] >= 0 && r[3] >= 0 && r[4] >= 0);
	CU_ASSERT_EQUAL(r[2], -ENOSPC);
	for (int i = 0; i < 5; i++)
		if (r[i] >= 0)
			close(r[i]);
	/* It ends with the connection that set it. */
	req.fail_nth = 0;
	req.fail_rate_ppm = 1000000;
	it_call(other, DMAHEAP_OP_INJECT, &req, sizeof(req), NULL, 0);
	CU_ASSERT_EQUAL(it_alloc("system", 4096, NULL), -ENOSPC);
	dmaheap_close(other);
	for (int i = 0; i < 1000 && r[0] != -1; i++) {
		r[0] = it_alloc("system", 4096, NULL);
		if (r[0] >= 0) {
			close(r[0]);
			break;
		}
	}
	CU_ASSERT_TRUE(r[0] >= 0);
	req.fail_nth = 1;
	CU_ASSERT_EQUAL(it_call(it_dh, DMAHEAP_OP_INJECT, &req, sizeof(req),
				NULL, 0),
			-EINVAL);
}

static int is_refused(void *ctx)
{
	(void)ctx;
	it_dh = connect_again();
	return it_alloc("system", IT_MIB(9), NULL) == -EDQUOT ? 0 : 1;
}

static int asks_until_refused(void *ctx)
{
	(void)ctx;
	it_dh = connect_again();
	for (int n = 0; n < 1000; n++)
		if (it_alloc("system", 4096, NULL) == -EDQUOT)
			return 0;
	return 1;
}

static uint64_t n_failures(const char *heap)
{
	return it_heap_stats(heap)->failures;
}

static void every_refused_request_is_a_failure_of_its_heap(void)
{
	struct dmaheap_inject_req req = {
		.uid = DMAHEAP_INJECT_ANY_ID,
		.pid = DMAHEAP_INJECT_ANY_ID,
		.fail_nth = 1,
	};
	int fd;

	CU_ASSERT_EQUAL(n_failures("system"), 0);
	it_call(it_dh, DMAHEAP_OP_INJECT, &req, sizeof(req), NULL, 0);
	CU_ASSERT_EQUAL(it_alloc("system", 4096, NULL), -ENOMEM);
	CU_ASSERT_EQUAL(n_failures("system"), 1);
	CU_ASSERT_EQUAL(it_alloc("system", IT_MIB(512), NULL), -ENOMEM);
	CU_ASSERT_EQUAL(n_failures("system"), 2);
	CU_ASSERT_EQUAL(it_in_child(OTHER_UID, is_refused, NULL), 0);
	CU_ASSERT_EQUAL(n_failures("system"), 3);
	CU_ASSERT_EQUAL(it_in_child(BUSY_UID, asks_until_refused, NULL), 0);
	CU_ASSERT_EQUAL(n_failures("system"), 4);
	/* More than the node has, in two parts: a quota must not say so first.
	 */
	daemon_write_config(&it_daemon, CONFIG "[quota]\nbytes = 1G\n");
	it_call(it_dh, DMAHEAP_OP_RELOAD, NULL, 0, NULL, 0);
	fd = it_alloc("system", IT_MIB(160), NULL);
	T_REQUIRE(fd >= 0);
	CU_ASSERT_EQUAL(it_alloc("system", IT_MIB(160), NULL), -ENOMEM);
	CU_ASSERT_EQUAL(n_failures("system"), 5);
	CU_ASSERT_EQUAL(n_failures("system-uncached"), 0);
	CU_ASSERT_EQUAL(it_alloc("nothing", 4096, NULL), -ENOENT);
	CU_ASSERT_EQUAL(n_failures("system"), 5);
	close(fd);
}

static void an_injected_stall_delays_only_its_request(void)
{
	struct dmaheap_inject_req req = {
		.uid = DMAHEAP_INJECT_ANY_ID,
		.pid = DMAHEAP_INJECT_ANY_ID,
		.stall_ms = 60,
		.count = 1,
	};
	struct dmaheap_alloc_report report = {0};
	int fd;

	it_call(it_dh, DMAHEAP_OP_INJECT, &req, sizeof(req), NULL, 0);
	fd = it_alloc("system", 4096, &report);
	T_REQUIRE(fd >= 0);
	CU_ASSERT_TRUE(report.measured_total_ns >= 60000000);
	CU_ASSERT_TRUE(report.waited_stall_ns > 0);
	close(fd);
	fd = it_alloc("system", 4096, &report);
	T_REQUIRE(fd >= 0);
	CU_ASSERT_EQUAL(report.waited_stall_ns, 0);
	close(fd);
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"another uid may not administer",
		 another_uid_may_not_administer},
		{"root of another user namespace may not administer",
		 root_of_another_user_namespace_may_not_administer},
		{"members of the admin group may administer",
		 members_of_the_admin_group_may_administer},
		{"limits of a uid are kept and named",
		 limits_of_a_uid_are_kept_and_named},
		{"requests per second are limited per uid",
		 requests_per_second_are_limited_per_uid},
		{"a freed buffer is not charged any longer",
		 a_freed_buffer_is_not_charged_any_longer},
		{"a name is the buffer's and seen in the list",
		 a_name_is_the_buffers_and_seen_in_the_list},
		{"lists longer than a message come in pages",
		 lists_longer_than_a_message_come_in_pages},
		{"a bad reload leaves the old configuration",
		 a_bad_reload_leaves_the_old_configuration},
		{"SIGHUP reloads", sighup_reloads},
		{"the policy is shown as it is set",
		 the_policy_is_shown_as_it_is_set},
		{"injected failures hit what they should",
		 injected_failures_hit_what_they_should},
		{"every refused request is a failure of its heap",
		 every_refused_request_is_a_failure_of_its_heap},
		{"an injected stall delays only its request",
		 an_injected_stall_delays_only_its_request},
		CU_TEST_INFO_NULL,
	};

	if (geteuid() != 0)
		t_skip("needs root to become other users");
	it_options.config = CONFIG;
	return it_main(argc, argv, tests);
}
