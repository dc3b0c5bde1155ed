/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "ctl/ctl.h"
#include "ctl/json.h"
#include "ctl/verbs.h"

/* The report: "reloaded" or "reloaded; these need a restart: KEYS". */
static const char *keys_of(const char *report)
{
	const char *colon = strstr(report, ": ");

	return colon ? colon + 2 : "";
}

static int show(const struct ctl *ctl, const char *report)
{
	const char *keys = keys_of(report);

	if (ctl->json)
		return json_show(json_pack("{s:b, s:o}", "reloaded", 1,
					   "needs_restart", json_text(keys)));
	if (*keys)
		puts(ctl_printable(report));
	return CTL_OK;
}

static int run(struct ctl *ctl, int argc, char **argv)
{
	char report[DMAHEAP_ERROR_TEXT_MAX_BYTES] = "";
	struct dmaheap_message msg = {.opcode = DMAHEAP_OP_RELOAD,
				      .reply = report,
				      .reply_capacity_bytes =
					      sizeof(report) - 1};

	(void)argc;
	(void)argv;
	if (ctl_call(ctl, "reload", &msg))
		return CTL_FAILED;
	return show(ctl, report);
}

const struct verb verb_reload = {
	.name = "reload",
	.arguments = "",
	.summary = "have the daemon read its config file again",
	.details = "All of it is taken over or, when anything is wrong, "
		   "nothing. What needs a restart\nof the daemon is named. "
		   "Policies become those of the file, whatever \"policy "
		   "set\"\nhas made of them.",
	.run = run,
};
