/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <dmaheap/dmaheap.h>

#include "support/daemon.h"
#include "support/memcg.h"
#include "support/raw.h"
#include "support/test.h"

#define USER 54323u
#define KILL "[daemon]\nconfine = kill\n[node]\nsize = 64M\n"

static struct daemon d;
static struct raw_reply reply;

/* Starts one that must not start, and compares what it says. */
static void refuses(const struct daemon_options *options, const char *text)
{
	struct daemon other = {0};
	char *log;

	if (daemon_start(&other, options)) {
		CU_FAIL("it started");
		daemon_stop(&other);
		return;
	}
	log = daemon_log_text(&other);
	CU_ASSERT_TRUE(WIFEXITED(other.status) &&
		       WEXITSTATUS(other.status) == 1);
	if (!strstr(log, text)) {
		CU_FAIL("another message");
		fprintf(stderr, "got:  %swant: %s\n", log, text);
	}
	free(log);
	other.status = 0;
	daemon_stop(&other);
}

static void started(const struct daemon_options *options)
{
	bool ok = daemon_start(&d, options);

	if (!ok)
		daemon_stop(&d); /* prints its log */
	T_REQUIRE(ok);
}

static bool allocates(const char *socket)
{
	struct dmaheap *dh;
	int fd;

	if (dmaheap_connect(&dh, socket))
		return false;
	fd = dmaheap_alloc(dh, NULL, 4096, O_RDWR | O_CLOEXEC, 0);
	if (fd >= 0)
		close(fd);
	dmaheap_close(dh);
	return fd >= 0;
}

static bool policy_is_800(void)
{
	static struct dmaheap_stats stats;
	struct dmaheap *dh;

	T_REQUIRE(dmaheap_connect(&dh, d.socket) == 0);
	T_REQUIRE(dmaheap_stats(dh, &stats) == 0);
	dmaheap_close(dh);
	return !strcmp(stats.heap[0].policy, "800");
}

static void a_setting_stays_in_force_over_a_reload(void)
{
	static const char *const args[] = {"--set",
					   "[heap system] policy = 800", NULL};
	static const char *const bad[] = {"--set", "[node] size = 12X", NULL};

	started(&(struct daemon_options){
		.config = "[heap system]\npolicy = 0-only\norders = 4 0\n",
		.args = args,
	});
	CU_ASSERT_TRUE(policy_is_800());
	daemon_write_config(&d, "[heap system]\npolicy = 840-mid\n");
	kill(d.pid, SIGHUP);
	CU_ASSERT_TRUE(daemon_log_wait(&d, "reload result=\"reloaded\""));
	CU_ASSERT_TRUE(policy_is_800());
	CU_ASSERT_TRUE(daemon_stop(&d));
	refuses(&(struct daemon_options){.args = bad},
		"dmaheapd: --set [node] size = 12X: size: ");
}

static void a_bad_config_is_refused_with_file_line_and_key(void)
{
	refuses(&(struct daemon_options){.config = "[node]\n\nsize = 12X\n"},
		"c.conf:3: size: ");
	refuses(&(struct daemon_options){.config = "[node]\ncolour = 1\n"},
		"c.conf:2: colour: ");
	refuses(&(struct daemon_options){.config = "[node]\noccupants = "
						   "cheese:20%\n"},
		"[node]");
	refuses(&(struct daemon_options){.config = "[node]\nsnapshot = "
						   "nowhere\n"},
		"[node] snapshot: \"nowhere\" is neither a directory nor");
	refuses(&(struct daemon_options){.config = "[node]\nsnapshot = "
						   "./nowhere\n"},
		"/./nowhere/buddyinfo");
	refuses(&(struct daemon_options){.config =
						 "[node]\nprofile = nothing\n"},
		"[node] profile: \"nothing\"");
	refuses(&(struct daemon_options){.config = "[daemon]\nsocket_group = "
						   "no-such-group\n"},
		"[daemon] socket_group");
}

static void a_dead_socket_is_replaced(void)
{
	struct daemon_options o = {.config = KILL};
	struct stat st;

	started(&o);
	daemon_kill(&d);
	CU_ASSERT_EQUAL(stat(d.socket, &st), 0);
	o.keep_dir = true;
	started(&o);
	CU_ASSERT_TRUE(allocates(d.socket));
	CU_ASSERT_TRUE(daemon_stop(&d));
}

