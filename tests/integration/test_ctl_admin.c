/* SPDX-License-Identifier: MIT */
/* dmaheapctl's verbs that change or watch, against a real daemon. */
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "integration/common.h"
#include "integration/ctl_run.h"

static void the_policy_is_shown_and_changed(void)
{
	json_t *json = ctl_json("policy");

	CU_ASSERT_STRING_EQUAL(ctl_text_at(json, "gfp.4"), "HIGH_ORDER");
	json_decref(json);
	CU_ASSERT_EQUAL(ctl("policy set gfp.4=MID_ORDER pool.8.limit=16M"), 0);
	json = ctl_json("policy show --heap system");
	CU_ASSERT_STRING_EQUAL(ctl_text_at(json, "gfp.4"), "MID_ORDER");
	json_decref(json);
	json = ctl_json("policy set 'orders=8 0'");
	CU_ASSERT_STRING_EQUAL(ctl_text_at(json, "orders"), "8 0");
	json_decref(json);

	CU_ASSERT_EQUAL(ctl("policy set orders=4,8,0"), 1);
	CU_ASSERT(ctl_complained("orders"));
	CU_ASSERT_EQUAL(ctl("policy set nothing=1"), 1);
	CU_ASSERT(ctl_complained("nothing"));
	/* The policy is 8 0 by now. */
	CU_ASSERT_EQUAL(ctl("policy set gfp.9=MID_ORDER"), 1);
	CU_ASSERT(ctl_complained("order 9 is not one of the policy's orders"));
	CU_ASSERT_EQUAL(ctl("policy set pool.4.limit=1M"), 1);
	CU_ASSERT_EQUAL(ctl("policy set pool.limit=1M pool.refill=on"), 0);
	CU_ASSERT_EQUAL(ctl("policy set gfp.9=MID_ORDER 'orders=9 0'"), 0);
	CU_ASSERT_EQUAL(ctl("policy show --heap nothing"), 1);
	CU_ASSERT_EQUAL(ctl("policy set"), 2);
	CU_ASSERT_EQUAL(ctl("policy set orders"), 2);
	CU_ASSERT_EQUAL(ctl("policy change orders=8,0"), 2);
}

static void shrink_empties_the_pools(void)
{
	json_t *json;

	CU_ASSERT_EQUAL(ctl("alloc 10M"), 0);
	CU_ASSERT_TRUE(it_wait_all_free("system"));
	json = ctl_json("shrink");
	CTL_KEYS(json, "freed_bytes pool_bytes");
	CU_ASSERT_EQUAL(ctl_number_at(json, "freed_bytes"), 10 << 20);
	CU_ASSERT_EQUAL(ctl_number_at(json, "pool_bytes"), 0);
	json_decref(json);
	CU_ASSERT_EQUAL(ctl("shrink --heap nothing"), 1);
	CU_ASSERT_EQUAL(ctl("shrink --to x"), 2);
}

static void reload_takes_the_file_or_says_why_not(void)
{
	json_t *json;

	CU_ASSERT_EQUAL(ctl("reload"), 0);
	daemon_write_config(&it_daemon, "[quota]\nbuffers = many\n");
	CU_ASSERT_EQUAL(ctl("reload"), 1);
	CU_ASSERT(ctl_complained(":2: "));
	CU_ASSERT(ctl_complained("many"));
	daemon_write_config(&it_daemon, "[node]\nseed = 7\n");
	CU_ASSERT_EQUAL(ctl("policy set orders=0"), 0);
	CU_ASSERT_EQUAL(ctl("reload"), 0);
	CU_ASSERT(ctl_said("need a restart: [node] seed\n"));
	json = ctl_json("policy");
	CU_ASSERT_STRING_EQUAL(ctl_text_at(json, "orders"), "8 4 0");
	json_decref(json);
	json = ctl_json("reload");
	CTL_KEYS(json, "reloaded needs_restart");
	CU_ASSERT_STRING_EQUAL(ctl_text_at(json, "needs_restart"),
			       "[node] seed");
	json_decref(json);
	daemon_write_config(&it_daemon, "");
	CU_ASSERT_EQUAL(ctl("reload"), 0);
	CU_ASSERT_STRING_EQUAL(ctl_result.out, "");
}

static json_int_t free_bytes(void)
{
	json_t *json = ctl_json("stats"), *zone;
	json_int_t bytes = 0;
	size_t i;

	json_array_foreach(json_object_get(json, "zones"), i, zone) bytes +=
		ctl_number_at(zone, "free_bytes");
	json_decref(json);
	return bytes;
}

