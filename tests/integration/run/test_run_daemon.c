/* SPDX-License-Identifier: MIT */
/*
 * dmaheap-run over real daemons: nothing may be left in a shared one, and a
 * private one ends with the run.
 */
#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <dmaheap/dmaheap.h>

#include "command.h"
#include "support/daemon.h"
#include "support/test.h"

static struct daemon the_daemon;
static struct dmaheap *handle;

#define WORDS(...)                                                             \
	(const char *const[])                                                  \
	{                                                                      \
		__VA_ARGS__, NULL                                              \
	}

static void setup(void)
{
	T_REQUIRE(daemon_start(&the_daemon, &(struct daemon_options){
						    .uid = DAEMON_ANY_UID}));
	T_REQUIRE(dmaheap_connect(&handle, the_daemon.socket) == 0);
}

static void teardown(void)
{
	handle = dmaheap_close(handle);
	daemon_stop(&the_daemon);
}

static void expect_status(struct command *c, int status)
{
	if (!WIFEXITED(c->status) || WEXITSTATUS(c->status) != status)
		fprintf(stderr, "status 0x%x\n%s%s", (unsigned int)c->status,
			c->out, c->err);
	CU_ASSERT(WIFEXITED(c->status));
	CU_ASSERT_EQUAL(WEXITSTATUS(c->status), status);
}

/* Live buffers of all heaps, and parked memfds given back. */
static bool is_empty(void *ctx)
{
	static struct dmaheap_stats stats;
	struct dmaheap_shrink_req shrink = {.to_bytes = 0};
	struct dmaheap_message msg = {.opcode = DMAHEAP_OP_SHRINK,
				      .payload = &shrink,
				      .payload_bytes = sizeof(shrink)};
	uint64_t buffers = 0;

	if (dmaheap_call(handle, &msg) || dmaheap_stats(handle, &stats))
		return false;
	for (uint32_t i = 0; i < stats.n_heaps; i++)
		buffers += stats.heap[i].buffers;
	return buffers == 0 &&
	       count_fds(the_daemon.pid) <= *(unsigned int *)ctx;
}

/* Runs a scenario over the shared daemon, and looks what it left there. */
static void expect_no_leak(const char *name, const char *argument)
{
	unsigned int fds = count_fds(the_daemon.pid);
	struct command c;

	command_run(&c,
		    WORDS(RUN_PROGRAM, "--socket", the_daemon.socket, "--",
			  RUN_SCENARIO, name, argument),
		    NULL);
	expect_status(&c, 0);
	CU_ASSERT_STRING_EQUAL(c.err, "");
	command_end(&c);
	CU_ASSERT_TRUE(wait_until(is_empty, &fds, 5000));
}

static void forks_with_live_buffers_leave_nothing(void)
{
	expect_no_leak("forks", NULL);
}

static void a_hundred_threads_leave_nothing(void)
{
	expect_no_leak("threads", NULL);
}

static void thousands_of_allocations_are_zero_and_leave_nothing(void)
{
	expect_no_leak("thousands", "2000");
}

static void replies_that_cannot_be_stored_leave_nothing(void)
{
	expect_no_leak("bad-pointers", NULL);
}

static void a_killed_program_leaves_nothing(void)
{
	unsigned int fds = count_fds(the_daemon.pid);
	struct command c;

	command_run(&c,
		    WORDS(RUN_PROGRAM, "--socket", the_daemon.socket, "--",
			  "sh", "-c",
			  RUN_SCENARIO " alloc 60000 & sleep 0.3; kill -9 $!"),
		    NULL);
	expect_status(&c, 0);
	command_end(&c);
	CU_ASSERT_TRUE(wait_until(is_empty, &fds, 5000));
}

