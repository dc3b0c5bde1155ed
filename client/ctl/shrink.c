/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "ctl/ctl.h"
#include "ctl/json.h"
#include "ctl/units.h"
#include "ctl/verbs.h"

static uint64_t to_bytes;
static const char *heap = "";

static const struct option options[] = {
	{.name = "--to",
	 .kind = OPTION_SIZE,
	 .argument = "SIZE",
	 .value = &to_bytes,
	 .help = "leave so much in the pools (0)"},
	{.name = "--heap",
	 .kind = OPTION_TEXT,
	 .argument = "NAME",
	 .value = &heap,
	 .help = "only this heap's pools (all)"},
	{0},
};

static int run(struct ctl *ctl, int argc, char **argv)
{
	struct dmaheap_shrink_req req = {.to_bytes = to_bytes};
	struct dmaheap_shrink_reply reply = {0};
	struct dmaheap_message msg = {.opcode = DMAHEAP_OP_SHRINK,
				      .payload = &req,
				      .payload_bytes = sizeof(req),
				      .reply = &reply,
				      .reply_capacity_bytes = sizeof(reply)};
	struct units_text freed, left;

	(void)argc;
	(void)argv;
	if (strlen(heap) >= sizeof(req.heap_name))
		return ctl_misuse(ctl, "--heap: \"%s\" is too long", heap);
	strcpy(req.heap_name, heap);
	if (ctl_call(ctl, "shrink", &msg))
		return CTL_FAILED;
	if (ctl->json)
		return json_show(json_pack("{s:I, s:I}", "freed_bytes",
					   (json_int_t)reply.freed_bytes,
					   "pool_bytes",
					   (json_int_t)reply.pool_bytes));
	printf("freed %s, %s left in the pools\n",
	       units_size(reply.freed_bytes, &freed),
	       units_size(reply.pool_bytes, &left));
	return CTL_OK;
}

const struct verb verb_shrink = {
	.name = "shrink",
	.arguments = "[--to SIZE]",
	.summary = "give the pools' blocks back to the node",
	.options = options,
	.run = run,
};
