/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backing/backing.h"
#include "base/log.h"
#include "server/config.h"
#include "server/confine.h"
#include "server/notify.h"
#include "server/options.h"
#include "server/probe.h"
#include "server/server.h"

#define EXIT_USAGE 2

/* Before any thread exists, so that only the signalfd gets them. */
static void set_signals(void)
{
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

/* An absolute path, so that a reload finds the same file. Return: true, or
 * false when there is none to read. */
static bool find_config(const struct options *options, char **ret_path)
{
	const char *path = options->config_path;

	*ret_path = NULL;
	if (!path && access(OPTIONS_DEFAULT_CONFIG, R_OK) < 0)
		return true; /* the built-in defaults */
	*ret_path = realpath(path ? path : OPTIONS_DEFAULT_CONFIG, NULL);
	if (!*ret_path)
		fprintf(stderr, "dmaheapd: %s: %s\n", path, strerror(errno));
	return *ret_path != NULL;
}

static int load_config(const struct options *options, struct config **ret)
{
	struct conf_error err = {{0}};
	char *path;
	int r;

	if (!find_config(options, &path))
		return -ENOENT;
	r = config_load(path, &options->settings, ret, &err);
	free(path);
	if (r)
		fprintf(stderr, "dmaheapd: %s\n",
			r > 0 ? err.text : strerror(-r));
	return r ? -EINVAL : 0;
}

/* --check-config: the node is built as well, for its own checks. */
static int check_config(struct config *config)
{
	struct conf_error err = {{0}};
	int r = server_check_config(config, &err);

	if (r)
		fprintf(stderr, "dmaheapd: %s\n",
			r > 0 ? err.text : strerror(-r));
	else
		printf("%s: %s\n",
		       *config->file ? config->file : OPTIONS_DEFAULT_CONFIG,
		       *config->file ? "ok"
				     : "no such file: the built-in defaults "
				       "are in force, ok");
	config_free(config);
	return r ? EXIT_FAILURE : EXIT_SUCCESS;
}

static void announce(const struct server *s, const struct options *options)
{
	struct backing_stats st;
	int r;

	backing_get_stats(s->backing, &st);
	log_info("ready version=%s socket=\"%s\" loop=%s backing=%s "
		 "lifetime=%s node_bytes=%llu reason=\"%s\"",
		 DMAHEAP_VERSION, s->socket.path, loop_name(s->loop),
		 backing_kind_name(st.mode), backing_lifetime_name(st.lifetime),
		 (unsigned long long)s->node_bytes, st.reason);
	r = notify_manager("READY=1");
	if (r)
		log_warn("notify state=READY reason=\"%s\"", strerror(-r));
	r = notify_ready_fd(options->ready_fd, s->socket.path);
	if (r)
		log_warn("ready-fd reason=\"%s\"", strerror(-r));
}

/* A kernel without seccomp, or a build with sanitizers, is said and served. */
static void confine(const struct config *config)
{
	int r = confine_process((enum confine_mode)config->daemon.confine);

	if (r)
		log_warn("confine result=off reason=\"%s\"", strerror(-r));
}

static int run(const struct options *options, struct config *config)
{
	_cleanup_(server_freep) struct server *server = NULL;
	char error[512];
	int r;

	log_set_level((enum log_level)config->daemon.log_level);
	set_signals();
	backing_process_setup();
	slab_use_malloc(config->daemon.objects == 1);
	r = server_new(&server, options, config, error, sizeof(error));
	if (r) {
		fprintf(stderr, "dmaheapd: %s\n", error);
		return EXIT_FAILURE;
	}
	confine(server->config);
	announce(server, options);
	r = server_run(server);
	if (r)
		log_error("loop reason=\"%s\"", strerror(-r));
	return r ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	struct options options;
	struct config *config;
	char error[256];

	if (options_parse(argc, argv, &options, error, sizeof(error))) {
		fprintf(stderr, "dmaheapd: %s\n%s", error, options_usage);
		return EXIT_USAGE;
	}
	if (options.action == OPTIONS_HELP) {
		fputs(options_usage, stdout);
		return EXIT_SUCCESS;
	}
	if (options.action == OPTIONS_VERSION) {
		printf("dmaheapd %s\n", DMAHEAP_VERSION);
		return EXIT_SUCCESS;
	}
	if (load_config(&options, &config))
		return EXIT_FAILURE;
	if (options.action == OPTIONS_CHECK_CONFIG)
		return check_config(config);
	if (options.action == OPTIONS_PROBE)
		return probe_print(config, options.json);
	return run(&options, config);
}