static void names_reach_the_daemon(void)
{
	char reply[4096] __attribute__((aligned(8)));
	struct dmaheap_buffers_req req = {0};
	struct dmaheap_message msg = {.opcode = DMAHEAP_OP_BUFFERS,
				      .payload = &req,
				      .payload_bytes = sizeof(req),
				      .reply = reply,
				      .reply_capacity_bytes = sizeof(reply)};
	const struct dmaheap_buffers_reply *head = (const void *)reply;
	const struct dmaheap_buffer_record *record = (const void *)(head + 1);
	bool found = false;
	struct command c;

	command_start(&c,
		      WORDS(RUN_PROGRAM, "--socket", the_daemon.socket, "--",
			    RUN_SCENARIO, "after-death"),
		      NULL);
	CU_ASSERT(command_wait_for(&c, "ready"));
	CU_ASSERT_EQUAL(dmaheap_call(handle, &msg), 0);
	CU_ASSERT(msg.reply_bytes >= sizeof(*head) && head->n_records == 1);
	found = record->size_bytes == 65536;
	CU_ASSERT_TRUE(found);
	kill(c.pid, SIGKILL);
	command_wait(&c);
	command_end(&c);
}

static void when_the_daemon_dies_allocations_fail_and_the_rest_goes_on(void)
{
	struct command c;
	const char *first;

	command_start(&c,
		      WORDS(RUN_PROGRAM, "--socket", the_daemon.socket, "--",
			    RUN_SCENARIO, "after-death"),
		      NULL);
	CU_ASSERT(command_wait_for(&c, "ready"));
	daemon_kill(&the_daemon);
	usleep(100000);
	kill(c.pid, SIGTERM);
	command_wait(&c);
	expect_status(&c, 0);
	first = strstr(c.err, "the daemon is gone");
	CU_ASSERT_PTR_NOT_NULL(first);
	CU_ASSERT(first && !strstr(first + 1, "the daemon is gone"));
	command_end(&c);
}

static void without_a_daemon_a_private_one_is_started_and_ended(void)
{
	struct command c;
	int pid = 0;
	const char *at;

	command_run(&c,
		    WORDS(RUN_PROGRAM, "--private", "--", RUN_SCENARIO,
			  "alloc"),
		    NULL);
	expect_status(&c, 0);
	at = strstr(c.err, "(pid ");
	CU_ASSERT_PTR_NOT_NULL(at);
	CU_ASSERT(at && sscanf(at, "(pid %d,", &pid) == 1);
	CU_ASSERT_EQUAL(kill(pid, 0), -1);
	/* One line, and no more. */
	CU_ASSERT_PTR_EQUAL(strchr(c.err, '\n'), c.err + strlen(c.err) - 1);
	command_end(&c);
}

/* What @options make of the program's DMAHEAP_SOCKET. */
static void expect_socket(const char *const *options, const char *const *env,
			  const char *says)
{
	const char *argv[COMMAND_ARGS_MAX] = {RUN_PROGRAM};
	struct command c;
	size_t n = 1;

	while (*options)
		argv[n++] = *options++;
	argv[n++] = "sh";
	argv[n++] = "-c";
	argv[n++] = "cd / && echo $DMAHEAP_SOCKET && exec " RUN_CTL " wait";
	command_run(&c, argv, env);
	expect_status(&c, 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(c.out, says ? says : "/dmaheap-run-"));
	if (!says) {
		c.out[strcspn(c.out, "\n")] = '\0';
		CU_ASSERT_PTR_NOT_NULL(strstr(c.err, c.out));
	}
	command_end(&c);
}

static void the_program_is_told_which_daemon_it_has(void)
{
	const char *other[] = {"DMAHEAP_SOCKET=/nonexistent", NULL};
	char named[128];
	const char *env[] = {named, NULL};

	snprintf(named, sizeof(named), "DMAHEAP_SOCKET=%s", the_daemon.socket);
	expect_socket(WORDS("--socket", the_daemon.socket), other,
		      the_daemon.socket);
	expect_socket(WORDS("--"), env, the_daemon.socket);
	expect_socket(WORDS("--private"), env, NULL);
	/* Relative to where it was typed. */
	T_REQUIRE(chdir(the_daemon.dir) == 0);
	expect_socket(WORDS("--socket",
			    the_daemon.socket + strlen(the_daemon.dir) + 1),
		      other, the_daemon.socket);
	T_REQUIRE(chdir("/") == 0);
}