static void pressure_is_kept_or_ends_with_its_connection(void)
{
	json_int_t before = free_bytes();
	int fd, n_pages = 0;
	json_t *json;
	char byte = 0;
	pid_t pid;

	CU_ASSERT_EQUAL(ctl("pressure fill --leave 64M --keep"), 0);
	CU_ASSERT(free_bytes() <= 64 << 20);
	CU_ASSERT_TRUE(
		daemon_log_wait(&it_daemon, "pressure kind=fill keep=1"));
	CU_ASSERT_EQUAL(ctl("pressure status"), 0);
	CU_ASSERT_EQUAL(sscanf(ctl_result.out, "anon: %d pages", &n_pages), 1);
	json = ctl_json("pressure status");
	CTL_KEYS(json, "pages node scenario owner");
	CU_ASSERT_STRING_EQUAL(ctl_text_at(json, "owner"), "kept");
	CU_ASSERT_EQUAL(ctl_number_at(json_object_get(json, "pages"), "anon"),
			n_pages);
	json_decref(json);
	CU_ASSERT_EQUAL(ctl("pressure release"), 0);
	json = ctl_json("pressure status");
	CU_ASSERT_STRING_EQUAL(ctl_text_at(json, "owner"), "none");
	CU_ASSERT_EQUAL(json_object_size(json_object_get(json, "pages")), 0);
	json_decref(json);
	CU_ASSERT_EQUAL(free_bytes(), before);

	pid = ctl_start("pressure fill --leave 64M", &fd);
	while (free_bytes() > 64 << 20)
		; /* each round is a process */
	CU_ASSERT_EQUAL(ctl_end(pid, SIGINT), 0);
	CU_ASSERT_EQUAL(read(fd, &byte, 1), 0);
	close(fd);
	for (unsigned int i = 0; i < 100 && free_bytes() != before; i++)
		;
	CU_ASSERT_EQUAL(free_bytes(), before);
}

static void pressure_checks_what_it_is_asked(void)
{
	CU_ASSERT_EQUAL(ctl("pressure"), 2);
	CU_ASSERT_EQUAL(ctl("pressure much"), 2);
	CU_ASSERT_EQUAL(ctl("pressure fill"), 2);
	CU_ASSERT_EQUAL(ctl("pressure low-memory --leave 1M"), 2);
	CU_ASSERT_EQUAL(ctl("pressure fragment"), 2);
	CU_ASSERT_EQUAL(ctl("pressure fragment --max-order 11"), 2);
	CU_ASSERT_EQUAL(ctl("pressure load"), 2);
	CU_ASSERT_EQUAL(ctl("pressure load /nowhere"), 1);
	CU_ASSERT(ctl_complained("/nowhere/buddyinfo"));
	CU_ASSERT_EQUAL(ctl("pressure play /nowhere"), 1);
	CU_ASSERT_EQUAL(ctl("pressure play /dev/null"), 1);
	CU_ASSERT_EQUAL(ctl("pressure fragment --max-order 3 --keep"), 0);
	CU_ASSERT_EQUAL(ctl("pressure release"), 0);
}

static void a_snapshot_is_loaded_and_put_back(void)
{
	json_int_t before = free_bytes();

	CU_ASSERT_EQUAL(ctl("pressure load --keep " SNAPSHOT_DIR), 0);
	CU_ASSERT_NOT_EQUAL(free_bytes(), before);
	CU_ASSERT_EQUAL(ctl("pressure release"), 0);
	CU_ASSERT_EQUAL(free_bytes(), before);
}

