/* SPDX-License-Identifier: MIT */
/*
 * dmaheap-run itself, over a double of the daemon: what the program sees and
 * how it ends.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <dmaheap/protocol.h>

#include "command.h"
#include "support/test.h"

/* Runs a scenario over the double; the words end with NULL. */
static void run_words(struct command *c, const char *const *options,
		      const char *const *scenario, const char *const *env)
{
	const char *argv[COMMAND_ARGS_MAX] = {RUN_DOUBLE};
	size_t n = 1;

	for (; options && *options; options++)
		argv[n++] = *options;
	argv[n++] = "--";
	argv[n++] = RUN_SCENARIO;
	for (; *scenario; scenario++)
		argv[n++] = *scenario;
	command_run(c, argv, env);
}

#define WORDS(...)                                                             \
	(const char *const[])                                                  \
	{                                                                      \
		__VA_ARGS__, NULL                                              \
	}

static void expect_status(struct command *c, int status)
{
	if (WIFSIGNALED(c->status) || WEXITSTATUS(c->status) != status)
		fprintf(stderr, "status 0x%x\n%s%s", (unsigned int)c->status,
			c->out, c->err);
	CU_ASSERT(WIFEXITED(c->status));
	CU_ASSERT_EQUAL(WEXITSTATUS(c->status), status);
}

/* Whether it ends with 0 and says nothing on standard error. */
static void expect_good(const char *const *options, const char *const *scenario,
			const char *const *env)
{
	struct command c;

	run_words(&c, options, scenario, env);
	expect_status(&c, 0);
	CU_ASSERT_STRING_EQUAL(c.err, "");
	command_end(&c);
}

static void every_way_to_write_the_path_leads_to_the_heap(void)
{
	char dir[] = "/tmp/dmaheap-test-XXXXXX", command[64];

	T_REQUIRE(mkdtemp(dir));
	expect_good(NULL, WORDS("paths", dir), NULL);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	CU_ASSERT_EQUAL(system(command), 0);
}

static void openat2_works_and_keeps_its_own_errors(void)
{
	expect_good(NULL, WORDS("openat2"), NULL);
}

static void two_directory_streams_list_the_same_devices(void)
{
	expect_good(NULL, WORDS("directory"), NULL);
}

static void heap_and_buffer_are_known_after_dup_fork_socket_exec(void)
{
	expect_good(NULL, WORDS("identity"), NULL);
}

static void a_reply_that_cannot_be_stored_is_efault_and_leaks_nothing(void)
{
	expect_good(NULL, WORDS("bad-pointers"), NULL);
	expect_good(WORDS("--strict"), WORDS("bad-pointers"), NULL);
}

static void sync_files_poll_readable_and_are_known(void)
{
	expect_good(NULL, WORDS("sync-files"), NULL);
}

static void proc_and_sys_tell_of_the_buffers(void)
{
	expect_good(NULL, WORDS("mirror"), NULL);
}

static void strict_refuses_what_a_dma_buf_refuses(void)
{
	expect_good(WORDS("--strict"), WORDS("strict"), NULL);
}

static void a_filter_of_the_programs_own_works(void)
{
	expect_good(NULL, WORDS("own-filter"), NULL);
}

static void spawned_vforked_and_shell_children_are_served(void)
{
	expect_good(NULL, WORDS("spawn"), NULL);
}

static void a_timer_does_not_restart_a_stalled_allocation_for_ever(void)
{
	expect_good(NULL, WORDS("timer"), WORDS("DOUBLE_STALL_MS=80"));
}

static void stalled_allocations_do_not_delay_opens(void)
{
	const char *const stall[] = {"DOUBLE_STALL_MS=1000", NULL};

	expect_good(NULL, WORDS("open-during-stall", "1"), stall);
	expect_good(NULL, WORDS("open-during-stall", "100"), stall);
}

static void a_failure_of_the_daemon_is_enomem(void)
{
	struct command c;

	run_words(&c, NULL, WORDS("alloc"), WORDS("DOUBLE_FAIL=122"));
	expect_status(&c, 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(c.err, "errno ENOMEM"));
	command_end(&c);
}

static void a_failure_is_itself_only_where_it_was_injected(void)
{
	static const struct {
		const char *fail, *why, *says;
	} cases[] = {
		{"DOUBLE_FAIL=122", "DOUBLE_WHY=" DMAHEAP_INJECTED_TEXT,
		 "errno EDQUOT"},
		{"DOUBLE_FAIL=4",
		 "DOUBLE_WHY=heap system: " DMAHEAP_INJECTED_TEXT,
		 "errno EINTR"},
		{"DOUBLE_FAIL=122",
		 "DOUBLE_WHY=\"" DMAHEAP_INJECTED_TEXT "\" is no heap",
		 "errno ENOMEM"},
	};
	struct command c;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		run_words(&c, NULL, WORDS("alloc"),
			  WORDS(cases[i].fail, cases[i].why));
		expect_status(&c, 1);
		CU_ASSERT_PTR_NOT_NULL(strstr(c.err, cases[i].says));
		command_end(&c);
	}
}