static void the_report_names_the_socket(void)
{
	char path[] = "/tmp/dmaheap-report-XXXXXX", named[128];
	const char *env[] = {named, NULL};
	int fd = mkstemp(path);
	struct command c;
	json_t *report;

	T_REQUIRE(fd >= 0);
	close(fd);
	snprintf(named, sizeof(named), "DMAHEAP_SOCKET=%s", the_daemon.socket);
	command_run(&c, WORDS(RUN_PROGRAM, "--report", path, "true"), env);
	expect_status(&c, 0);
	command_end(&c);
	report = json_load_file(path, 0, NULL);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(
				       json_object_get(report, "daemon"),
				       "socket")),
			       the_daemon.socket);
	json_decref(report);
	unlink(path);
}

static void a_private_daemon_that_cannot_start_is_told(void)
{
	struct command c;

	command_run(&c,
		    WORDS(RUN_PROGRAM, "--policy", "no-such-policy", "--",
			  "true"),
		    NULL);
	expect_status(&c, 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(c.err, "did not start"));
	CU_ASSERT_PTR_NOT_NULL(
		strstr(c.err, "--set [heap system] policy = no-such-policy: "
			      "policy: "));
	command_end(&c);
	command_run(&c,
		    WORDS(RUN_PROGRAM, "--node", "/nonexistent", "--", "true"),
		    NULL);
	expect_status(&c, 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(c.err, "/nonexistent"));
	command_end(&c);
	command_run(&c,
		    WORDS(RUN_PROGRAM, "--socket", "/nonexistent/sock", "--",
			  "true"),
		    NULL);
	expect_status(&c, 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(c.err, "/nonexistent/sock"));
	command_end(&c);
}

