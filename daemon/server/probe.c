/* SPDX-License-Identifier: MIT */
#include "server/probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backing/backing.h"
#include "backing/probe.h"
#include "base/strbuf.h"
#include "ipc/loop.h"

#define PROBE_ORDERS 0x111u /* 8, 4, 0 */

static void unused_reference(void *ctx _unused_,
			     struct backing_buffer *bb _unused_)
{
}

static void append_json_text(struct strbuf *out, const char *text)
{
	strbuf_append_char(out, '"');
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			strbuf_append_char(out, '\\');
		if ((unsigned char)*text >= ' ')
			strbuf_append_char(out, *text);
	}
	strbuf_append_char(out, '"');
}

static void append_json_field(struct strbuf *out, const char *name,
			      const char *text)
{
	strbuf_append(out, ",\"%s\":", name);
	append_json_text(out, text);
}

/* What a lack means and what mends it; parts that are not known are "". */
struct lack {
	const char *consequence;
	const char *kernel;
	const char *command;
};

/* One fact: its name, whether it is as good as can be, what it is, why not. */
static void full_fact(struct strbuf *out, bool json, const char *name,
		      bool good, const char *value, const char *reason,
		      const struct lack *lack)
{
	if (!json) {
		strbuf_append(out, "%-14s %-8s %s%s%s\n", name,
			      good ? "ok" : "lacking", value,
			      *reason ? ": " : "", reason);
		if (*lack->consequence)
			strbuf_append(out, "%-14s so       %s\n", "",
				      lack->consequence);
		if (*lack->kernel)
			strbuf_append(out, "%-14s needs    Linux %s\n", "",
				      lack->kernel);
		if (*lack->command)
			strbuf_append(out, "%-14s run      %s\n", "",
				      lack->command);
		return;
	}
	strbuf_append(out, "%s{\"name\":\"%s\",\"ok\":%s",
		      out->len > 1 ? "," : "", name, good ? "true" : "false");
	append_json_field(out, "value", value);
	append_json_field(out, "reason", reason);
	append_json_field(out, "consequence", lack->consequence);
	append_json_field(out, "kernel", lack->kernel);
	append_json_field(out, "command", lack->command);
	strbuf_append_char(out, '}');
}

static void fact(struct strbuf *out, bool json, const char *name, bool good,
		 const char *value, const char *reason)
{
	static const struct lack none = {"", "", ""};

	full_fact(out, json, name, good, value, reason, &none);
}

static void probe_loop(struct strbuf *out, bool json)
{
	char reason[256] = "";
	struct loop *loop = NULL;

	if (loop_new(&loop, LOOP_AUTO, reason, sizeof(reason))) {
		fact(out, json, "loop", false, "none", reason);
		return;
	}
	fact(out, json, "loop", !*reason, loop_name(loop), reason);
	loop_free(loop);
}

static void probe_backing(struct strbuf *out, bool json,
			  const struct config *config)
{
	static const struct backing_ops ops = {
		.last_reference = unused_reference,
	};
	char error[BACKING_ERROR_BYTES] = "";
	char budget[64];
	struct backing *b = NULL;
	struct backing_stats st;

	if (backing_new(&b,
			&(struct backing_params){
				.mode = (enum backing_kind)config->backing.mode,
				.recycle = true,
				.budget_bytes = config->backing.budget_bytes,
				.n_workers = 1,
				.orders = PROBE_ORDERS,
				.ops = &ops,
			},
			error)) {
		fact(out, json, "backing", false, "none", error);
		return;
	}
	backing_get_stats(b, &st);
	fact(out, json, "backing", !*st.reason, backing_kind_name(st.mode),
	     st.reason);
	fact(out, json, "lifetime", st.lifetime == BACKING_LIFETIME_EXACT,
	     backing_lifetime_name(st.lifetime),
	     st.lifetime == BACKING_LIFETIME_EXACT
		     ? ""
		     : "leases or inotify do not work here");
	snprintf(budget, sizeof(budget), "%llu bytes",
		 (unsigned long long)st.budget_bytes);
	fact(out, json, "budget", st.budget_bytes >= MIB(64), budget,
	     st.budget_bytes >= MIB(64) ? "" : "the host has little memory");
	backing_free(b);
}

/* The host, as far as the backing is concerned. */
static void probe_host(struct strbuf *out, bool json)
{
	struct probe_fact facts[PROBE_FACTS_MAX];
	unsigned int n = backing_probe(facts, PROBE_ORDERS);

	for (unsigned int i = 0; i < n; i++)
		full_fact(out, json, facts[i].name, facts[i].ok, facts[i].value,
			  "",
			  &(struct lack){facts[i].consequence, facts[i].kernel,
					 facts[i].command});
}

int probe_print(struct config *config, bool json)
{
	struct strbuf out = STRBUF_INIT;
	int status = EXIT_SUCCESS;

	backing_process_setup();
	if (json)
		strbuf_append_char(&out, '[');
	probe_loop(&out, json);
	probe_backing(&out, json, config);
	probe_host(&out, json);
	if (json)
		strbuf_append(&out, "]\n");
	if (strbuf_failed(&out) || fputs(strbuf_string(&out), stdout) == EOF ||
	    fflush(stdout) == EOF)
		status = EXIT_FAILURE;
	strbuf_fini(&out);
	config_free(config);
	return status;
}
