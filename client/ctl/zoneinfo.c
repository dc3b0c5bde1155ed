/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "ctl/text.h"
#include "ctl/verbs.h"

static json_t *last(json_t *array)
{
	return json_array_get(array, json_array_size(array) - 1);
}

/*
 * "Node 0, zone   Normal" opens a zone and "cpu: 0" a per-CPU list of it; the
 * other lines that end in a number ("pages free     12", "count: 3") belong to
 * what was opened last.
 */
static void convert_line(char *line, json_t *root)
{
	json_t *zone = last(root), *pageset;
	char name[32], *number;
	int node;

	if (sscanf(line, "Node %d, zone %31s", &node, name) == 2) {
		json_array_append_new(root,
				      json_pack("{s:i, s:o, s:[]}", "node",
						node, "zone", json_text(name),
						"pagesets"));
		return;
	}
	number = strrchr(line, ' ');
	if (!zone || !number || sscanf(number, "%*u") == EOF)
		return;
	if (sscanf(line, " pages %31[a-z]", name) != 1 &&
	    sscanf(line, " %31[a-z_]", name) != 1)
		return;
	pageset = last(json_object_get(zone, "pagesets"));
	if (!strcmp(name, "cpu")) {
		pageset = json_object();
		json_array_append_new(json_object_get(zone, "pagesets"),
				      pageset);
	} else if (!strcmp(name, "start_pfn")) {
		pageset = NULL; /* the zone's again */
	}
	json_object_set_new(pageset ? pageset : zone, name,
			    json_integer(strtoll(number, NULL, 10)));
}

static int run(struct ctl *ctl, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return text_verb(ctl, DMAHEAP_NODE_ZONEINFO, json_array(),
			 convert_line);
}

const struct verb verb_zoneinfo = {
	.name = "zoneinfo",
	.arguments = "",
	.summary = "watermarks and per-CPU lists, as /proc/zoneinfo",
	.run = run,
};
