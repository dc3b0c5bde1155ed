/* SPDX-License-Identifier: MIT */
#include "run/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run/launcher.h"
#include "run/private_daemon.h"
#include "run/program.h"
#include "run/run.h"
#include "run/util.h"

#define HANDLES_MAX 4000u

/*
 * The model: two ends are awaited. When the program ends, the launcher is told,
 * at once if other processes of the run go on. When nobody uses the filter any
 * more (the listener hangs up) the supervisor ends, and all that is its own.
 */
struct supervisor {
	const struct options *options;
	struct run run;
	struct workdir workdir;
	bool has_workdir;
	struct private_daemon daemon;
	struct dmaheap *admin; /* keeps --inject in force */
	struct program program;
	int launcher; /* -1: gone */
	int listener;
	int signals;
	int daemon_pidfd; /* -1: gone, or not visible */
	bool program_ended;
	bool launcher_told;
	bool report_failed; /* said so */
	int wait_status;
};

/* The first half of the way: what the program must not inherit comes later. */
static void leave_session(struct supervisor *s)
{
	const int kept[] = {STDERR_FILENO, s->launcher, s->program.socket};

	/* No terminal's signal reaches us, and nobody's pipe is held open. */
	(void)setsid();
	fds_close_others(kept, ARRAY_SIZE(kept));
	fds_fill_standard();
}

static void ignore_signals(void)
{
	static const int ignored[] = {SIGHUP,  SIGINT,  SIGQUIT,
				      SIGTERM, SIGPIPE, SIGUSR1,
				      SIGUSR2, SIGALRM, SIGIO};

	for (size_t i = 0; i < ARRAY_SIZE(ignored); i++)
		(void)signal(ignored[i], SIG_IGN);
	/* Inherited as ignored it would hide how the program ended. */
	(void)signal(SIGCHLD, SIG_DFL);
}

static void raise_fd_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

