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

static json_t *convert(char *text)
{
	json_t *object = json_object();

	text_each_line(text, convert_line, object);
	return object;
}

static int run(struct ctl *ctl, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return text_verb(ctl, DMAHEAP_NODE_VMSTAT, convert);
}

const struct verb verb_vmstat = {
	.name = "vmstat",
	.arguments = "",
	.summary = "the node's counters, in the format of /proc/vmstat",
	.run = run,
};
