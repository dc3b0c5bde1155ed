/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "ctl/text.h"
#include "ctl/verbs.h"

/* "Node    0, zone   Normal, type    Unmovable      1      0 ..." */
static bool convert_free(const char *line, json_t *root)
{
	char zone[32], type[32];
	int node, end = 0;

	if (sscanf(line, "Node %d, zone %31[^,], type %31s%n", &node, zone,
		   type, &end) != 3)
		return false;
	json_array_append_new(json_object_get(root, "free"),
			      json_pack("{s:i, s:o, s:o, s:o}", "node", node,
					"zone", json_text(zone), "type",
					json_text(type), "free_blocks",
					text_numbers(line + end)));
	return true;
}

/* "Number of blocks type     Unmovable      Movable ..." */
static void remember_types(const char *line, json_t *root)
{
	json_t *types = json_array();
	char type[32];
	int n = 0;

	for (; sscanf(line, "%31s%n", type, &n) == 1; line += n)
		json_array_append_new(types, json_text(type));
	json_object_set_new(root, "block_types", types);
}

/* "Node 0, zone   Normal          100          200 ..." */
static void convert_blocks(const char *line, json_t *root)
{
	char zone[32];
	int node, end = 0;

	if (sscanf(line, "Node %d, zone %31s%n", &node, zone, &end) == 2)
		json_array_append_new(json_object_get(root, "blocks"),
				      json_pack("{s:i, s:o, s:o}", "node", node,
						"zone", json_text(zone),
						"blocks",
						text_numbers(line + end)));
}

static void convert_line(char *line, json_t *root)
{
	static const char blocks[] = "Number of blocks type";

	if (!strncmp(line, blocks, strlen(blocks)))
		remember_types(line + strlen(blocks), root);
	else if (!convert_free(line, root))
		convert_blocks(line, root);
}

static int run(struct ctl *ctl, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return text_verb(ctl, DMAHEAP_NODE_PAGETYPEINFO,
			 json_pack("{s:[], s:[], s:[]}", "free", "block_types",
				   "blocks"),
			 convert_line);
}

const struct verb verb_pagetypeinfo = {
	.name = "pagetypeinfo",
	.arguments = "",
	.summary = "free blocks by migrate type, as /proc/pagetypeinfo",
	.run = run,
};
