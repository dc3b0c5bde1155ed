/* SPDX-License-Identifier: MIT */
#include "ctl/text.h"
#include "ctl/verbs.h"

static void convert_line(char *line, json_t *root)
{
	unsigned long long value;
	char name[64];

	if (sscanf(line, "%63s %llu", name, &value) == 2)
		json_object_set_new(root, name, json_u64(value));
}

static int run(struct ctl *ctl, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return text_verb(ctl, DMAHEAP_NODE_VMSTAT, json_object(), convert_line);
}

const struct verb verb_vmstat = {
	.name = "vmstat",
	.arguments = "",
	.summary = "the node's counters, in the format of /proc/vmstat",
	.run = run,
};