static void a_second_daemon_on_a_live_socket_refuses(void)
{
	struct daemon_options o = {.config = KILL};
	char *env[] = {NULL, NULL};
	char socket_env[128];

	started(&o);
	snprintf(socket_env, sizeof(socket_env), "DMAHEAP_SOCKET=%s", d.socket);
	env[0] = socket_env;
	o.no_socket = true;
	o.env = env;
	refuses(&o, "another daemon");
	CU_ASSERT_TRUE(allocates(d.socket));
	CU_ASSERT_TRUE(daemon_stop(&d));
}

static void another_kind_of_file_is_left_alone(void)
{
	struct daemon_options o = {.config = KILL};
	struct stat st;
	FILE *f;

	started(&o);
	daemon_kill(&d);
	unlink(d.socket);
	f = fopen(d.socket, "we");
	T_REQUIRE(f != NULL);
	fclose(f);
	o.keep_dir = true;
	CU_ASSERT_FALSE(daemon_start(&d, &o));
	CU_ASSERT_TRUE(stat(d.socket, &st) == 0 && S_ISREG(st.st_mode));
	d.status = 0;
	daemon_stop(&d);
}

static void it_leaves_no_file_behind(void)
{
	char socket[96], lock[128];
	struct stat st;

	started(&(struct daemon_options){.config = KILL});
	snprintf(socket, sizeof(socket), "%s", d.socket);
	snprintf(lock, sizeof(lock), "%s.lock", socket);
	CU_ASSERT_EQUAL(stat(socket, &st), 0);
	CU_ASSERT_EQUAL(st.st_mode & 0777, 0660);
	kill(d.pid, SIGTERM);
	waitpid(d.pid, &d.status, 0);
	d.pid = 0;
	CU_ASSERT_TRUE(stat(socket, &st) < 0 && errno == ENOENT);
	CU_ASSERT_TRUE(stat(lock, &st) < 0 && errno == ENOENT);
	CU_ASSERT_TRUE(daemon_stop(&d));
}

static void the_service_managers_socket_is_taken_over(void)
{
	char *wrap[] = {(char[]){"/bin/sh"}, (char[]){"-c"},
			(char[]){"LISTEN_PID=$$ LISTEN_FDS=1 exec \"$@\""},
			(char[]){"sh"}, NULL};
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int low = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int fd = fcntl(low, F_DUPFD_CLOEXEC, 10);
	int saved = -1, client;
	struct stat st;

	close(low);
	saved = fcntl(3, F_DUPFD_CLOEXEC, 10);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "/tmp/dmaheap-act-%d",
		 (int)getpid());
	T_REQUIRE(bind(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0 &&
		  listen(fd, 10) == 0);
	/* A client that comes before the daemon does is served as well. */
	client = raw_connect(addr.sun_path);
	CU_ASSERT_TRUE(client >= 0);
	T_REQUIRE(dup2(fd, 3) == 3);
	CU_ASSERT_TRUE(
		daemon_start(&d, &(struct daemon_options){.config = KILL,
							  .wrap = wrap}));
	close(3);
	if (saved >= 0) {
		dup2(saved, 3);
		close(saved);
	}
	CU_ASSERT_STRING_EQUAL(d.socket, addr.sun_path);
	CU_ASSERT_TRUE(allocates(addr.sun_path));
	CU_ASSERT_TRUE(daemon_stop(&d));
	/* It is the manager's, and another daemon can follow. */
	CU_ASSERT_EQUAL(stat(addr.sun_path, &st), 0);
	unlink(addr.sun_path);
	close(client);
	close(fd);
}

static bool notified(int fd, const char *what)
{
	char text[64] = "";

	return recv(fd, text, sizeof(text) - 1, 0) > 0 && !strcmp(text, what);
}

static void the_service_manager_is_notified(void)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	char env_text[160];
	char *env[] = {env_text, NULL};

	snprintf(addr.sun_path, sizeof(addr.sun_path), "/tmp/dmaheap-ntf-%d",
		 (int)getpid());
	snprintf(env_text, sizeof(env_text), "NOTIFY_SOCKET=%s", addr.sun_path);
	T_REQUIRE(bind(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0);
	CU_ASSERT_TRUE(daemon_start(&d, &(struct daemon_options){.config = KILL,
								 .env = env}));
	CU_ASSERT_TRUE(notified(fd, "READY=1"));
	CU_ASSERT_TRUE(daemon_stop(&d));
	CU_ASSERT_TRUE(notified(fd, "STOPPING=1"));
	unlink(addr.sun_path);
	close(fd);
}