static void the_exit_status_is_the_programs(void)
{
	struct command c;

	command_run(&c, WORDS(RUN_DOUBLE, "sh", "-c", "exit 7"), NULL);
	expect_status(&c, 7);
	command_end(&c);
	/* Also where the caller ignores SIGCHLD. */
	command_run(&c,
		    WORDS("sh", "-c",
			  "trap '' CHLD; exec " RUN_DOUBLE " sh -c 'exit 7'"),
		    NULL);
	expect_status(&c, 7);
	command_end(&c);
	command_run(&c, WORDS(RUN_DOUBLE, "/nonexistent/program"), NULL);
	expect_status(&c, 127);
	CU_ASSERT_PTR_NOT_NULL(strstr(c.err, "/nonexistent/program"));
	command_end(&c);
	command_run(&c, WORDS(RUN_DOUBLE, "/etc/passwd"), NULL);
	expect_status(&c, 126);
	command_end(&c);
}

static void death_by_signal_is_passed_on(void)
{
	static const char *const numbers[] = {"9", "11", "15"};
	struct command c;

	for (size_t i = 0; i < 3; i++) {
		run_words(&c, NULL, WORDS("die", numbers[i]), NULL);
		CU_ASSERT(WIFSIGNALED(c.status));
		CU_ASSERT_EQUAL(WTERMSIG(c.status), atoi(numbers[i]));
		command_end(&c);
	}
}

static void signals_to_the_launcher_reach_the_program(void)
{
	struct command c;

	command_start(&c, WORDS(RUN_DOUBLE, RUN_SCENARIO, "signals"), NULL);
	CU_ASSERT(command_wait_for(&c, "ready"));
	kill(c.pid, SIGTERM);
	command_wait(&c);
	expect_status(&c, 42);
	command_end(&c);
}

static bool is_stopped(pid_t pid)
{
	char path[64], text[256];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	return n > 0 && strstr(text, ") T ");
}

static void the_launcher_stops_and_continues_with_the_program(void)
{
	struct command c;
	int status;

	command_start(&c, WORDS(RUN_DOUBLE, RUN_SCENARIO, "signals"), NULL);
	CU_ASSERT(command_wait_for(&c, "ready"));
	kill(c.pid, SIGTSTP);
	CU_ASSERT_EQUAL(waitpid(c.pid, &status, WUNTRACED), c.pid);
	CU_ASSERT(WIFSTOPPED(status));
	CU_ASSERT(is_stopped(c.pid));
	kill(c.pid, SIGCONT);
	kill(c.pid, SIGTERM);
	command_wait(&c);
	expect_status(&c, 42);
	command_end(&c);
}

static void the_program_dies_with_a_killed_launcher(void)
{
	struct command c;

	command_start(&c, WORDS(RUN_DOUBLE, RUN_SCENARIO, "signals"), NULL);
	CU_ASSERT(command_wait_for(&c, "ready"));
	kill(c.pid, SIGKILL);
	command_wait(&c);
	/* Its processes come to us, the subreaper; they end by themselves. */
	for (int i = 0; i < 500 && waitpid(-1, NULL, WNOHANG) >= 0; i++)
		usleep(10000);
	CU_ASSERT_EQUAL(waitpid(-1, NULL, WNOHANG), -1);
	command_end(&c);
}

static bool is_file(void *path)
{
	return access(path, F_OK) == 0;
}