static void the_third_allocation_fails(void)
{
	CU_ASSERT_EQUAL(ctl("inject --fail-nth 3 --errno ENOSPC --keep"), 0);
	CU_ASSERT_EQUAL(ctl("alloc 1"), 0);
	CU_ASSERT_EQUAL(ctl("alloc 1"), 0);
	CU_ASSERT_EQUAL(ctl("alloc 1"), 1);
	CU_ASSERT(ctl_complained("No space left"));
	CU_ASSERT_EQUAL(ctl("alloc 1"), 0);
	CU_ASSERT_TRUE(
		daemon_log_wait(&it_daemon,
				"inject fail_nth=3 fail_rate_ppm=0 errno=28 "
				"stall_ms=0 count=0 heap=any of_uid=any "
				"of_pid=any keep=1 uid="));
	CU_ASSERT_EQUAL(ctl("inject clear"), 0);
	CU_ASSERT_TRUE(daemon_log_wait(&it_daemon, "inject clear uid="));
	CU_ASSERT_EQUAL(ctl("inject --fail-nth 2 --count 3 --keep"), 0);
	CU_ASSERT_EQUAL(ctl("alloc 1"), 0);
	CU_ASSERT_EQUAL(ctl("alloc 1"), 1);
	CU_ASSERT_EQUAL(ctl("alloc 1"), 1);
	CU_ASSERT_EQUAL(ctl("alloc 1"), 1);
	CU_ASSERT_EQUAL(ctl("alloc 1"), 0);
	CU_ASSERT_EQUAL(ctl("inject --fail-rate 100% --heap system --keep"), 0);
	CU_ASSERT_EQUAL(ctl("alloc 1"), 1);
	CU_ASSERT_EQUAL(ctl("inject clear"), 0);
	CU_ASSERT_EQUAL(ctl("alloc 1"), 0);

	CU_ASSERT_EQUAL(ctl("inject --stall 80us"), 2);
	CU_ASSERT(ctl_complained("80, 80ms or 2s"));
	CU_ASSERT_EQUAL(ctl("inject"), 2);
	CU_ASSERT_EQUAL(ctl("inject --fail-nth 0"), 2);
	CU_ASSERT_EQUAL(ctl("inject --fail-nth 1 --fail-rate 0.5"), 2);
	CU_ASSERT_EQUAL(ctl("inject --fail-rate 2"), 2);
	CU_ASSERT_EQUAL(ctl("inject --fail-nth 1 --errno ENOTHING"), 2);
	CU_ASSERT_EQUAL(ctl("inject everything"), 2);
}

/* Return: a bit for each of 20 allocations that failed. */
static unsigned int fail_by_lot(void)
{
	unsigned int failed = 0;

	CU_ASSERT_EQUAL(ctl("inject --fail-rate 50% --keep"), 0);
	for (unsigned int i = 0; i < 20; i++)
		failed |= (unsigned int)(ctl("alloc 1") == 1) << i;
	CU_ASSERT_EQUAL(ctl("inject clear"), 0);
	return failed;
}

static void the_lot_falls_the_same_each_time(void)
{
	unsigned int failed = fail_by_lot();

	CU_ASSERT(failed != 0 && failed != (1u << 20) - 1);
	CU_ASSERT_EQUAL(fail_by_lot(), failed);
}

static void a_stall_is_waited_for(void)
{
	json_t *json, *measured;

	CU_ASSERT_EQUAL(ctl("inject --stall 30ms --count 1 --keep"), 0);
	json = ctl_json("alloc 1");
	measured = json_object_get(json_array_get(json, 0), "measured_ns");
	CU_ASSERT(ctl_number_at(measured, "waited_stall") > 0);
	CU_ASSERT(ctl_number_at(measured, "total") >= 30000000);
	json_decref(json);
	CU_ASSERT_EQUAL(ctl("inject clear"), 0);
}

static void the_last_allocations_are_shown(void)
{
	json_t *json, *event;

	CU_ASSERT_EQUAL(ctl("alloc 10M"), 0);
	CU_ASSERT_EQUAL(ctl("alloc 64K"), 0);
	json = ctl_json("trace");
	CU_ASSERT_EQUAL(json_array_size(json), 2);
	event = json_array_get(json, 1);
	CTL_KEYS(event, "n id heap size realtime_ns status composition source "
			"backing measured_total_ns modelled_ns");
	CU_ASSERT_EQUAL(ctl_number_at(event, "n"), 1);
	CU_ASSERT_EQUAL(ctl_number_at(event, "size"), 65536);
	json_decref(json);
	CU_ASSERT_EQUAL(ctl("trace"), 0);
	CU_ASSERT(ctl_said("10M"));
	CU_ASSERT_EQUAL(ctl("trace --follow --json"), 2);
	CU_ASSERT(ctl_complained("--follow and --json exclude each other"));
	CU_ASSERT_EQUAL(ctl("trace nothing"), 2);
	CU_ASSERT_EQUAL(ctl("trace record"), 2);
	CU_ASSERT_EQUAL(ctl("trace record /nowhere/file"), 1);
}

static bool has_two_lines(void *ctx)
{
	struct stat st;

	return stat(ctx, &st) == 0 && st.st_size > 0;
}

