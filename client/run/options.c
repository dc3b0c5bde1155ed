/* SPDX-License-Identifier: MIT */
#include "run/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/util.h"

static const char usage[] =
	"usage: dmaheap-run [OPTIONS] [--] PROGRAM [ARGS...]\n"
	"Runs PROGRAM with an emulated /dev/dma_heap.\n"
	"  --socket PATH     the daemon's socket (default: the usual places)\n"
	"  --private         a daemon of its own, also when one is running\n"
	"  --config FILE     the private daemon's configuration\n"
	"  --policy NAME     its order policy, 840-high, 840-mid, 800 ...\n"
	"  --node SNAPSHOT   its node: a snapshot's directory or shipped name\n"
	"  --inject SPEC     stall=80ms, fail-nth=N, fail-rate=P, errno=NAME,\n"
	"                    count=N, heap=NAME; several with commas\n"
	"  --strict          more of a dma-buf's refusals, at a cost per call\n"
	"  --report FILE     writes what was allocated, as JSON\n"
	"  --fail-on leak    exit status 1 when buffers are left at the end\n"
	"  --help (-h), --version\n"
	"The last four of the daemon's options imply --private.\n"
	"Exit status: the program's; 1 failed before it, 2 usage, 126 it "
	"cannot\n"
	"be executed, 127 it was not found.\n";

struct inject_parse {
	struct dmaheap_inject_req *req;
	char *why;
};

static bool bad(const struct inject_parse *p, const char *key,
		const char *value, const char *allowed)
{
	(void)snprintf(p->why, 256, "%s=%s: %s", key, value, allowed);
	return false;
}

static bool parse_number(const char *text, unsigned long max, uint32_t *ret,
			 const char **ret_end)
{
	unsigned long value;
	char *end;

	if (text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || value > max)
		return false;
	*ret = (uint32_t)value;
	*ret_end = end;
	return true;
}

static bool parse_count(const char *text, uint32_t *ret)
{
	const char *end;

	return parse_number(text, UINT32_MAX, ret, &end) && !*end && *ret > 0;
}

static bool parse_stall(const char *text, uint32_t *ret_ms)
{
	const char *end;

	if (!parse_number(text, 3600000, ret_ms, &end) || *ret_ms == 0)
		return false;
	if (strcmp(end, "s") == 0 && *ret_ms <= 3600)
		*ret_ms *= 1000;
	else if (*end && strcmp(end, "ms"))
		return false;
	return true;
}

static bool parse_rate(const char *text, uint32_t *ret_ppm)
{
	char *end;
	double rate = strtod(text, &end);

	if (end == text)
		return false;
	if (*end == '%') {
		rate /= 100;
		end++;
	}
	if (*end || !(rate > 0 && rate <= 1))
		return false;
	*ret_ppm = (uint32_t)(rate * 1e6 + 0.5);
	return *ret_ppm > 0;
}

static bool parse_errno(const char *text, int32_t *ret)
{
	for (int err = 1; err < 134; err++) {
		const char *name = strerrorname_np(err);

		if (name && strcmp(name, text) == 0) {
			*ret = err;
			return true;
		}
	}
	return false;
}

static bool inject_key(const struct inject_parse *p, const char *key,
		       const char *value)
{
	struct dmaheap_inject_req *req = p->req;

	if (strcmp(key, "stall") == 0)
		return parse_stall(value, &req->stall_ms) ||
		       bad(p, key, value,
			   "wants a whole number of ms or s, 1ms to 3600s, "
			   "as 80ms or 2s");
	if (strcmp(key, "fail-nth") == 0)
		return parse_count(value, &req->fail_nth) ||
		       bad(p, key, value, "wants a number from 1");
	if (strcmp(key, "fail-rate") == 0)
		return parse_rate(value, &req->fail_rate_ppm) ||
		       bad(p, key, value, "wants a share, as 0.1 or 10%");
	if (strcmp(key, "errno") == 0)
		return parse_errno(value, &req->err) ||
		       bad(p, key, value, "wants an errno's name, as ENOMEM");
	if (strcmp(key, "count") == 0)
		return parse_count(value, &req->count) ||
		       bad(p, key, value, "wants a number from 1");
	if (strcmp(key, "heap") == 0) {
		if (strlen(value) >= sizeof(req->heap_name))
			return bad(p, key, value, "wants at most 31 bytes");
		memcpy(req->heap_name, value, strlen(value) + 1);
		return true;
	}
	return bad(p, key, value,
		   "unknown; known are stall, fail-nth, fail-rate, errno, "
		   "count, heap");
}

