/* SPDX-License-Identifier: MIT */
#include "ctl/hold.h"

#include <math.h>
#include <signal.h>
#include <string.h>
#include <time.h>

static sigset_t enough;

void hold_begin(void)
{
	sigemptyset(&enough);
	sigaddset(&enough, SIGINT);
	sigaddset(&enough, SIGTERM);
	sigaddset(&enough, SIGHUP);
	sigprocmask(SIG_BLOCK, &enough, NULL);
}

/* Return: whether a signal came. */
static bool wait_for(double seconds)
{
	double whole = floor(seconds);
	struct timespec ts = {.tv_sec = (time_t)whole,
			      .tv_nsec = (long)((seconds - whole) * 1e9)};

	return sigtimedwait(&enough, NULL, &ts) > 0;
}

void hold_wait(double seconds)
{
	if (seconds < 0)
		sigwaitinfo(&enough, NULL);
	else
		wait_for(seconds);
}

int hold_connection(struct ctl *ctl, const char *what)
{
	struct dmaheap_hello_reply first, now;
	int r = dmaheap_hello(ctl->dh, &first);

	while (r == 0 && !wait_for(1)) {
		r = dmaheap_hello(ctl->dh, &now);
		if (r == 0 && now.instance_id != first.instance_id)
			return ctl_fail("%s: the daemon was restarted", what);
	}
	return r ? ctl_fail("%s: %s", what, strerror(-r)) : CTL_OK;
}