static void a_trace_is_recorded_until_interrupted(void)
{
	char line[256], path[128], text[8192];
	ssize_t n;
	pid_t pid;
	int fd;

	snprintf(path, sizeof(path), "%s/trace", it_daemon.dir);
	snprintf(line, sizeof(line), "trace record %s", path);
	pid = ctl_start(line, &fd);
	CU_ASSERT_TRUE(wait_until(has_two_lines, path, 5000));
	CU_ASSERT_EQUAL(ctl("alloc 64K"), 0);
	CU_ASSERT_TRUE(it_wait_all_free("system"));
	CU_ASSERT_EQUAL(ctl_end(pid, SIGINT), 0);
	close(fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = read(fd, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	close(fd);
	unlink(path);
	CU_ASSERT(!strncmp(text, "dmaheap-trace 1\nnode ", 21));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, " alloc "));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "size=65536"));
}

static void top_prints_samples(void)
{
	json_t *json;

	CU_ASSERT_EQUAL(ctl("top --json --interval 0.05 --rounds 2"), 0);
	json = json_loads(ctl_result.out, JSON_DISABLE_EOF_CHECK, NULL);
	CTL_KEYS(json, "seconds connections resident_bytes zones heaps");
	json_decref(json);
	CU_ASSERT_EQUAL(ctl("top"), 1); /* no terminal here */
	CU_ASSERT_EQUAL(ctl("top --interval 0"), 2);
}

/* Reads the terminal until @text was drawn. Return: whether it was. */
static bool terminal_shows(int terminal, const char *text)
{
	static char seen[65536];
	size_t n = 0;

	while (n < sizeof(seen) - 1) {
		ssize_t got = read(terminal, seen + n, sizeof(seen) - 1 - n);

		if (got <= 0) /* EIO: the other end is closed */
			return false;
		n += (size_t)got;
		seen[n] = '\0';
		if (strstr(seen, text))
			return true;
	}
	return false;
}

static pid_t start_top(const char *socket, unsigned short columns,
		       int *ret_terminal)
{
	struct winsize size = {.ws_row = 40, .ws_col = columns};
	pid_t pid = forkpty(ret_terminal, NULL, NULL, &size);

	T_REQUIRE(pid >= 0);
	if (pid == 0) {
		setenv("TERM", "xterm", 1);
		execl(DMAHEAPCTL_PATH, "dmaheapctl", "top", "--interval", "0.1",
		      "--socket", socket, NULL);
		_exit(127);
	}
	return pid;
}

static void quit_top(pid_t pid, int terminal)
{
	int status;

	CU_ASSERT_EQUAL(write(terminal, "q", 1), 1);
	while (terminal_shows(terminal, "nothing that is ever drawn"))
		;
	CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT_EQUAL(status, 0);
	close(terminal);
}

static void top_draws_on_a_terminal_until_q(void)
{
	int terminal;
	pid_t pid = start_top(it_daemon.socket, 140, &terminal);

	CU_ASSERT_TRUE(terminal_shows(terminal, "last allocations"));
	quit_top(pid, terminal);
}

/* Wide, it shows all columns; narrow, those that fit, and no row wraps. */
static void top_fits_its_columns_to_the_terminal(void)
{
	int terminal;
	pid_t pid = start_top(it_daemon.socket, 140, &terminal);

	CU_ASSERT_TRUE(terminal_shows(terminal, "BUFFERS   BYTES   POOLS"));
	quit_top(pid, terminal);
	pid = start_top(it_daemon.socket, 80, &terminal);
	CU_ASSERT_TRUE(terminal_shows(terminal,
				      "HEAP             POLICY     ALLOCS/S"));
	quit_top(pid, terminal);
}

static void top_heeds_its_keys_while_the_daemon_is_away(void)
{
	struct daemon_options options = {0};
	struct daemon other;
	int terminal;
	pid_t pid;

	T_REQUIRE(daemon_start(&other, &options));
	pid = start_top(other.socket, 140, &terminal);
	CU_ASSERT_TRUE(terminal_shows(terminal, "last allocations"));
	daemon_kill(&other);
	CU_ASSERT_TRUE(terminal_shows(terminal, "the daemon is gone"));
	options.keep_dir = true;
	T_REQUIRE(daemon_start(&other, &options));
	CU_ASSERT_TRUE(terminal_shows(terminal, "dmaheapd "));
	daemon_kill(&other);
	CU_ASSERT_TRUE(terminal_shows(terminal, "the daemon is gone"));
	quit_top(pid, terminal);
	CU_ASSERT_TRUE(daemon_start(&other, &options));
	CU_ASSERT_TRUE(daemon_stop(&other));
}

