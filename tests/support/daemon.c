/* SPDX-License-Identifier: MIT */
#include "support/daemon.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/io_uring.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ARGS_MAX 32

static void die(const char *what)
{
	perror(what);
	_exit(127);
}

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");

	if (!f || fputs(text, f) == EOF || fclose(f) == EOF)
		abort();
}

void daemon_write_config(const struct daemon *daemon, const char *text)
{
	write_file(daemon->config, text);
}

static void make_dir(struct daemon *d, const struct daemon_options *o)
{
	if (!o->keep_dir) {
		snprintf(d->dir, sizeof(d->dir), "/tmp/dmaheap-test-XXXXXX");
		if (!mkdtemp(d->dir))
			abort();
	}
	snprintf(d->socket, sizeof(d->socket), "%s/s", d->dir);
	snprintf(d->config, sizeof(d->config), "%s/c.conf", d->dir);
	snprintf(d->log, sizeof(d->log), "%s/log", d->dir);
	write_file(d->config, o->config ? o->config : "");
	/* Other users connect, or the daemon itself is one. */
	if (chmod(d->dir, 0755) < 0 || chmod(d->config, 0644) < 0)
		abort();
	if (o->uid && o->uid != DAEMON_ANY_UID &&
	    chown(d->dir, o->uid, (gid_t)-1) < 0)
		abort();
}

static void become(const struct daemon_options *o)
{
	const struct rlimit nofile = {o->nofile, o->nofile};

	if (o->nofile && setrlimit(RLIMIT_NOFILE, &nofile) < 0)
		die("setrlimit");
	if (!o->uid || o->uid == DAEMON_ANY_UID)
		return;
	if (setgroups(0, NULL) < 0 || setresgid(o->uid, o->uid, o->uid) < 0 ||
	    setresuid(o->uid, o->uid, o->uid) < 0)
		die("setresuid");
}

