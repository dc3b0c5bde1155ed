/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "ctl/ctl.h"
#include "ctl/json.h"
#include "ctl/records.h"
#include "ctl/table.h"
#include "ctl/verbs.h"

static void end_texts(struct dmaheap_heap_record *h)
{
	h->name[sizeof(h->name) - 1] = '\0';
	h->policy[sizeof(h->policy) - 1] = '\0';
	h->aliases[sizeof(h->aliases) - 1] = '\0';
}

static json_t *aliases_json(char *aliases)
{
	json_t *array = json_array();
	char *rest = NULL;

	for (char *word = strtok_r(aliases, " ", &rest); word;
	     word = strtok_r(NULL, " ", &rest))
		json_array_append_new(array, json_text(word));
	return array;
}

static json_t *to_json(struct dmaheap_heap_record *heaps, size_t n)
{
	json_t *array = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(array,
				      json_pack("{s:o, s:o, s:o, s:b}", "name",
						json_text(heaps[i].name),
						"policy",
						json_text(heaps[i].policy),
						"aliases",
						aliases_json(heaps[i].aliases),
						"uncached",
						!!(heaps[i].flags &
						   DMAHEAP_HEAP_UNCACHED)));
	return array;
}

static void show(const struct ctl *ctl, const struct dmaheap_heap_record *heaps,
		 size_t n)
{
	static const char *const headings[] = {"HEAP", "POLICY", "FLAGS",
					       "ALIASES", NULL};
	struct table *t = table_new(headings);

	for (size_t i = 0; i < n; i++) {
		bool uncached = heaps[i].flags & DMAHEAP_HEAP_UNCACHED;

		table_cell(t, "%s", heaps[i].name);
		table_cell(t, "%s", heaps[i].policy);
		table_cell(t, "%s", uncached ? "uncached" : "-");
		table_cell(t, "%s", *heaps[i].aliases ? heaps[i].aliases : "-");
	}
	table_print(t, ctl);
	table_free(t);
}

static int run(struct ctl *ctl, int argc, char **argv)
{
	struct dmaheap_message msg = {.opcode = DMAHEAP_OP_HEAPS};
	struct dmaheap_heap_record *heaps;
	size_t n;
	int r;

	(void)argc;
	(void)argv;
	r = records_fetch(ctl, "heaps", &msg, sizeof(*heaps), (void **)&heaps,
			  &n);
	if (r)
		return r;
	for (size_t i = 0; i < n; i++)
		end_texts(&heaps[i]);
	if (ctl->json)
		r = json_show(to_json(heaps, n));
	else
		show(ctl, heaps, n);
	free(heaps);
	return r;
}

const struct verb verb_heaps = {
	.name = "heaps",
	.arguments = "",
	.summary = "list the heaps with their policies and aliases",
	.run = run,
};