static void a_failing_connection_says_what_to_do(void)
{
	struct daemon_options options = {.config =
						 "[quota]\nconnections = 1\n"};
	struct daemon other;
	struct dmaheap *dh;
	char line[256];
	struct daemon real = it_daemon;

	CU_ASSERT_EQUAL(ctl("stats --socket /nowhere/s"), 1);
	CU_ASSERT(ctl_complained("no dmaheapd at /nowhere/s, which --socket "
				 "names: "));
	CU_ASSERT(ctl_complained("dmaheapd --socket /nowhere/s)"));
	snprintf(it_daemon.socket, sizeof(it_daemon.socket), "/nowhere/else");
	CU_ASSERT_EQUAL(ctl("stats"), 1);
	CU_ASSERT(ctl_complained("/nowhere/else, which DMAHEAP_SOCKET names"));
	it_daemon = real;

	T_REQUIRE(daemon_start(&other, &options));
	T_REQUIRE(dmaheap_connect(&dh, other.socket) == 0);
	CU_ASSERT_STRING_EQUAL(dmaheap_connect_error(), "");
	snprintf(line, sizeof(line), "stats --socket %s", other.socket);
	CU_ASSERT_EQUAL(ctl(line), 1);
	CU_ASSERT(ctl_complained("the daemon refuses the connection: "));
	CU_ASSERT(ctl_complained("([quota] connections)"));
	dmaheap_close(dh);
	CU_ASSERT_TRUE(daemon_stop(&other));
}

static void doctor_needs_no_daemon(void)
{
	json_t *json, *fact;
	size_t i;

	setenv("PATH", DMAHEAPD_DIR ":/usr/bin:/bin", 1);
	json = ctl_json("doctor --socket /nowhere");
	CU_ASSERT(json_array_size(json) > 8);
	json_array_foreach(json, i, fact)
	{
		CTL_KEYS(fact, "name ok value reason consequence kernel "
			       "command");
		if (json_is_false(json_object_get(fact, "ok")))
			CU_ASSERT(*ctl_text_at(fact, "consequence"));
	}
	json_decref(json);
	CU_ASSERT_EQUAL(ctl("doctor"), 0);
	CU_ASSERT(ctl_said("open-files"));
	setenv("PATH", "/nowhere", 1);
	CU_ASSERT_EQUAL(ctl("doctor"), 1);
	setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1);
}

static void stop_waits_until_it_is_gone(void)
{
	struct daemon_options options = {0};
	struct dmaheap *dh;
	struct daemon other;
	char line[256];

	T_REQUIRE(daemon_start(&other, &options));
	snprintf(line, sizeof(line), "stop --socket %s", other.socket);
	/* A connection that stays does not keep it. */
	T_REQUIRE(dmaheap_connect(&dh, other.socket) == 0);
	CU_ASSERT_EQUAL(ctl(line), 0);
	dmaheap_close(dh);
	CU_ASSERT_TRUE(daemon_stop(&other));
	CU_ASSERT_EQUAL(ctl(line), 1);
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"the policy is shown and changed",
		 the_policy_is_shown_and_changed},
		{"shrink empties the pools", shrink_empties_the_pools},
		{"reload takes the file or says why not",
		 reload_takes_the_file_or_says_why_not},
		{"pressure is kept or ends with its connection",
		 pressure_is_kept_or_ends_with_its_connection},
		{"pressure checks what it is asked",
		 pressure_checks_what_it_is_asked},
		{"a snapshot is loaded and put back",
		 a_snapshot_is_loaded_and_put_back},
		{"the third allocation fails", the_third_allocation_fails},
		{"the lot falls the same each time",
		 the_lot_falls_the_same_each_time},
		{"a stall is waited for", a_stall_is_waited_for},
		{"the last allocations are shown",
		 the_last_allocations_are_shown},
		{"a trace is recorded until interrupted",
		 a_trace_is_recorded_until_interrupted},
		{"top prints samples", top_prints_samples},
		{"top draws on a terminal until q",
		 top_draws_on_a_terminal_until_q},
		{"top fits its columns to the terminal",
		 top_fits_its_columns_to_the_terminal},
		{"top heeds its keys while the daemon is away",
		 top_heeds_its_keys_while_the_daemon_is_away},
		{"doctor needs no daemon", doctor_needs_no_daemon},
		{"a failing connection says what to do",
		 a_failing_connection_says_what_to_do},
		{"stop waits until it is gone", stop_waits_until_it_is_gone},
		CU_TEST_INFO_NULL,
	};

	return it_main(argc, argv, tests);
}