/* A directory with c.conf of @text and the snapshot "my-phone" beside it. */
static void make_config(char dir[static 64], const char *text)
{
	char path[128];
	FILE *file;

	snprintf(dir, 64, "/tmp/dmaheap-test-XXXXXX");
	T_REQUIRE(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/my-phone", dir);
	T_REQUIRE(symlink(RUN_CONFIGS "/snapshots/phone-fragmented", path) ==
		  0);
	snprintf(path, sizeof(path), "%s/c.conf", dir);
	file = fopen(path, "we");
	T_REQUIRE(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void remove_config(const char *dir)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r %s", dir);
	CU_ASSERT_EQUAL(system(command), 0);
}

static json_int_t n_pages_of_first(const char *report_path)
{
	json_t *report = json_load_file(report_path, 0, NULL);
	json_t *first =
		json_array_get(json_object_get(report, "allocations"), 0);
	json_int_t n = json_integer_value(
		json_object_get(json_object_get(first, "composition"), "0"));

	json_decref(report);
	return n;
}

static void the_users_config_is_read_where_it_is(void)
{
	char dir[64], config[128], report[128], link[160];
	struct command c;

	make_config(dir, "[node]\nsnapshot = my-phone\n"
			 "[heap system]\npolicy = 840-high\norders = 4 0\n");
	snprintf(config, sizeof(config), "%s/c.conf", dir);
	snprintf(report, sizeof(report), "%s/report", dir);
	command_run(&c,
		    WORDS(RUN_PROGRAM, "--config", config, "--policy", "0-only",
			  "--report", report, "--", RUN_SCENARIO, "alloc"),
		    NULL);
	expect_status(&c, 0);
	command_end(&c);
	CU_ASSERT_EQUAL(n_pages_of_first(report), 16);
	/* Another node than the file's: a directory of the command line. */
	snprintf(link, sizeof(link), "%s/none", dir);
	T_REQUIRE(symlink("/nonexistent", link) == 0);
	command_run(&c,
		    WORDS("sh", "-c",
			  "cd \"$0\" && sed -i s/my-phone/none/ c.conf && "
			  "exec " RUN_PROGRAM
			  " --config c.conf --node ./my-phone true",
			  dir),
		    NULL);
	expect_status(&c, 0);
	command_end(&c);
	remove_config(dir);
}

static void faults_of_the_users_config_name_its_lines(void)
{
	char dir[64], config[128], says[160];
	struct command c;

	make_config(dir, "[node]\nsize = 12X\n");
	snprintf(config, sizeof(config), "%s/c.conf", dir);
	snprintf(says, sizeof(says), "%s:2: size: ", config);
	command_run(&c, WORDS(RUN_PROGRAM, "--config", config, "true"), NULL);
	expect_status(&c, 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(c.err, says));
	command_end(&c);
	remove_config(dir);
}

static void the_shipped_config_takes_policy_and_node(void)
{
	struct command c;

	command_run(&c,
		    WORDS(RUN_PROGRAM, "--config", RUN_CONFIGS "/dmaheapd.conf",
			  "--policy", "800", "--node",
			  RUN_CONFIGS "/snapshots/phone-fragmented", "--",
			  RUN_SCENARIO, "alloc"),
		    NULL);
	expect_status(&c, 0);
	command_end(&c);
}

static void a_node_is_a_shipped_name_too(void)
{
	char dir[64], config[128];
	struct command c;

	command_run(&c,
		    WORDS(RUN_PROGRAM, "--node", "phone-fragmented", "true"),
		    NULL);
	expect_status(&c, 0);
	command_end(&c);
	command_run(&c, WORDS(RUN_PROGRAM, "--node", "no-such", "true"), NULL);
	expect_status(&c, 1);
	CU_ASSERT_PTR_NOT_NULL(
		strstr(c.err, "[node] snapshot: \"no-such\" is neither"));
	command_end(&c);
	/* In a file, too: also where nothing is beside it. */
	make_config(dir, "[node]\nsnapshot = order4-low-840\n");
	snprintf(config, sizeof(config), "%s/c.conf", dir);
	command_run(&c, WORDS(RUN_PROGRAM, "--config", config, "true"), NULL);
	expect_status(&c, 0);
	command_end(&c);
	remove_config(dir);
}

static json_int_t first_stall(const json_t *report)
{
	const json_t *first =
		json_array_get(json_object_get(report, "allocations"), 0);
	const json_t *measured = json_object_get(first, "measured_ns");

	return json_integer_value(json_object_get(measured, "total"));
}

static void an_injected_stall_is_seen_and_reported(void)
{
	char path[] = "/tmp/dmaheap-report-XXXXXX";
	int fd = mkstemp(path);
	struct command c;
	json_t *report;

	T_REQUIRE(fd >= 0);
	close(fd);
	command_run(&c,
		    WORDS(RUN_PROGRAM, "--policy", "840-mid", "--inject",
			  "stall=80ms", "--report", path, "--", RUN_SCENARIO,
			  "timer"),
		    NULL);
	expect_status(&c, 0);
	command_end(&c);
	report = json_load_file(path, 0, NULL);
	CU_ASSERT_PTR_NOT_NULL(report);
	CU_ASSERT(first_stall(report) >= 79000000);
	json_decref(report);
	unlink(path);
}

static void an_injected_failure_is_seen(void)
{
	static const struct {
		const char *spec, *says;
	} cases[] = {
		{"fail-nth=1", "errno ENOMEM"},
		{"fail-nth=1,errno=EIO", "errno EIO"},
		{"fail-nth=1,errno=EINTR", "errno EINTR"},
		{"fail-nth=1,errno=EDQUOT", "errno EDQUOT"},
		/* What means for the library that the daemon went away. */
		{"fail-nth=1,errno=ECONNRESET", "errno ECONNRESET"},
		{"fail-nth=1,errno=EPROTO", "errno EPROTO"},
	};
	struct command c;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		command_run(&c,
			    WORDS(RUN_PROGRAM, "--inject", cases[i].spec, "--",
				  RUN_SCENARIO, "alloc"),
			    NULL);
		expect_status(&c, 1);
		CU_ASSERT_PTR_NOT_NULL(strstr(c.err, cases[i].says));
		CU_ASSERT_PTR_NULL(strstr(c.err, "daemon is gone"));
		command_end(&c);
	}
}

static void a_quota_is_enomem(void)
{
	char dir[64], config[128];
	struct command c;

	make_config(dir, "[quota]\nbuffers = 0\n");
	snprintf(config, sizeof(config), "%s/c.conf", dir);
	command_run(&c,
		    WORDS(RUN_PROGRAM, "--config", config, "--", RUN_SCENARIO,
			  "alloc"),
		    NULL);
	expect_status(&c, 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(c.err, "errno ENOMEM"));
	command_end(&c);
	remove_config(dir);
}

static int count_workdirs(void)
{
	static const char *const places[] = {"/dev/shm", "/tmp"};
	struct dirent *entry;
	int n = 0;

	for (size_t i = 0; i < 2; i++) {
		DIR *dir = opendir(places[i]);

		while (dir && (entry = readdir(dir)))
			n += strncmp(entry->d_name, "dmaheap-run-", 12) == 0;
		if (dir)
			closedir(dir);
	}
	return n;
}

static void no_files_are_left(void)
{
	int before = count_workdirs();
	struct command c;

	command_run(&c,
		    WORDS(RUN_PROGRAM, "--private", "--", RUN_SCENARIO,
			  "mirror"),
		    NULL);
	expect_status(&c, 0);
	command_end(&c);
	command_run(&c, WORDS(RUN_PROGRAM, "--private", "--", "/nonexistent"),
		    NULL);
	expect_status(&c, 127);
	command_end(&c);
	/* The daemon is killed by the program, and can remove nothing. */
	command_run(&c,
		    WORDS(RUN_PROGRAM, "--private", "--", "sh", "-c",
			  "for p in $(cat /proc/$PPID/task/$PPID/children); do "
			  "[ $p = $$ ] || kill -9 $p || exit 3; done"),
		    NULL);
	expect_status(&c, 0);
	command_end(&c);
	CU_ASSERT(count_workdirs() <= before);
}

int main(int argc, char **argv)
{
	CU_TestInfo shared[] = {
		{"forks with live buffers leave nothing",
		 forks_with_live_buffers_leave_nothing},
		{"a hundred threads leave nothing",
		 a_hundred_threads_leave_nothing},
		{"thousands of allocations are zero and leave nothing",
		 thousands_of_allocations_are_zero_and_leave_nothing},
		{"replies that cannot be stored leave nothing",
		 replies_that_cannot_be_stored_leave_nothing},
		{"a killed program leaves nothing",
		 a_killed_program_leaves_nothing},
		{"buffers are the daemon's", names_reach_the_daemon},
		{"the program is told which daemon it has",
		 the_program_is_told_which_daemon_it_has},
		{"the report names the socket", the_report_names_the_socket},
		{"when the daemon dies allocations fail and the rest goes on",
		 when_the_daemon_dies_allocations_fail_and_the_rest_goes_on},
		CU_TEST_INFO_NULL,
	};
	CU_TestInfo private[] = {
		{"without a daemon a private one is started and ended",
		 without_a_daemon_a_private_one_is_started_and_ended},
		{"a private daemon that cannot start is told",
		 a_private_daemon_that_cannot_start_is_told},
		{"the user's config is read where it is",
		 the_users_config_is_read_where_it_is},
		{"faults of the user's config name its lines",
		 faults_of_the_users_config_name_its_lines},
		{"the shipped config takes policy and node",
		 the_shipped_config_takes_policy_and_node},
		{"a node is a shipped name, too", a_node_is_a_shipped_name_too},
		{"an injected stall is seen and reported",
		 an_injected_stall_is_seen_and_reported},
		{"an injected failure is seen", an_injected_failure_is_seen},
		{"a quota is ENOMEM", a_quota_is_enomem},
		{"no files are left", no_files_are_left},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "shared",
		 .pSetUpFunc = setup,
		 .pTearDownFunc = teardown,
		 .pTests = shared},
		{.pName = "private", .pTests = private},
		CU_SUITE_INFO_NULL,
	};

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	skip_without_seccomp(RUN_PROGRAM " --private true 2>&1");
	return t_main(argc, argv, suites);
}