/* A daemon with a request in flight for @stall_ms. Return: its connection. */
static int start_with_stalled_request(const char *config, uint32_t stall_ms)
{
	struct dmaheap_inject_req inject = {.uid = DMAHEAP_INJECT_ANY_ID,
					    .pid = DMAHEAP_INJECT_ANY_ID,
					    .stall_ms = stall_ms,
					    .flags = DMAHEAP_INJECT_KEEP};
	struct dmaheap_alloc_req alloc = {.len_bytes = 4096,
					  .fd_flags = O_RDWR,
					  .count = 1};
	int sock;

	started(&(struct daemon_options){.config = config});
	sock = raw_open(d.socket);
	T_REQUIRE(sock >= 0);
	T_REQUIRE(raw_call(sock, DMAHEAP_OP_INJECT, &inject, sizeof(inject),
			   &reply) == 0);
	T_REQUIRE(raw_request(sock, DMAHEAP_OP_ALLOC, &alloc, sizeof(alloc),
			      NULL, 0) == 0);
	/* Its successor is answered, so it was begun. */
	T_REQUIRE(raw_call(sock, DMAHEAP_OP_HEAPS, NULL, 0, &reply) == 0);
	return sock;
}

static void sigterm_lets_requests_in_flight_end(void)
{
	int sock = start_with_stalled_request(KILL, 300);

	kill(d.pid, SIGTERM);
	CU_ASSERT_TRUE(daemon_log_wait(&d, "drain connections=1"));
	CU_ASSERT_TRUE(raw_connect(d.socket) < 0 ||
		       raw_call(sock, DMAHEAP_OP_HEAPS, NULL, 0, &reply) ==
			       -ESHUTDOWN);
	while (raw_receive(sock, &reply) == 0 &&
	       reply.header.opcode != DMAHEAP_OP_ALLOC)
		;
	CU_ASSERT_EQUAL(reply.header.opcode, DMAHEAP_OP_ALLOC);
	CU_ASSERT_EQUAL(reply.header.status, 0);
	CU_ASSERT_EQUAL(reply.n_fds, 1);
	for (size_t i = 0; i < reply.n_fds; i++)
		close(reply.fds[i]);
	close(sock);
	CU_ASSERT_TRUE(daemon_stop(&d));
}

static void a_drain_has_a_deadline(void)
{
	int sock = start_with_stalled_request("[daemon]\nconfine = "
					      "kill\ndrain_timeout_ms = 50\n"
					      "[node]\nsize = 64M\n",
					      60000);

	kill(d.pid, SIGTERM);
	CU_ASSERT_TRUE(daemon_log_wait(&d, "drain result=deadline"));
	CU_ASSERT_TRUE(daemon_stop(&d));
	close(sock);
}

static bool status_has(const char *line)
{
	char path[64], text[256];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)d.pid);
	f = fopen(path, "re");
	while (f && !found && fgets(text, sizeof(text), f))
		found = !strncmp(text, line, strlen(line));
	if (f)
		fclose(f);
	return found;
}

static void no_privilege_is_left(void)
{
	started(&(struct daemon_options){.config = KILL});
	CU_ASSERT_TRUE(status_has("CapEff:\t0000000000000000"));
	CU_ASSERT_TRUE(status_has("CapPrm:\t0000000000000000"));
	CU_ASSERT_TRUE(status_has("CapBnd:\t0000000000000000"));
	CU_ASSERT_TRUE(status_has("CapAmb:\t0000000000000000"));
	CU_ASSERT_TRUE(status_has("NoNewPrivs:\t1"));
#ifndef __SANITIZE_ADDRESS__
#ifndef __SANITIZE_THREAD__
	CU_ASSERT_TRUE(status_has("Seccomp:\t2"));
#endif
#endif
	CU_ASSERT_TRUE(daemon_stop(&d));
}

/* Voluntary and other context switches of all its threads. */
static uint64_t count_switches(void)
{
	char path[64], line[256];
	uint64_t sum = 0;
	DIR *dir;
	struct dirent *e;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)d.pid);
	dir = opendir(path);
	T_REQUIRE(dir != NULL);
	while ((e = readdir(dir))) {
		unsigned long long n;
		FILE *f;

		snprintf(path, sizeof(path), "/proc/%d/task/%.16s/status",
			 (int)d.pid, e->d_name);
		f = e->d_name[0] == '.' ? NULL : fopen(path, "re");
		while (f && fgets(line, sizeof(line), f))
			if (sscanf(line, "%*[a-z]_ctxt_switches: %llu", &n) ==
			    1)
				sum += n;
		if (f)
			fclose(f);
	}
	closedir(dir);
	return sum;
}

