/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "ctl/ctl.h"
#include "ctl/json.h"
#include "ctl/verbs.h"

#define POLL_NS 20000000L

static double timeout_s = 30;

static const struct option options[] = {
	{.name = "--timeout",
	 .kind = OPTION_DECIMAL,
	 .argument = "SECONDS",
	 .value = &timeout_s,
	 .help = "give up after so long (30)"},
	{0},
};

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static bool is_absent(int r)
{
	return r == -ENOENT || r == -ECONNREFUSED || r == -ECONNRESET ||
	       r == -ETIMEDOUT;
}

static int show(struct ctl *ctl)
{
	struct dmaheap_hello_reply hello;
	int r = dmaheap_hello(ctl->dh, &hello);

	if (r)
		return ctl_fail("wait: %s", strerror(-r));
	if (ctl->json)
		return json_show(
			json_pack("{s:o, s:i, s:b, s:b}", "version",
				  json_text(hello.daemon_version), "pid",
				  hello.daemon_pid, "exact_lifetime",
				  !!(hello.features &
				     DMAHEAP_FEATURE_EXACT_LIFETIME),
				  "admin",
				  !!(hello.features & DMAHEAP_FEATURE_ADMIN)));
	printf("dmaheapd %s, pid %d\n", ctl_printable(hello.daemon_version),
	       hello.daemon_pid);
	return CTL_OK;
}

static int run(struct ctl *ctl, int argc, char **argv)
{
	double end_s = now_s() + timeout_s;
	int r;

	(void)argc;
	(void)argv;
	while ((r = dmaheap_connect(&ctl->dh, ctl->socket_path)) != 0) {
		struct timespec pause = {.tv_nsec = POLL_NS};

		if (!is_absent(r))
			return ctl_fail("wait: %s", strerror(-r));
		if (now_s() >= end_s)
			return ctl_fail("wait: no dmaheapd within %g s: %s",
					timeout_s, strerror(-r));
		nanosleep(&pause, NULL);
	}
	return show(ctl);
}

const struct verb verb_wait = {
	.name = "wait",
	.arguments = "",
	.summary = "wait until a daemon answers",
	.options = options,
	.run = run,
};