static int watch_children(void)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	(void)sigprocmask(SIG_SETMASK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static bool is_absence(int r)
{
	return r == -ECONNREFUSED || r == -ENOENT;
}

/* Connects to the daemon that is there, else to one of the run's own. */
static int connect_daemon(struct supervisor *s)
{
	const struct options *o = s->options;
	int r = -ENOENT;

	if (!o->private_daemon) {
		r = source_new(&s->run.source, o->socket_path, HANDLES_MAX);
		if (r == 0)
			return 0;
		if (o->socket_path || !is_absence(r)) {
			run_message("%s: %s",
				    o->socket_path ? o->socket_path
						   : "the daemon's socket",
				    strerror(-r));
			return r;
		}
	}
	r = private_daemon_start(&s->daemon, o, &s->workdir);
	if (r)
		return r;
	run_message("%s a private daemon (pid %d, socket %s), which ends with "
		    "the program",
		    o->private_daemon ? "started"
				      : "no daemon is running: started",
		    (int)s->daemon.pid, s->daemon.socket_path);
	r = source_new(&s->run.source, s->daemon.socket_path, HANDLES_MAX);
	if (r)
		run_message("%s: %s", s->daemon.socket_path, strerror(-r));
	return r;
}

/* The request lasts as long as its connection, which is never closed. */
static int inject(struct supervisor *s)
{
	struct dmaheap_message msg = {
		.opcode = DMAHEAP_OP_INJECT,
		.payload = &s->options->inject,
		.payload_bytes = sizeof(s->options->inject),
	};
	int r;

	if (!s->options->has_inject)
		return 0;
	r = dmaheap_connect(&s->admin, s->daemon.socket_path);
	if (r == 0)
		r = dmaheap_call(s->admin, &msg);
	if (r)
		run_message("--inject: %s%s%s", strerror(-r),
			    msg.error[0] ? ": " : "", msg.error);
	return r;
}

static int make_node(struct supervisor *s)
{
	char names[NODE_HEAPS_MAX][DMAHEAP_NAME_MAX_BYTES], why[256];
	int n, r;

	n = source_heaps(s->run.source, names, NODE_HEAPS_MAX);
	if (n < 0) {
		run_message("asking the daemon for its heaps: %s",
			    strerror(-n));
		return n;
	}
	r = node_new(&s->run.node, &s->workdir, names, (size_t)n, why);
	if (r)
		run_message("%s", why);
	return r;
}

static void watch_daemon(struct supervisor *s)
{
	int pid = source_daemon_pid(s->run.source);

	s->daemon_pidfd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
}

/* Before the program runs for hours, and then for nothing. */
static int check_report(const char *path)
{
	int r = path ? report_check(path) : 0;

	if (r)
		run_message("--report %s: %s", path, strerror(-r));
	return r;
}

static int prepare(struct supervisor *s)
{
	const struct options *o = s->options;
	int r;

	r = check_report(o->report_path);
	if (r)
		return r;
	r = workdir_make(&s->workdir);
	if (r) {
		run_message("no private directory can be made in "
			    "XDG_RUNTIME_DIR, /dev/shm, TMPDIR, /tmp or "
			    "/var/tmp: %s",
			    strerror(-r));
		return r;
	}
	s->has_workdir = true;
	r = connect_daemon(s);
	if (r == 0)
		r = inject(s);
	if (r == 0)
		r = make_node(s);
	if (r)
		return r;
	watch_daemon(s);
	s->run.names = names_new();
	s->run.mirror = mirror_new(&s->workdir, s->run.node, s->run.names);
	if (!s->run.names || !s->run.mirror) {
		run_message("out of memory");
		return -ENOMEM;
	}
	if (o->report_path || o->fail_on_leak)
		s->run.report = report_new(&(struct report_setup){
			.argv = o->argv,
			.socket_path = source_socket_path(s->run.source),
			.private_daemon = s->daemon.pid != 0,
			.strict = o->strict,
		});
	return 0;
}

static const char *filter_problem(int err)
{
	switch (err) {
	case EBUSY:
		return "this process is already supervised by a seccomp "
		       "listener (of another dmaheap-run?), and the kernel "
		       "allows one";
	case EINVAL:
	case ENOSYS:
		return "the kernel has no seccomp user notification with "
		       "WAIT_KILLABLE_RECV (Linux 5.19), or the container "
		       "hides it";
	case EPERM:
	case EACCES:
		return "the container's own seccomp profile forbids seccomp()";
	default:
		return strerror(err);
	}
}

static void handle_call(void *ctx, const struct call *call)
{
	run_dispatch(ctx, call);
}

static int start_program(struct supervisor *s)
{
	int r;

	r = program_start(&s->program, source_socket_path(s->run.source),
			  &s->listener);
	if (r) {
		run_message("%s", r == -EPIPE ? "the program's process died"
					      : filter_problem(-r));
		return r;
	}
	s->run.program_pid = s->program.pid;
	s->run.strict = s->options->strict;
	r = pool_new(&s->run.pool, s->listener, handle_call, &s->run);
	if (r) {
		run_message("threads: %s", strerror(-r));
		return r;
	}
	r = program_exec_error(&s->program);
	if (r)
		run_message("%s: %s", s->options->argv[0], strerror(r));
	return -r;
}

static void tell(struct supervisor *s, const struct launcher_word *word)
{
	if (s->launcher >= 0)
		(void)send(s->launcher, word, sizeof(*word), MSG_NOSIGNAL);
}

static void tell_stop(struct supervisor *s, int sig)
{
	const struct launcher_word word = {
		.kind = LAUNCHER_STOPPED,
		.value = sig,
		.sender = s->program.pid,
	};

	tell(s, &word);
}

static void tell_end(struct supervisor *s)
{
	const struct launcher_word word = {
		.kind = LAUNCHER_ENDED,
		.value = s->wait_status,
		.has_leaks = report_n_leaks(s->run.report) != 0,
	};

	if (!s->launcher_told)
		tell(s, &word);
	s->launcher_told = true;
}

static void hear_launcher(struct supervisor *s)
{
	struct launcher_word word;
	ssize_t n = recv(s->launcher, &word, sizeof(word), MSG_DONTWAIT);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n == (ssize_t)sizeof(word)) {
		if (word.kind == LAUNCHER_SIGNAL && !s->program_ended &&
		    word.sender != s->program.pid)
			(void)kill(s->program.pid, word.value);
		return;
	}
	/* Killed: nothing else may pass that on. */
	(void)close(s->launcher);
	s->launcher = -1;
	if (!s->program_ended)
		(void)kill(s->program.pid, SIGKILL);
}

static void write_report(struct supervisor *s)
{
	const char *path = s->options->report_path;
	int r;

	if (!path || !s->run.report)
		return;
	r = report_write(s->run.report, path, s->wait_status);
	if (r && !s->report_failed)
		run_message("--report %s: %s", path, strerror(-r));
	s->report_failed = r != 0;
}