static void a_daemonised_child_is_served_after_the_program_ended(void)
{
	char dir[] = "/tmp/dmaheap-test-XXXXXX", go[64], done[64];
	struct command c;

	T_REQUIRE(mkdtemp(dir));
	snprintf(go, sizeof(go), "%s/go", dir);
	snprintf(done, sizeof(done), "%s/done", dir);
	run_words(&c, NULL, WORDS("daemonise", go, done), NULL);
	expect_status(&c, 0);
	close(open(go, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	for (int i = 0; i < 6000 && !is_file(done); i++)
		usleep(10000);
	CU_ASSERT_TRUE(is_file(done));
	for (int i = 0; i < 6000 && waitpid(-1, NULL, WNOHANG) >= 0; i++)
		usleep(10000);
	unlink(go);
	unlink(done);
	rmdir(dir);
	command_end(&c);
}

static void the_programs_descriptors_are_as_without(void)
{
	struct command bare, under;

	command_run(&bare, WORDS("sh", "-c", "ls /proc/self/fd"), NULL);
	command_run(&under, WORDS(RUN_DOUBLE, "sh", "-c", "ls /proc/self/fd"),
		    NULL);
	CU_ASSERT_STRING_EQUAL(bare.out, under.out);
	command_end(&bare);
	command_end(&under);
}

static void a_32_bit_call_is_refused_aloud(void)
{
	struct command bare, under;

	command_run(&bare, WORDS(RUN_SCENARIO, "foreign-call"), NULL);
	command_run(&under, WORDS(RUN_DOUBLE, RUN_SCENARIO, "foreign-call"),
		    NULL);
	/* Without 32-bit calls in the kernel the program dies by itself. */
	if (WIFEXITED(bare.status)) {
		CU_ASSERT(WIFSIGNALED(under.status));
		CU_ASSERT_EQUAL(WTERMSIG(under.status), SIGKILL);
		CU_ASSERT_PTR_NOT_NULL(strstr(under.err, "32-bit (i386)"));
		CU_ASSERT_STRING_EQUAL(under.out, "");
	} else {
		CU_ASSERT_EQUAL(under.status, bare.status);
	}
	command_end(&bare);
	command_end(&under);
}

static void a_run_within_a_run_is_refused_aloud(void)
{
	struct command c;

	command_run(&c, WORDS(RUN_DOUBLE, RUN_DOUBLE, "true"), NULL);
	expect_status(&c, 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(c.err, "already supervised"));
	command_end(&c);
}

static void bad_options_are_refused_with_what_is_allowed(void)
{
	static const struct {
		const char *option, *value, *says;
	} bad[] = {
		{"--inject", "stall=0ms", "stall=0ms: wants"},
		{"--inject", "stall=80us", "stall=80us: wants"},
		{"--inject", "stall=1.5s", "wants a whole number of ms or s"},
		{"--inject", "fail-rate=2", "fail-rate=2: wants"},
		{"--inject", "errno=NOTHING", "errno=NOTHING: wants"},
		{"--inject", "colour=red", "unknown; known are"},
		{"--inject", "count=3", "names none of"},
		{"--fail-on", "smoke", "only 'leak'"},
		{"--unheard-of", "x", "usage:"},
	};
	struct command c;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		command_run(&c,
			    WORDS(RUN_DOUBLE, bad[i].option, bad[i].value,
				  "true"),
			    NULL);
		expect_status(&c, 2);
		CU_ASSERT_PTR_NOT_NULL(strstr(c.err, bad[i].says));
		command_end(&c);
	}
	command_run(&c, WORDS(RUN_DOUBLE, "--strict"), NULL);
	expect_status(&c, 2);
	command_end(&c);
	command_run(&c, WORDS(RUN_DOUBLE, "-h"), NULL);
	expect_status(&c, 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(c.out, "usage: dmaheap-run"));
	command_end(&c);
	/* The program's own is not ours. */
	command_run(&c, WORDS(RUN_DOUBLE, "echo", "-h"), NULL);
	expect_status(&c, 0);
	CU_ASSERT_STRING_EQUAL(c.out, "-h\n");
	command_end(&c);
	command_run(&c,
		    WORDS(RUN_DOUBLE, "--socket", "/x", "--policy", "800",
			  "true"),
		    NULL);
	expect_status(&c, 2);
	command_end(&c);
}

static void leaks_fail_only_when_asked(void)
{
	static const struct {
		const char *how;
		int status;
		const char *says;
	} held[] = {
		{"nothing", 0, ""},
		{"fd", 1, "never closed by"},
		{"mapping", 1, "0 descriptors, 1 mappings"},
		{"child", 1, "still held by surviving"},
	};
	struct command c;

	for (size_t i = 0; i < sizeof(held) / sizeof(held[0]); i++) {
		run_words(&c, WORDS("--fail-on", "leak"),
			  WORDS("hold", held[i].how), NULL);
		expect_status(&c, held[i].status);
		CU_ASSERT_PTR_NOT_NULL(strstr(c.err, held[i].says));
		command_end(&c);
		run_words(&c, NULL, WORDS("hold", held[i].how), NULL);
		expect_status(&c, 0);
		command_end(&c);
	}
}

static void the_report_lists_allocations_and_stalls(void)
{
	char path[] = "/tmp/dmaheap-report-XXXXXX", text[8192];
	int fd = mkstemp(path);
	struct command c;
	ssize_t n;

	T_REQUIRE(fd >= 0);
	run_words(&c, WORDS("--report", path), WORDS("alloc"),
		  WORDS("DOUBLE_STALL_MS=20"));
	expect_status(&c, 0);
	command_end(&c);
	close(fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = read(fd, text, sizeof(text) - 1);
	T_REQUIRE(n > 0);
	text[n] = '\0';
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"allocations\": 1"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"waited_stall\": 20000000"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"comm\": \"run_scenario\""));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"exit_status\": 0"));
	close(fd);
	unlink(path);
}

