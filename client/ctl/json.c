/* SPDX-License-Identifier: MIT */
#include "ctl/json.h"

#include <stdlib.h>
#include <string.h>

int json_show(json_t *root)
{
	int r;

	if (!root)
		return ctl_fail("out of memory");
	/* Six digits: the index of a zone is known to a thousandth. */
	r = json_dumpf(root, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
	json_decref(root);
	putchar('\n');
	return r ? ctl_fail("standard output: cannot write") : CTL_OK;
}

json_t *json_text(const char *text)
{
	json_t *json = json_string(text);
	char *ascii;

	if (json)
		return json;
	ascii = strdup(text);
	for (char *p = ascii; p && *p; p++)
		if ((signed char)*p < 0x20 || *p == 0x7f)
			*p = '?';
	json = ascii ? json_string(ascii) : NULL;
	free(ascii);
	return json;
}

json_t *json_u64(uint64_t value)
{
	return value == UINT64_MAX ? json_null()
				   : json_integer((json_int_t)value);
}

json_t *json_orders(const uint64_t counts[DMAHEAP_ORDER_COUNT])
{
	json_t *array = json_array();

	for (unsigned int i = 0; i < DMAHEAP_ORDER_COUNT; i++)
		json_array_append_new(array, json_u64(counts[i]));
	return array;
}

json_t *json_composition(const uint32_t blocks[DMAHEAP_ORDER_COUNT])
{
	json_t *object = json_object();

	for (int order = DMAHEAP_ORDER_COUNT - 1; order >= 0; order--) {
		char key[4];

		if (blocks[order] == 0 && order != 8 && order != 4 &&
		    order != 0)
			continue;
		snprintf(key, sizeof(key), "%d", order);
		json_object_set_new(object, key, json_integer(blocks[order]));
	}
	return object;
}