static void exec_daemon(const struct daemon *d, const struct daemon_options *o,
			int ready_fd)
{
	const char *argv[ARGS_MAX];
	char fd_text[16];
	size_t n = 0;
	int log_fd =
		open(d->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

	/* A test program that dies takes its daemon along. */
	if (log_fd < 0 || dup2(log_fd, 2) < 0 ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		die("log");
	snprintf(fd_text, sizeof(fd_text), "%d", ready_fd);
	for (char *const *w = o->wrap; w && *w; w++)
		argv[n++] = *w;
	argv[n++] = DMAHEAPD_PATH;
	argv[n++] = "--config";
	argv[n++] = d->config;
	argv[n++] = "--ready-fd";
	argv[n++] = fd_text;
	argv[n++] = "--loop";
	argv[n++] = o->loop ? o->loop : "auto";
	if (!o->no_socket) {
		argv[n++] = "--socket";
		argv[n++] = d->socket;
	}
	for (const char *const *a = o->args; a && *a; a++)
		argv[n++] = *a;
	argv[n] = NULL;
	unsetenv("DMAHEAP_SOCKET");
	for (char *const *e = o->env; e && *e; e++)
		if (putenv(*e) != 0)
			die("putenv");
	become(o);
	/* setresuid() has cleared it. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	execv(argv[0], (char *const *)(uintptr_t)argv);
	die(argv[0]);
}

/* Reads the path that --ready-fd gives. Return: false at end of file. */
static bool read_ready(struct daemon *d, int fd)
{
	char line[sizeof(d->socket) + 64] = "";
	size_t n = 0;

	while (n < sizeof(line) - 1 && read(fd, &line[n], 1) == 1 &&
	       line[n] != '\n')
		n++;
	if (line[n] != '\n')
		return false;
	line[n] = '\0';
	/* And until it has closed its end: then its descriptors are counted. */
	while (read(fd, &(char){0}, 1) > 0)
		;
	snprintf(d->socket, sizeof(d->socket), "%.*s",
		 (int)sizeof(d->socket) - 1, line);
	return true;
}

bool daemon_start(struct daemon *daemon, const struct daemon_options *options)
{
	int fds[2];
	bool ready;

	make_dir(daemon, options);
	if (pipe2(fds, O_CLOEXEC) < 0)
		abort();
	daemon->pid = fork();
	if (daemon->pid < 0)
		abort();
	if (daemon->pid == 0) {
		int fd = dup(fds[1]); /* survives exec */

		close(fds[0]);
		close(fds[1]);
		exec_daemon(daemon, options, fd);
	}
	close(fds[1]);
	ready = read_ready(daemon, fds[0]);
	close(fds[0]);
	if (!ready) {
		waitpid(daemon->pid, &daemon->status, 0);
		daemon->pid = 0;
	}
	return ready;
}

static void remove_dir(struct daemon *d)
{
	DIR *dir = *d->dir ? opendir(d->dir) : NULL;
	struct dirent *e;

	while (dir && (e = readdir(dir)))
		if (e->d_name[0] != '.')
			unlinkat(dirfd(dir), e->d_name, 0);
	if (dir)
		closedir(dir);
	if (*d->dir)
		rmdir(d->dir);
	d->dir[0] = '\0';
}

bool daemon_stop(struct daemon *daemon)
{
	if (daemon->pid) {
		kill(daemon->pid, SIGTERM);
		waitpid(daemon->pid, &daemon->status, 0);
		daemon->pid = 0;
	}
	if (!WIFEXITED(daemon->status) || WEXITSTATUS(daemon->status)) {
		char *log = daemon_log_text(daemon);

		fprintf(stderr, "dmaheapd: status %#x, its log:\n%s",
			(unsigned int)daemon->status, log);
		free(log);
	}
	remove_dir(daemon);
	return WIFEXITED(daemon->status) && WEXITSTATUS(daemon->status) == 0;
}

void daemon_kill(struct daemon *daemon)
{
	kill(daemon->pid, SIGKILL);
	waitpid(daemon->pid, &daemon->status, 0);
	daemon->pid = 0;
}

char *daemon_log_text(const struct daemon *daemon)
{
	size_t cap = 1 << 20, n;
	char *text = malloc(cap);
	FILE *f = fopen(daemon->log, "re");

	if (!text)
		abort();
	n = f ? fread(text, 1, cap - 1, f) : 0;
	text[n] = '\0';
	if (f)
		fclose(f);
	return text;
}

struct log_wait {
	const struct daemon *daemon;
	const char *text;
};

static bool log_has(void *ctx)
{
	const struct log_wait *w = ctx;
	char *log = daemon_log_text(w->daemon);
	bool has = strstr(log, w->text);

	free(log);
	return has;
}

bool daemon_log_wait(const struct daemon *daemon, const char *text)
{
	return wait_until(log_has,
			  &(struct log_wait){.daemon = daemon, .text = text},
			  5000);
}

static DIR *open_proc(pid_t pid, const char *what)
{
	char path[64];

	if (pid)
		snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, what);
	else
		snprintf(path, sizeof(path), "/proc/self/%s", what);
	return opendir(path);
}

unsigned int count_fds(pid_t pid)
{
	DIR *dir = open_proc(pid, "fd");
	struct dirent *e;
	unsigned int n = 0;

	if (!dir)
		abort();
	while ((e = readdir(dir)))
		n += e->d_name[0] != '.';
	closedir(dir);
	return pid ? n : n - 1; /* ours includes the directory itself */
}

static unsigned int count_lines_with(int dir, const char *name,
				     const char *text)
{
	char line[512];
	unsigned int n = 0;
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");

	while (f && fgets(line, sizeof(line), f))
		n += !strncmp(line, text, strlen(text));
	if (f)
		fclose(f);
	return n;
}

unsigned int count_watches(pid_t pid)
{
	DIR *dir = open_proc(pid, "fdinfo");
	struct dirent *e;
	unsigned int n = 0;

	if (!dir)
		abort();
	while ((e = readdir(dir)))
		if (e->d_name[0] != '.')
			n += count_lines_with(dirfd(dir), e->d_name,
					      "inotify ");
	closedir(dir);
	return n;
}

bool wait_until(bool (*condition)(void *ctx), void *ctx,
		unsigned int timeout_ms)
{
	const struct timespec ms = {.tv_nsec = 1000000};

	for (unsigned int i = 0; i < timeout_ms; i++) {
		if (condition(ctx))
			return true;
		nanosleep(&ms, NULL);
	}
	return condition(ctx);
}

bool uring_works(void)
{
	struct io_uring_params p;
	int fd;

	memset(&p, 0, sizeof(p));
	fd = (int)syscall(SYS_io_uring_setup, 4, &p);
	if (fd < 0)
		return false;
	close(fd);
	return true;
}