static void a_report_that_cannot_be_written_is_told_before_the_program(void)
{
	static const struct {
		const char *path, *says;
	} bad[] = {
		{"/nonexistent/report",
		 "dmaheap-run: --report /nonexistent/report: No such file or "
		 "directory\n"},
		{"/tmp", "dmaheap-run: --report /tmp: Is a directory\n"},
	};
	struct command c;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		command_run(&c,
			    WORDS(RUN_DOUBLE, "--report", bad[i].path, "echo",
				  "it ran"),
			    NULL);
		expect_status(&c, 1);
		CU_ASSERT_STRING_EQUAL(c.out, "");
		CU_ASSERT_STRING_EQUAL(c.err, bad[i].says);
		command_end(&c);
	}
}

/* Found out only when it is written: one line, and the program's status. */
static void a_report_that_fails_later_is_told_once(void)
{
	struct command c;

	command_run(&c, WORDS(RUN_DOUBLE, "--report", "/dev/full", "true"),
		    NULL);
	expect_status(&c, 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(c.err, "--report /dev/full: "));
	CU_ASSERT_PTR_EQUAL(strchr(c.err, '\n'), c.err + strlen(c.err) - 1);
	command_end(&c);
}

static void a_report_leaves_nothing_else_behind(void)
{
	char dir[] = "/tmp/dmaheap-test-XXXXXX";
	struct command c;

	T_REQUIRE(mkdtemp(dir));
	command_run(&c,
		    WORDS("sh", "-c",
			  "cd \"$0\" && " RUN_DOUBLE
			  " --report r ls -A && ls -A && rm r && cd / && "
			  "rmdir \"$0\"",
			  dir),
		    NULL);
	expect_status(&c, 0);
	CU_ASSERT_STRING_EQUAL(c.out, "r\n");
	command_end(&c);
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"every way to write the path leads to the heap",
		 every_way_to_write_the_path_leads_to_the_heap},
		{"openat2 works and keeps its own errors",
		 openat2_works_and_keeps_its_own_errors},
		{"two directory streams list the same devices",
		 two_directory_streams_list_the_same_devices},
		{"heap and buffer are known after dup, fork, socket, exec",
		 heap_and_buffer_are_known_after_dup_fork_socket_exec},
		{"a reply that cannot be stored is EFAULT and leaks nothing",
		 a_reply_that_cannot_be_stored_is_efault_and_leaks_nothing},
		{"sync files poll readable and are known",
		 sync_files_poll_readable_and_are_known},
		{"proc and sys tell of the buffers",
		 proc_and_sys_tell_of_the_buffers},
		{"strict refuses what a dma-buf refuses",
		 strict_refuses_what_a_dma_buf_refuses},
		{"a filter of the program's own works",
		 a_filter_of_the_programs_own_works},
		{"spawned, vforked and shell children are served",
		 spawned_vforked_and_shell_children_are_served},
		{"a timer does not restart a stalled allocation for ever",
		 a_timer_does_not_restart_a_stalled_allocation_for_ever},
		{"stalled allocations do not delay opens",
		 stalled_allocations_do_not_delay_opens},
		{"a failure of the daemon is ENOMEM",
		 a_failure_of_the_daemon_is_enomem},
		{"a failure is itself only where it was injected",
		 a_failure_is_itself_only_where_it_was_injected},
		{"the exit status is the program's",
		 the_exit_status_is_the_programs},
		{"death by signal is passed on", death_by_signal_is_passed_on},
		{"signals to the launcher reach the program",
		 signals_to_the_launcher_reach_the_program},
		{"the launcher stops and continues with the program",
		 the_launcher_stops_and_continues_with_the_program},
		{"the program dies with a killed launcher",
		 the_program_dies_with_a_killed_launcher},
		{"a daemonised child is served after the program ended",
		 a_daemonised_child_is_served_after_the_program_ended},
		{"the program's descriptors are as without",
		 the_programs_descriptors_are_as_without},
		{"a 32-bit call is refused aloud",
		 a_32_bit_call_is_refused_aloud},
		{"a run within a run is refused aloud",
		 a_run_within_a_run_is_refused_aloud},
		{"bad options are refused with what is allowed",
		 bad_options_are_refused_with_what_is_allowed},
		{"leaks fail only when asked", leaks_fail_only_when_asked},
		{"the report lists allocations and stalls",
		 the_report_lists_allocations_and_stalls},
		{"a report that cannot be written is told before the program",
		 a_report_that_cannot_be_written_is_told_before_the_program},
		{"a report that fails later is told once",
		 a_report_that_fails_later_is_told_once},
		{"a report leaves nothing else behind",
		 a_report_leaves_nothing_else_behind},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "run", .pTests = tests},
		CU_SUITE_INFO_NULL,
	};

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	skip_without_seccomp(RUN_DOUBLE " true 2>&1");
	return t_main(argc, argv, suites);
}
