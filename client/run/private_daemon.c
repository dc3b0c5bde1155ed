/* SPDX-License-Identifier: MIT */
#include "run/private_daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run/util.h"

#define START_TIMEOUT_MS 60000
#define STOP_TIMEOUT_MS  5000

static void file_of(char path[PATH_MAX], const struct workdir *workdir,
		    const char *name)
{
	(void)snprintf(path, PATH_MAX, "%s/%s", workdir->path, name);
}

#define SETTINGS_MAX 8u

/* The daemon's --config, and a --set for each key that is ours to say. */
struct command_line {
	char node[PATH_MAX + 32];
	char policy[256];
	const char *settings[SETTINGS_MAX];
	size_t n_settings;
	const char *config_path;
};

static void add_setting(struct command_line *line, const char *setting)
{
	line->settings[line->n_settings++] = setting;
}

/* Relative paths of the command line are relative to where it was typed, those
 * of a configuration to where it is. */
static int set_node(struct command_line *line, const char *directory)
{
	char *real = realpath(directory, NULL);

	/* A mere name may be a shipped snapshot's: the daemon looks. */
	if (!real && strchr(directory, '/')) {
		run_message("--node %s: %s", directory, strerror(errno));
		return -EINVAL;
	}
	(void)snprintf(line->node, sizeof(line->node), "[node] snapshot = %s",
		       real ? real : directory);
	add_setting(line, line->node);
	free(real);
	return 0;
}

static int set_policy(struct command_line *line, const char *name)
{
	int n = snprintf(line->policy, sizeof(line->policy),
			 "[heap system] policy = %s", name);

	if (n < 0 || (size_t)n >= sizeof(line->policy)) {
		run_message("--policy %s: longer than any policy's name", name);
		return -EINVAL;
	}
	add_setting(line, line->policy);
	return 0;
}

/* Without a file: neither the system's, which is for its users, nor limits
 * between users, since there is one. */
static void set_defaults(struct command_line *line)
{
	line->config_path = "/dev/null";
	add_setting(line, "[quota] bytes = 100%");
	add_setting(line, "[quota] buffers = 65536");
	add_setting(line, "[quota] connections = 4096");
}

static int make_command_line(struct command_line *ret,
			     const struct options *options)
{
	int r = 0;

	ret->n_settings = 0;
	ret->config_path = options->config_path;
	if (!ret->config_path)
		set_defaults(ret);
	if (options->node)
		r = set_node(ret, options->node);
	if (r == 0 && options->policy)
		r = set_policy(ret, options->policy);
	return r;
}

/* Beside this program, where the build or the installation puts it, or PATH. */
static void exec_daemon(char *const argv[])
{
	static const char *const places[] = {"", "/../sbin",
					     "/../../daemon/server"};
	char self[PATH_MAX / 2], path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	self[n > 0 ? n : 0] = '\0';
	slash = strrchr(self, '/');
	for (size_t i = 0; slash && i < ARRAY_SIZE(places); i++) {
		(void)snprintf(path, sizeof(path), "%.*s%s/dmaheapd",
			       (int)(slash - self), self, places[i]);
		(void)execv(path, argv);
	}
	(void)execvp("dmaheapd", argv);
}

#define ARGS_MAX (8u + 2 * SETTINGS_MAX)

static void exec_with(const struct command_line *line, const char *socket_path,
		      int ready_fd)
{
	const char *argv[ARGS_MAX] = {"dmaheapd",        "--config",
				      line->config_path, "--socket",
				      socket_path,       "--ready-fd"};
	char number[16];
	size_t n = 6;

	(void)snprintf(number, sizeof(number), "%d", ready_fd);
	argv[n++] = number;
	for (size_t i = 0; i < line->n_settings; i++) {
		argv[n++] = "--set";
		argv[n++] = line->settings[i];
	}
	argv[n] = NULL;
	exec_daemon((char **)(uintptr_t)argv);
}

static _Noreturn void child(const struct command_line *line,
			    const char *socket_path, const char *log_path,
			    int ready_fd, pid_t parent)
{
	sigset_t none;
	int log;

	log = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (log >= 0)
		(void)dup2(log, STDERR_FILENO);
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(1);
	for (int sig = 1; sig < NSIG; sig++)
		(void)signal(sig, SIG_DFL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	exec_with(line, socket_path, fcntl(ready_fd, F_DUPFD, 3));
	(void)fprintf(stderr, "dmaheapd: %s\n", strerror(errno));
	_exit(127);
}

/* Return: 0 when it says so, or a negated errno. */
static int wait_ready(int fd)
{
	struct pollfd polled = {.fd = fd, .events = POLLIN};
	char byte;
	int r;

	do
		r = poll(&polled, 1, START_TIMEOUT_MS);
	while (r < 0 && errno == EINTR);
	if (r == 0)
		return -ETIMEDOUT;
	return read(fd, &byte, 1) == 1 ? 0 : -ECHILD;
}

static void show_log(const char *path)
{
	char line[512];
	FILE *file = fopen(path, "re");

	if (!file)
		return;
	while (fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		run_message("  %s", line);
	}
	(void)fclose(file);
}

static int start_and_wait(struct private_daemon *daemon,
			  const struct command_line *line, const char *log_path)
{
	pid_t parent = getpid();
	int fds[2], r;

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	daemon->pid = fork();
	if (daemon->pid == 0)
		child(line, daemon->socket_path, log_path, fds[1], parent);
	r = daemon->pid < 0 ? -errno : 0;
	(void)close(fds[1]);
	if (r == 0)
		r = wait_ready(fds[0]);
	(void)close(fds[0]);
	return r;
}

int private_daemon_start(struct private_daemon *ret,
			 const struct options *options,
			 const struct workdir *workdir)
{
	struct command_line line;
	char log_path[PATH_MAX];
	int r;

	ret->pid = 0;
	file_of(log_path, workdir, "dmaheapd.log");
	(void)snprintf(ret->socket_path, sizeof(ret->socket_path),
		       "%s/dmaheap.sock", workdir->path);
	r = make_command_line(&line, options);
	if (r)
		return r;
	r = start_and_wait(ret, &line, log_path);
	if (r) {
		run_message("the private daemon did not start (%s); it says:",
			    r == -ECHILD ? "it ended" : strerror(-r));
		show_log(log_path);
		private_daemon_stop(ret, workdir);
	}
	return r;
}

static void reap(pid_t pid)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd polled = {.fd = pidfd, .events = POLLIN};

	if (pidfd < 0 || poll(&polled, 1, STOP_TIMEOUT_MS) == 0)
		(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	if (pidfd >= 0)
		(void)close(pidfd);
}

void private_daemon_stop(struct private_daemon *daemon,
			 const struct workdir *workdir)
{
	/* It removes the last two itself, unless it was killed. */
	static const char *const files[] = {"dmaheapd.log", "dmaheap.sock",
					    "dmaheap.sock.lock"};
	char path[PATH_MAX];

	if (daemon->pid > 0) {
		(void)kill(daemon->pid, SIGTERM);
		reap(daemon->pid);
	}
	daemon->pid = 0;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		file_of(path, workdir, files[i]);
		(void)unlink(path);
	}
}
