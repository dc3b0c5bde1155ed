/* SPDX-License-Identifier: MIT */
#include "ctl/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void each_line(char *text, void (*line)(char *line, json_t *root),
		      json_t *root)
{
	char *rest = NULL;

	for (char *l = strtok_r(text, "\n", &rest); l;
	     l = strtok_r(NULL, "\n", &rest))
		line(l, root);
}

int text_verb(struct ctl *ctl, enum dmaheap_node_text which, json_t *root,
	      void (*line)(char *line, json_t *root))
{
	char *text;
	int r = ctl_node_text(ctl, which, &text);

	if (r) {
		json_decref(root);
		return r;
	}
	if (ctl->json) {
		each_line(text, line, root);
		r = json_show(root);
	} else {
		json_decref(root);
		fputs(text, stdout);
	}
	free(text);
	return r;
}

json_t *text_numbers(const char *text)
{
	json_t *array = json_array();

	for (;;) {
		char *end;
		unsigned long long value = strtoull(text, &end, 10);

		if (end == text)
			return array;
		json_array_append_new(array, json_u64(value));
		text = end;
	}
}