/* Return: true if nothing in it ran for half a second. */
static bool slept(void *ctx)
{
	const struct timespec half = {.tv_nsec = 500000000};
	uint64_t before = count_switches();

	(void)ctx;
	nanosleep(&half, NULL);
	return count_switches() == before;
}

static void an_idle_daemon_sleeps(void)
{
	static const char *const loops[] = {"epoll", "uring"};
	size_t n_loops = uring_works() ? 2 : 1;

#ifdef __SANITIZE_THREAD__
	printf("(not under tsan, whose own thread wakes up) ");
	n_loops = 0;
#endif
	for (size_t i = 0; i < n_loops; i++) {
		started(&(struct daemon_options){.config = KILL,
						 .loop = loops[i]});
		CU_ASSERT_TRUE(count_switches() > 0);
		CU_ASSERT_TRUE(allocates(d.socket));
		/* What the allocation leaves to do takes a moment. */
		CU_ASSERT_TRUE(wait_until(slept, NULL, 10));
		CU_ASSERT_TRUE(slept(NULL));
		CU_ASSERT_TRUE(daemon_stop(&d));
	}
}

static void few_descriptors_are_enough_to_serve(void)
{
	struct dmaheap *dh;
	int fds[64], n = 0, r = 0;
	char error[512] = "";

	T_REQUIRE(daemon_start(&d, &(struct daemon_options){.config = KILL,
							    .nofile = 64}));
	T_REQUIRE(dmaheap_connect(&dh, d.socket) == 0);
	while (n < 64) {
		struct dmaheap_alloc_report report;

		r = dmaheap_alloc_ex(dh, NULL, 4096, O_RDWR | O_CLOEXEC, 0, 1,
				     &fds[n], &report, error, sizeof(error));
		if (r)
			break;
		n++;
	}
	CU_ASSERT_TRUE(n > 10 && n < 64);
	CU_ASSERT_EQUAL(r, -ENFILE);
	CU_ASSERT_PTR_NOT_NULL(strstr(error, "RLIMIT_NOFILE"));
	/* New connections are shed, and served again when there is room. */
	for (int i = 0; i < 50; i++) {
		int sock = raw_connect(d.socket);

		if (sock >= 0)
			close(sock);
	}
	while (n > 0)
		close(fds[--n]);
	for (int i = 0; i < 1000 && r; i++) {
		const struct timespec ms = {.tv_nsec = 1000000};

		r = allocates(d.socket) ? 0 : -1;
		nanosleep(&ms, NULL);
	}
	CU_ASSERT_EQUAL(r, 0);
	dmaheap_close(dh);
	CU_ASSERT_TRUE(daemon_stop(&d));
}

/* tsan keeps a megabyte or two for each thread. */
#ifdef __SANITIZE_THREAD__
#define SMALL_BYTES (96u << 20)
#else
#define SMALL_BYTES (64u << 20)
#endif

static void a_small_memory_cgroup_is_enough_to_serve(void)
{
	struct memcg cg;
	char *env[] = {cg.procs_env, NULL};
	const char *why = memcg_create(&cg, SMALL_BYTES);
	struct dmaheap_alloc_report report;
	struct dmaheap *dh;
	char error[512] = "";
	int fd = -1;

	if (why) {
		printf("(%s) ", why);
		return;
	}
	started(&(struct daemon_options){.config = "[daemon]\nconfine = kill\n",
					 .wrap = memcg_wrap,
					 .env = env});
	T_REQUIRE(dmaheap_connect(&dh, d.socket) == 0);
	CU_ASSERT_EQUAL(dmaheap_alloc_ex(dh, NULL, 1u << 20, O_RDWR | O_CLOEXEC,
					 0, 1, &fd, &report, error,
					 sizeof(error)),
			0);
	close(fd);
	CU_ASSERT_EQUAL(dmaheap_alloc_ex(dh, NULL, 100u << 20,
					 O_RDWR | O_CLOEXEC, 0, 1, &fd, &report,
					 error, sizeof(error)),
			-ENOMEM);
	CU_ASSERT_PTR_NOT_NULL(strstr(error, "cgroup"));
	CU_ASSERT_TRUE(allocates(d.socket));
	dmaheap_close(dh);
	CU_ASSERT_TRUE(daemon_stop(&d));
	CU_ASSERT_EQUAL(memcg_oom_kills(&cg), 0);
	memcg_destroy(&cg);
}

