/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "ctl/text.h"
#include "ctl/verbs.h"

/* "name  active total size per_slab pages_per_slab : tunables ... : slabdata
 * active_slabs slabs shared" */
static void convert_line(char *line, json_t *root)
{
	unsigned long long active, total, size, per_slab, pages;
	unsigned long long active_slabs = 0, slabs = 0;
	char name[64];
	const char *data;

	if (line[0] == '#' ||
	    sscanf(line, "%63s %llu %llu %llu %llu %llu", name, &active, &total,
		   &size, &per_slab, &pages) != 6)
		return;
	data = strstr(line, "slabdata");
	if (data)
		sscanf(data, "slabdata %llu %llu", &active_slabs, &slabs);
	json_array_append_new(
		root,
		json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name",
			  json_text(name), "active_objects", json_u64(active),
			  "objects", json_u64(total), "object_bytes",
			  json_u64(size), "objects_per_slab",
			  json_u64(per_slab), "pages_per_slab", json_u64(pages),
			  "active_slabs", json_u64(active_slabs), "slabs",
			  json_u64(slabs)));
}

static int run(struct ctl *ctl, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return text_verb(ctl, DMAHEAP_NODE_SLABINFO, json_array(),
			 convert_line);
}

const struct verb verb_slabinfo = {
	.name = "slabinfo",
	.arguments = "",
	.summary = "the daemon's object caches, as /proc/slabinfo",
	.run = run,
};
