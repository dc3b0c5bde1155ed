/* SPDX-License-Identifier: MIT */
#include "ctl/text.h"
#include "ctl/verbs.h"

/* "Node 0, zone   Normal      1      0 ..." */
static void convert_line(char *line, json_t *root)
{
	char zone[32];
	int node, end = 0;

	if (sscanf(line, "Node %d, zone %31s%n", &node, zone, &end) != 2)
		return;
	json_array_append_new(root,
			      json_pack("{s:i, s:o, s:o}", "node", node, "zone",
					json_text(zone), "free_blocks",
					text_numbers(line + end)));
}

static int run(struct ctl *ctl, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return text_verb(ctl, DMAHEAP_NODE_BUDDYINFO, json_array(),
			 convert_line);
}

const struct verb verb_buddyinfo = {
	.name = "buddyinfo",
	.arguments = "",
	.summary = "the node's free blocks, in the format of /proc/buddyinfo",
	.run = run,
};
