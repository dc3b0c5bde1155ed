/* SPDX-License-Identifier: MIT */
#include "ctl/ctl.h"
#include "ctl/json.h"
#include "ctl/verbs.h"

static int run(struct ctl *ctl, int argc, char **argv)
{
	struct dmaheap_message msg = {.opcode = DMAHEAP_OP_RELOAD};

	(void)argc;
	(void)argv;
	if (ctl_call(ctl, "reload", &msg))
		return CTL_FAILED;
	return ctl->json ? json_show(json_pack("{s:b}", "reloaded", 1))
			 : CTL_OK;
}

const struct verb verb_reload = {
	.name = "reload",
	.arguments = "",
	.summary = "have the daemon read its config file again",
	.details = "All of it is taken over or, when anything is wrong, "
		   "nothing.",
	.run = run,
};