static void program_ended(struct supervisor *s, int status)
{
	s->program_ended = true;
	s->wait_status = status;
	report_survivors(s->run.report, s->program.pid);
	if (s->options->fail_on_leak)
		report_print_leaks(s->run.report);
	write_report(s);
}

/* Return: whether a child other than the private daemon is left. */
static bool reap(struct supervisor *s)
{
	struct signalfd_siginfo info;
	int status;
	pid_t pid;

	while (read(s->signals, &info, sizeof(info)) > 0)
		;
	while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
		if (pid == s->program.pid && WIFSTOPPED(status))
			tell_stop(s, WSTOPSIG(status));
		else if (pid == s->program.pid)
			program_ended(s, status);
		else if (pid == s->daemon.pid && !WIFSTOPPED(status))
			s->daemon.pid = 0;
	}
	return pid == 0;
}

static bool has_hung_up(int fd)
{
	struct pollfd polled = {.fd = fd};

	return poll(&polled, 1, 0) == 1 && (polled.revents & POLLHUP);
}

/* The command is over, and others go on: nobody's terminal may be held open. */
static void go_background(struct supervisor *s)
{
	int null;

	if (s->launcher_told)
		return;
	tell_end(s);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null >= 0)
		(void)dup2(null, STDERR_FILENO);
	if (null > STDERR_FILENO)
		(void)close(null);
}

static void serve(struct supervisor *s)
{
	for (;;) {
		struct pollfd polled[] = {
			{.fd = s->listener},
			{.fd = s->signals, .events = POLLIN},
			{.fd = s->launcher, .events = POLLIN},
			{.fd = s->daemon_pidfd, .events = POLLIN},
		};

		if (s->program_ended) {
			if (has_hung_up(s->listener))
				return;
			go_background(s);
		} else if (has_hung_up(s->listener)) {
			/* Its last thread is gone; its status comes now. */
			polled[0].fd = -1;
		}
		if (poll(polled, ARRAY_SIZE(polled), -1) < 0)
			continue;
		if (polled[1].revents)
			(void)reap(s);
		if (polled[2].revents)
			hear_launcher(s);
		if (polled[3].revents) {
			(void)close(s->daemon_pidfd);
			s->daemon_pidfd = -1;
			source_daemon_died(s->run.source);
		}
	}
}

/*
 * The threads end with the process, one perhaps in the middle of an allocation
 * whose caller was killed: what they use is left to its end.
 */
static _Noreturn void finish(struct supervisor *s, int failed_status)
{
	if (s->admin)
		dmaheap_close(s->admin);
	if (s->has_workdir) {
		private_daemon_stop(&s->daemon, &s->workdir);
		mirror_close(s->run.mirror);
		if (s->run.node)
			node_remove_directory(s->run.node);
		workdir_remove(&s->workdir);
	}
	if (s->program_ended)
		tell_end(s);
	else
		tell(s, &(struct launcher_word){.kind = LAUNCHER_FAILED,
						.value = failed_status});
	_exit(0);
}

/* The program's process waits for a word, which it does not get. */
static _Noreturn void fail(struct supervisor *s, int status)
{
	if (s->program.socket >= 0)
		(void)close(s->program.socket);
	finish(s, status);
}

_Noreturn void supervisor_run(const struct options *options, int launcher,
			      const sigset_t *signal_mask)
{
	struct supervisor s = {
		.options = options,
		.launcher = launcher,
		.listener = -1,
		.daemon_pidfd = -1,
		.program = {.socket = -1},
	};
	struct program_setup setup = {
		.argv = options->argv,
		.signal_mask = *signal_mask,
		.filter = {.strict = options->strict,
			   .watch_exit = options->report_path ||
					 options->fail_on_leak},
	};
	int r;

	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	r = program_fork(&s.program, &setup);
	if (r) {
		run_message("fork: %s", strerror(-r));
		fail(&s, 1);
	}
	leave_session(&s);
	ignore_signals();
	raise_fd_limit();
	s.signals = watch_children();
	if (s.signals < 0 || prepare(&s))
		fail(&s, 1);
	r = start_program(&s);
	if (r)
		fail(&s, s.run.pool == NULL ? 1 : r == -ENOENT ? 127 : 126);
	serve(&s);
	write_report(&s);
	finish(&s, 1);
}
