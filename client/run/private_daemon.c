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

/* The user's file first, then ours: the later of two equal keys counts. */
static bool copy_config(FILE *to, const char *from_path)
{
	char line[4096];
	FILE *from = fopen(from_path, "re");

	if (!from) {
		run_message("%s: %s", from_path, strerror(errno));
		return false;
	}
	while (fgets(line, sizeof(line), from))
		(void)fputs(line, to);
	(void)fputc('\n', to);
	(void)fclose(from);
	return true;
}

/* Relative paths of the command line are relative to where it was typed. */
static bool print_node(FILE *to, const char *directory)
{
	char *real = realpath(directory, NULL);

	if (!real) {
		run_message("--node %s: %s", directory, strerror(errno));
		return false;
	}
	(void)fprintf(to, "[node]\nsnapshot = %s\n", real);
	free(real);
	return true;
}

static bool print_config(FILE *to, const struct options *options)
{
	if (options->config_path) {
		if (!copy_config(to, options->config_path))
			return false;
	} else {
		/* One user's own: the limits between users are in the way. */
		(void)fputs("[quota]\nbytes = 100%\nbuffers = 65536\n"
			    "connections = 4096\n",
			    to);
	}
	if (options->node && !print_node(to, options->node))
		return false;
	if (options->policy)
		(void)fprintf(to, "[heap system]\npolicy = %s\n",
			      options->policy);
	return true;
}

static bool write_config(const char *path, const struct options *options)
{
	FILE *to = fopen(path, "we");
	bool good;

	if (!to) {
		run_message("%s: %s", path, strerror(errno));
		return false;
	}
	good = print_config(to, options);
	if (fclose(to) && good) {
		run_message("%s: %s", path, strerror(errno));
		good = false;
	}
	return good;
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

static _Noreturn void child(const char *config_path, const char *socket_path,
			    const char *log_path, int ready_fd, pid_t parent)
{
	char number[16];
	char *argv[] = {(char *)(uintptr_t) "dmaheapd",
			(char *)(uintptr_t) "--config",
			(char *)(uintptr_t)config_path,
			(char *)(uintptr_t) "--socket",
			(char *)(uintptr_t)socket_path,
			(char *)(uintptr_t) "--ready-fd",
			number,
			NULL};
	sigset_t none;
	int log, fd;

	log = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (log >= 0)
		(void)dup2(log, STDERR_FILENO);
	fd = fcntl(ready_fd, F_DUPFD, 3);
	(void)snprintf(number, sizeof(number), "%d", fd);
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(1);
	for (int sig = 1; sig < NSIG; sig++)
		(void)signal(sig, SIG_DFL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	exec_daemon(argv);
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
			  const char *config_path, const char *log_path)
{
	pid_t parent = getpid();
	int fds[2], r;

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	daemon->pid = fork();
	if (daemon->pid == 0)
		child(config_path, daemon->socket_path, log_path, fds[1],
		      parent);
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
	char config_path[PATH_MAX], log_path[PATH_MAX];
	int r;

	ret->pid = 0;
	file_of(config_path, workdir, "dmaheapd.conf");
	file_of(log_path, workdir, "dmaheapd.log");
	(void)snprintf(ret->socket_path, sizeof(ret->socket_path),
		       "%s/dmaheap.sock", workdir->path);
	if (!write_config(config_path, options))
		return -EINVAL;
	r = start_and_wait(ret, config_path, log_path);
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
	static const char *const files[] = {"dmaheapd.conf", "dmaheapd.log",
					    "dmaheap.sock",
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
