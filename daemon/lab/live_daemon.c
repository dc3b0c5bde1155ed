/* SPDX-License-Identifier: MIT */
#include "lab/live_daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <dmaheap/dmaheap.h>

#include "base/clock.h"
#include "base/fd.h"
#include "lab/median.h"

#define READY_TIMEOUT_MS 5000
#define ROUNDS           101
#define REQUESTS         100
#define REQUEST_BYTES    KIB(64)

/* Where dmaheapd is beside dmaheap-lab: installed, and in a build tree. */
static bool find_beside(char *path, size_t size)
{
	static const char *const places[] = {"dmaheapd", "../server/dmaheapd"};
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n <= 0)
		return false;
	self[n] = '\0';
	*(strrchr(self, '/') + 1) = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		int len = snprintf(path, size, "%s%s", self, places[i]);

		if (len > 0 && (size_t)len < size && access(path, X_OK) == 0)
			return true;
	}
	return false;
}

static int fail(char *why, size_t why_bytes, const char *what, int r)
{
	(void)snprintf(why, why_bytes, "%s: %s", what, strerror(-r));
	return r;
}

static int write_config(const struct live_daemon *d, const char *config)
{
	char path[128];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/conf", d->dir);
	f = fopen(path, "we");
	if (!f)
		return -errno;
	(void)fputs(config, f);
	return fclose(f) ? -errno : 0;
}

static _Noreturn void exec_daemon(const struct live_daemon *d,
				  const char *program, int ready_fd)
{
	char conf[128], fd_text[16];
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)snprintf(conf, sizeof(conf), "%s/conf", d->dir);
	(void)snprintf(fd_text, sizeof(fd_text), "%d", ready_fd);
	(void)fcntl(ready_fd, F_SETFD, 0);
	if (null >= 0) {
		(void)dup2(null, STDIN_FILENO);
		(void)dup2(null, STDERR_FILENO);
	}
	execlp(program, program, "--config", conf, "--socket", d->socket,
	       "--ready-fd", fd_text, (char *)NULL);
	_exit(127);
}

static int wait_ready(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	char c;

	if (poll(&p, 1, READY_TIMEOUT_MS) <= 0)
		return -ETIMEDOUT;
	return read(fd, &c, 1) == 1 ? 0 : -ECHILD; /* it ended instead */
}

static int spawn(struct live_daemon *d, const char *program)
{
	int fds[2], r;

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	d->pid = fork();
	if (d->pid == 0)
		exec_daemon(d, program, fds[1]);
	fd_close(fds[1]);
	r = d->pid < 0 ? -errno : wait_ready(fds[0]);
	if (d->pid < 0)
		d->pid = 0;
	fd_close(fds[0]);
	return r;
}

int live_daemon_start(struct live_daemon *ret, const char *program,
		      const char *config, char *why, size_t why_bytes)
{
	struct live_daemon d = {.dir = "/tmp/dmaheap-lab-XXXXXX"};
	char path[PATH_MAX];
	int r;

	if (!program)
		program = find_beside(path, sizeof(path)) ? path : "dmaheapd";
	if (!mkdtemp(d.dir))
		return fail(why, why_bytes, "temporary directory", -errno);
	(void)snprintf(d.socket, sizeof(d.socket), "%s/socket", d.dir);
	r = write_config(&d, config);
	if (r == 0)
		r = spawn(&d, program);
	if (r) {
		live_daemon_stop(&d);
		return fail(why, why_bytes, program, r);
	}
	*ret = d;
	return 0;
}

void live_daemon_stop(struct live_daemon *d)
{
	char path[128];

	if (d->pid > 0) {
		(void)kill(d->pid, SIGTERM);
		(void)waitpid(d->pid, NULL, 0);
		d->pid = 0;
	}
	if (!d->dir[0])
		return;
	(void)snprintf(path, sizeof(path), "%s/conf", d->dir);
	(void)unlink(path);
	(void)unlink(d->socket);
	(void)snprintf(path, sizeof(path), "%s.lock", d->socket);
	(void)unlink(path);
	(void)rmdir(d->dir);
	d->dir[0] = '\0';
}

static uint64_t cpu_ns_of(pid_t pid)
{
	struct timespec ts = {0};
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) == 0)
		(void)clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* Return: 0 or a negated errno. */
static int measure_requests(const struct live_daemon *d, struct dmaheap *dh,
			    double *ret_per_s, double *ret_cpu_us)
{
	uint64_t start_ns = clock_now_ns(), cpu_ns = cpu_ns_of(d->pid);

	for (int i = 0; i < REQUESTS; i++) {
		int fd = dmaheap_alloc(dh, "system", REQUEST_BYTES,
				       O_RDWR | O_CLOEXEC, 0);

		if (fd < 0)
			return fd;
		fd_close(fd);
	}
	*ret_per_s = REQUESTS / ((double)(clock_now_ns() - start_ns) / 1e9);
	*ret_cpu_us = (double)(cpu_ns_of(d->pid) - cpu_ns) / 1e3 / REQUESTS;
	return 0;
}

/* Interleaved, so that what else the machine does hits both alike. */
static int measure_both(const struct live_daemon daemons[2],
			struct dmaheap *const dh[2],
			struct live_daemon_speed ret[2])
{
	double per_s[2][ROUNDS], cpu_us[2][ROUNDS];

	for (int round = 0; round < ROUNDS; round++) {
		for (int k = 0; k < 2; k++) {
			int i = k ^ (round & 1); /* each is first in turn */
			int r = measure_requests(&daemons[i], dh[i],
						 &per_s[i][round],
						 &cpu_us[i][round]);

			if (r)
				return r;
		}
	}
	for (int i = 0; i < 2; i++)
		ret[i] = (struct live_daemon_speed){median_double(per_s[i],
								  ROUNDS),
						    median_double(cpu_us[i],
								  ROUNDS)};
	return 0;
}

/* Everything on one CPU: where the scheduler puts whom would decide else. */
static bool pin_to_one_cpu(cpu_set_t *ret_before)
{
	cpu_set_t one;
	int cpu = sched_getcpu();

	if (sched_getaffinity(0, sizeof(*ret_before), ret_before) || cpu < 0)
		return false;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	return sched_setaffinity(0, sizeof(one), &one) == 0;
}

static int start_both(const char *program, const char *const configs[2],
		      struct live_daemon daemons[2], struct dmaheap *dh[2],
		      char *why, size_t why_bytes)
{
	int r = 0;

	for (int i = 0; r == 0 && i < 2; i++) {
		r = live_daemon_start(&daemons[i], program, configs[i], why,
				      why_bytes);
		if (r)
			break;
		r = dmaheap_connect(&dh[i], daemons[i].socket);
		if (r)
			(void)fail(why, why_bytes, "connect", r);
	}
	return r;
}

void live_daemon_compare(const char *program, const char *const configs[2],
			 struct live_daemon_speed ret[2], char *why,
			 size_t why_bytes)
{
	struct live_daemon daemons[2] = {0};
	struct dmaheap *dh[2] = {NULL, NULL};
	cpu_set_t before;
	bool pinned = pin_to_one_cpu(&before);
	int r = start_both(program, configs, daemons, dh, why, why_bytes);

	ret[0].per_s = ret[1].per_s = -1;
	if (r == 0) {
		r = measure_both(daemons, dh, ret);
		if (r)
			(void)fail(why, why_bytes, "allocation", r);
	}
	for (int i = 0; i < 2; i++) {
		dh[i] = dmaheap_close(dh[i]);
		live_daemon_stop(&daemons[i]);
	}
	if (pinned)
		(void)sched_setaffinity(0, sizeof(before), &before);
}
