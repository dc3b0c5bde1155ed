/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ctl/ctl.h"
#include "ctl/json.h"
#include "ctl/verbs.h"

#define PATIENCE_MS 30000

/* Where the number means another process here, as across PID namespaces. */
static bool is_daemon(pid_t pid)
{
	char path[64], comm[32] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	if (!fgets(comm, sizeof(comm), file))
		comm[0] = '\0';
	fclose(file);
	comm[strcspn(comm, "\n")] = '\0';
	return !strcmp(comm, "dmaheapd");
}

static int terminate(int pidfd, pid_t pid)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	if (syscall(SYS_pidfd_send_signal, pidfd, SIGTERM, NULL, 0) < 0)
		return ctl_fail("stop: dmaheapd, pid %d: %s", pid,
				strerror(errno));
	if (poll(&p, 1, PATIENCE_MS) <= 0)
		return ctl_fail("stop: dmaheapd, pid %d, got SIGTERM but has "
				"not ended after %d s",
				pid, PATIENCE_MS / 1000);
	return CTL_OK;
}

static int run(struct ctl *ctl, int argc, char **argv)
{
	struct dmaheap_hello_reply hello;
	int pidfd, r;

	(void)argc;
	(void)argv;
	r = ctl_connect(ctl);
	if (r)
		return r;
	r = dmaheap_hello(ctl->dh, &hello);
	if (r)
		return ctl_fail("stop: %s", strerror(-r));
	pidfd = (int)syscall(SYS_pidfd_open, hello.daemon_pid, 0);
	if (pidfd < 0 || !is_daemon(hello.daemon_pid)) {
		if (pidfd >= 0)
			close(pidfd);
		return ctl_fail("stop: pid %d, as the daemon calls itself, is "
				"no dmaheapd here; stop it where it runs",
				hello.daemon_pid);
	}
	/* It drains while we hold a connection: let it go first. */
	ctl->dh = dmaheap_close(ctl->dh);
	r = terminate(pidfd, hello.daemon_pid);
	close(pidfd);
	if (r == CTL_OK && ctl->json)
		return json_show(
			json_pack("{s:i}", "stopped_pid", hello.daemon_pid));
	return r;
}

const struct verb verb_stop = {
	.name = "stop",
	.arguments = "",
	.summary = "end the daemon (SIGTERM) and wait until it is gone",
	.run = run,
};
