/* SPDX-License-Identifier: MIT */
#include "server/options.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

const char options_usage[] =
	"usage: dmaheapd [OPTIONS]\n"
	"\n"
	"  --config FILE            configuration "
	"(default: " OPTIONS_DEFAULT_CONFIG ",\n"
	"                           if it exists; else built-in defaults)\n"
	"  --set '[SECTION] KEY = VALUE'\n"
	"                           a key that counts instead of the file's\n"
	"  --socket PATH            listen there\n"
	"  --loop auto|uring|epoll  event loop (default: auto)\n"
	"  --ready-fd N             write the socket's path to fd N when "
	"ready\n"
	"  --check-config           read the configuration, report, exit\n"
	"  --probe [--json]         say what this host offers, exit\n"
	"  --help, --version\n";

enum {
	OPT_CONFIG = 256,
	OPT_SET,
	OPT_SOCKET,
	OPT_LOOP,
	OPT_READY_FD,
	OPT_CHECK_CONFIG,
	OPT_PROBE,
	OPT_JSON,
	OPT_HELP,
	OPT_VERSION,
};

static const struct option long_options[] = {
	{"config", required_argument, NULL, OPT_CONFIG},
	{"set", required_argument, NULL, OPT_SET},
	{"socket", required_argument, NULL, OPT_SOCKET},
	{"loop", required_argument, NULL, OPT_LOOP},
	{"ready-fd", required_argument, NULL, OPT_READY_FD},
	{"check-config", no_argument, NULL, OPT_CHECK_CONFIG},
	{"probe", no_argument, NULL, OPT_PROBE},
	{"json", no_argument, NULL, OPT_JSON},
	{"help", no_argument, NULL, OPT_HELP},
	{"version", no_argument, NULL, OPT_VERSION},
	{0},
};

static int parse_loop(const char *text, enum options_loop *ret)
{
	static const char *const names[] = {
		[OPTIONS_LOOP_AUTO] = "auto",
		[OPTIONS_LOOP_URING] = "uring",
		[OPTIONS_LOOP_EPOLL] = "epoll",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (!strcmp(text, names[i])) {
			*ret = (enum options_loop)i;
			return 0;
		}
	}
	return err_raise(-EINVAL);
}

/* Whether it can be read is told with the file's faults. */
static int add_setting(struct config_settings *settings, const char *text)
{
	if (settings->n == ARRAY_SIZE(settings->texts))
		return err_raise(-EINVAL);
	settings->texts[settings->n++] = text;
	return 0;
}

static int parse_fd(const char *text, int *ret)
{
	char *end;
	long value;

	errno = 0;
	value = strtol(text, &end, 10);
	if (errno || end == text || *end || value < 0 || value > INT_MAX ||
	    fcntl((int)value, F_GETFD) < 0)
		return err_raise(-EINVAL);
	*ret = (int)value;
	return 0;
}

static int apply(int opt, const char *arg, struct options *o, char *error,
		 size_t error_bytes)
{
	int r = 0;

	switch (opt) {
	case OPT_CONFIG:
		o->config_path = arg;
		break;
	case OPT_SET:
		r = add_setting(&o->settings, arg);
		if (r)
			snprintf(error, error_bytes,
				 "--set %s: at most %u are allowed; the rest "
				 "belongs in the file",
				 arg, CONFIG_SETTINGS_MAX);
		break;
	case OPT_SOCKET:
		o->socket_path = arg;
		break;
	case OPT_LOOP:
		r = parse_loop(arg, &o->loop);
		if (r)
			snprintf(error, error_bytes,
				 "--loop %s: auto, uring or epoll is allowed",
				 arg);
		break;
	case OPT_READY_FD:
		r = parse_fd(arg, &o->ready_fd);
		if (r)
			snprintf(error, error_bytes,
				 "--ready-fd %s: not an open file descriptor",
				 arg);
		break;
	case OPT_CHECK_CONFIG:
		o->action = OPTIONS_CHECK_CONFIG;
		break;
	case OPT_PROBE:
		o->action = OPTIONS_PROBE;
		break;
	case OPT_JSON:
		o->json = true;
		break;
	case OPT_HELP:
		o->action = OPTIONS_HELP;
		break;
	case OPT_VERSION:
		o->action = OPTIONS_VERSION;
		break;
	default:
		r = err_raise(-EINVAL);
	}
	return r;
}

int options_parse(int argc, char **argv, struct options *ret, char *error,
		  size_t error_bytes)
{
	struct options o = {.ready_fd = -1};
	int opt, r;

	opterr = 0;
	optind = 0; /* glibc: start afresh, for callers that parse twice */
	while ((opt = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		snprintf(error, error_bytes,
			 "%s: unknown, or its value is "
			 "missing or not wanted",
			 argv[optind > 1 ? optind - 1 : 1]);
		r = apply(opt, optarg, &o, error, error_bytes);
		if (r)
			return err_trace(r);
	}
	if (optind < argc) {
		snprintf(error, error_bytes, "%s: no arguments are expected",
			 argv[optind]);
		return err_raise(-EINVAL);
	}
	if (o.json && o.action != OPTIONS_PROBE) {
		snprintf(error, error_bytes, "--json goes with --probe only");
		return err_raise(-EINVAL);
	}
	*ret = o;
	return 0;
}
