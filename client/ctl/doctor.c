/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "ctl/probe.h"
#include "ctl/table.h"
#include "ctl/verbs.h"

/* What a lack means and what mends it, where the daemon does not say. */
static const struct advice {
	const char *name;
	const char *consequence;
	const char *kernel;
	const char *command;
} advices[] = {
	{"loop", "the epoll loop serves: a few microseconds more a request",
	 "6.1",
	 "sysctl -w kernel.io_uring_disabled=0, or in a container a seccomp "
	 "profile that allows io_uring"},
	{"backing",
	 "buffers are made of smaller pages than they could be; what is in "
	 "them is the same",
	 "6.1 for collapse, 6.11 for folio", "as for folio and collapse here"},
	{"lifetime",
	 "the end of a buffer is noticed late, or only with its connection's",
	 "", "as for leases and inotify here"},
	{"budget", "few or no buffers fit", "",
	 "free memory, raise the cgroup's limit, or set [backing] budget"},
};

static const char *text_of(const json_t *fact, const char *key)
{
	const char *text = json_string_value(json_object_get(fact, key));

	return text ? text : "";
}

static void advise(json_t *fact, const char *key, const char *text)
{
	if (!*text_of(fact, key))
		json_object_set_new(fact, key, json_string(text));
}

/* Every finding gets every key. */
static void complete(json_t *fact)
{
	static const char *const keys[] = {"value", "reason", "consequence",
					   "kernel", "command"};
	const char *name = text_of(fact, "name");

	for (size_t i = 0; i < ARRAY_SIZE(advices); i++) {
		if (json_is_true(json_object_get(fact, "ok")) ||
		    strcmp(advices[i].name, name) != 0)
			continue;
		advise(fact, "consequence", advices[i].consequence);
		advise(fact, "kernel", advices[i].kernel);
		advise(fact, "command", advices[i].command);
	}
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		advise(fact, keys[i], "");
}

static void show_lack(const json_t *fact)
{
	static const struct {
		const char *key, *label;
	} lines[] = {{"reason", "because"},
		     {"consequence", "so"},
		     {"kernel", "needs Linux"},
		     {"command", "run"}};

	printf("\n%s: %s\n", text_of(fact, "name"), text_of(fact, "value"));
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		if (*text_of(fact, lines[i].key))
			printf("  %-11s  %s\n", lines[i].label,
			       text_of(fact, lines[i].key));
}

static void show(const struct ctl *ctl, const json_t *facts)
{
	static const char *const headings[] = {"WHAT", "STATE", "VALUE", NULL};
	struct table *t = table_new(headings);
	json_t *fact;
	size_t i;

	json_array_foreach(facts, i, fact)
	{
		bool ok = json_is_true(json_object_get(fact, "ok"));

		table_cell(t, "%s", text_of(fact, "name"));
		table_cell(t, "%s", ok ? "ok" : "lacking");
		table_cell(t, "%s", text_of(fact, "value"));
		if (!ok)
			table_mark_row(t);
	}
	table_print(t, ctl);
	table_free(t);
	json_array_foreach(facts, i, fact)
	{
		if (!json_is_true(json_object_get(fact, "ok")))
			show_lack(fact);
	}
}

static int run(struct ctl *ctl, int argc, char **argv)
{
	json_t *facts = probe_run(), *fact;
	size_t i;

	(void)argc;
	(void)argv;
	if (!facts)
		return CTL_FAILED;
	json_array_foreach(facts, i, fact) complete(fact);
	if (ctl->json)
		return json_show(facts);
	show(ctl, facts);
	json_decref(facts);
	return CTL_OK;
}

const struct verb verb_doctor = {
	.name = "doctor",
	.arguments = "",
	.summary = "say what this machine lacks, and what mends it",
	.details = "Needs no daemon: it runs \"dmaheapd --probe\". A lack is "
		   "no failure: what is missing\nis replaced by something less "
		   "good, and that is said.",
	.run = run,
};