static void a_full_disk_for_the_log_does_not_matter(void)
{
	T_REQUIRE(daemon_start(&d,
			       &(struct daemon_options){.config = KILL,
							.stderr_path =
								"/dev/full"}));
	CU_ASSERT_TRUE(allocates(d.socket));
	CU_ASSERT_TRUE(daemon_stop(&d));
}

static void an_ordinary_user_needs_nothing_set_up(void)
{
	static const char *const loops[] = {"epoll", "uring"};
	char *env[] = {(char[]){"XDG_RUNTIME_DIR="}, NULL};
	char want[64], dir[64];
	struct stat st;

	snprintf(dir, sizeof(dir), "/tmp/dmaheap-%u", USER);
	snprintf(want, sizeof(want), "%s/dmaheap.sock", dir);
	for (size_t i = 0; i < (uring_works() ? 2u : 1u); i++) {
		T_REQUIRE(
			daemon_start(&d,
				     &(struct daemon_options){.config = KILL,
							      .loop = loops[i],
							      .uid = USER,
							      .no_socket = true,
							      .env = env}));
		CU_ASSERT_STRING_EQUAL(d.socket, want);
		CU_ASSERT_TRUE(stat(dir, &st) == 0 &&
			       (st.st_mode & 0777) == 0700 &&
			       st.st_uid == USER);
		CU_ASSERT_TRUE(daemon_stop(&d));
	}
	/* Somebody else's directory of that name is not trusted. */
	CU_ASSERT_EQUAL(chmod(dir, 0755), 0);
	refuses(&(struct daemon_options){.config = KILL,
					 .uid = USER,
					 .no_socket = true,
					 .env = env},
		"must be a directory of uid 54323 with mode 0700");
	rmdir(dir);
}

static void xdg_runtime_dir_is_used_when_it_exists(void)
{
	char dir[] = "/tmp/dmaheap-xdg-XXXXXX";
	char env_text[64], want[64];
	char *env[] = {env_text, NULL};

	T_REQUIRE(mkdtemp(dir) && chown(dir, USER, USER) == 0);
	snprintf(env_text, sizeof(env_text), "XDG_RUNTIME_DIR=%s", dir);
	snprintf(want, sizeof(want), "%s/dmaheap.sock", dir);
	CU_ASSERT_TRUE(
		daemon_start(&d, &(struct daemon_options){.config = KILL,
							  .uid = USER,
							  .no_socket = true,
							  .env = env}));
	CU_ASSERT_STRING_EQUAL(d.socket, want);
	CU_ASSERT_TRUE(daemon_stop(&d));
	CU_ASSERT_EQUAL(rmdir(dir), 0); /* nothing is left in it */
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"a setting stays in force over a reload",
		 a_setting_stays_in_force_over_a_reload},
		{"a bad config is refused with file, line and key",
		 a_bad_config_is_refused_with_file_line_and_key},
		{"a dead socket is replaced", a_dead_socket_is_replaced},
		{"a second daemon on a live socket refuses",
		 a_second_daemon_on_a_live_socket_refuses},
		{"another kind of file is left alone",
		 another_kind_of_file_is_left_alone},
		{"it leaves no file behind", it_leaves_no_file_behind},
		{"the service manager's socket is taken over",
		 the_service_managers_socket_is_taken_over},
		{"the service manager is notified",
		 the_service_manager_is_notified},
		{"SIGTERM lets requests in flight end",
		 sigterm_lets_requests_in_flight_end},
		{"a drain has a deadline", a_drain_has_a_deadline},
		{"no privilege is left", no_privilege_is_left},
		{"an idle daemon sleeps", an_idle_daemon_sleeps},
		{"few descriptors are enough to serve",
		 few_descriptors_are_enough_to_serve},
		{"a small memory cgroup is enough to serve",
		 a_small_memory_cgroup_is_enough_to_serve},
		{"a full disk for the log does not matter",
		 a_full_disk_for_the_log_does_not_matter},
		{"an ordinary user needs nothing set up",
		 an_ordinary_user_needs_nothing_set_up},
		{"XDG_RUNTIME_DIR is used when it exists",
		 xdg_runtime_dir_is_used_when_it_exists},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "startup", .pTests = tests},
		CU_SUITE_INFO_NULL,
	};

	if (geteuid() != 0)
		t_skip("needs root to become other users");
	return t_main(argc, argv, suites);
}