bool options_parse_inject(const char *spec, struct dmaheap_inject_req *ret,
			  char ret_why[256])
{
	struct inject_parse p = {.req = ret, .why = ret_why};
	char copy[512], *at = copy, *word;

	memset(ret, 0, sizeof(*ret));
	ret->uid = DMAHEAP_INJECT_ANY_ID;
	ret->pid = DMAHEAP_INJECT_ANY_ID;
	if (strlen(spec) >= sizeof(copy)) {
		(void)snprintf(ret_why, 256, "longer than 511 bytes");
		return false;
	}
	memcpy(copy, spec, strlen(spec) + 1);
	while ((word = strsep(&at, ", "))) {
		char *value = strchr(word, '=');

		if (!word[0])
			continue;
		if (value)
			*value++ = '\0';
		if (!inject_key(&p, word, value ? value : ""))
			return false;
	}
	if (ret->stall_ms || ret->fail_nth || ret->fail_rate_ppm)
		return true;
	(void)snprintf(ret_why, 256,
		       "names none of stall, fail-nth, fail-rate");
	return false;
}

enum option_number {
	OPT_SOCKET = 256,
	OPT_PRIVATE,
	OPT_CONFIG,
	OPT_POLICY,
	OPT_NODE,
	OPT_INJECT,
	OPT_STRICT,
	OPT_REPORT,
	OPT_FAIL_ON,
	OPT_VERSION,
	OPT_HELP = 'h',
};

static const struct option longopts[] = {
	{"socket", required_argument, NULL, OPT_SOCKET},
	{"private", no_argument, NULL, OPT_PRIVATE},
	{"config", required_argument, NULL, OPT_CONFIG},
	{"policy", required_argument, NULL, OPT_POLICY},
	{"node", required_argument, NULL, OPT_NODE},
	{"inject", required_argument, NULL, OPT_INJECT},
	{"strict", no_argument, NULL, OPT_STRICT},
	{"report", required_argument, NULL, OPT_REPORT},
	{"fail-on", required_argument, NULL, OPT_FAIL_ON},
	{"help", no_argument, NULL, OPT_HELP},
	{"version", no_argument, NULL, OPT_VERSION},
	{NULL, 0, NULL, 0},
};

/* Return: as options_parse(). */
static int take_option(struct options *o, int option)
{
	char why[256];

	switch (option) {
	case OPT_SOCKET:
		o->socket_path = optarg;
		return -1;
	case OPT_PRIVATE:
		o->private_daemon = true;
		return -1;
	case OPT_CONFIG:
		o->config_path = optarg;
		o->private_daemon = true;
		return -1;
	case OPT_POLICY:
		o->policy = optarg;
		o->private_daemon = true;
		return -1;
	case OPT_NODE:
		o->node = optarg;
		o->private_daemon = true;
		return -1;
	case OPT_INJECT:
		o->private_daemon = true;
		o->has_inject = true;
		if (options_parse_inject(optarg, &o->inject, why))
			return -1;
		run_message("--inject %s: %s", optarg, why);
		return 2;
	case OPT_STRICT:
		o->strict = true;
		return -1;
	case OPT_REPORT:
		o->report_path = optarg;
		return -1;
	case OPT_FAIL_ON:
		o->fail_on_leak = true;
		if (strcmp(optarg, "leak") == 0)
			return -1;
		run_message("--fail-on %s: only 'leak' is known", optarg);
		return 2;
	case OPT_HELP:
		return fputs(usage, stdout) < 0;
	case OPT_VERSION:
		return printf("dmaheap-run %s\n", DMAHEAP_VERSION) < 0;
	default: /* getopt has said what is wrong */
		(void)fputs(usage, stderr);
		return 2;
	}
}

int options_parse(struct options *ret, int argc, char **argv)
{
	int option, r;

	memset(ret, 0, sizeof(*ret));
	/* "+": the program's own options are not ours. */
	while ((option = getopt_long(argc, argv, "+h", longopts, NULL)) != -1) {
		r = take_option(ret, option);
		if (r >= 0)
			return r;
	}
	if (ret->socket_path && ret->private_daemon) {
		run_message("--socket excludes --private, --config, --policy, "
			    "--node and --inject: they configure a daemon of "
			    "the run's own");
		return 2;
	}
	if (optind == argc) {
		run_message("no program given");
		(void)fputs(usage, stderr);
		return 2;
	}
	ret->argv = argv + optind;
	return -1;
}
