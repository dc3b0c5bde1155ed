/* SPDX-License-Identifier: MIT */
#include "ctl/quota.h"

#include <stdlib.h>

#include "ctl/records.h"
#include "ctl/table.h"
#include "ctl/units.h"
#include "ctl/verbs.h"

int quota_fetch(struct ctl *ctl, struct dmaheap_quota_record **ret,
		size_t *ret_n)
{
	struct dmaheap_message msg = {.opcode = DMAHEAP_OP_QUOTA};

	return records_fetch(ctl, "quota", &msg, sizeof(**ret), (void **)ret,
			     ret_n);
}

json_t *quota_json(const struct dmaheap_quota_record *quota, size_t n)
{
	json_t *array = json_array();

	for (size_t i = 0; i < n; i++) {
		const struct dmaheap_quota_record *q = &quota[i];

		json_array_append_new(
			array,
			json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
				  "s:o}",
				  "uid", json_u64(q->uid), "bytes_used",
				  json_u64(q->bytes_used), "bytes_limit",
				  json_u64(q->bytes_limit), "buffers_used",
				  json_u64(q->buffers_used), "buffers_limit",
				  json_u64(q->buffers_limit),
				  "connections_used",
				  json_u64(q->connections_used),
				  "connections_limit",
				  json_u64(q->connections_limit),
				  "requests_per_s_limit",
				  json_u64(q->requests_per_s_limit), "denied",
				  json_u64(q->denied)));
	}
	return array;
}

static void show(const struct ctl *ctl,
		 const struct dmaheap_quota_record *quota, size_t n)
{
	static const char *const headings[] = {">UID",    ">BYTES",
					       ">OF",     ">BUFFERS",
					       ">OF",     ">CONNECTIONS",
					       ">OF",     ">REQUESTS/S",
					       ">DENIED", NULL};
	struct table *t = table_new(headings);
	struct units_text a, b;

	for (size_t i = 0; i < n; i++) {
		const struct dmaheap_quota_record *q = &quota[i];

		table_cell(t, "%u", q->uid);
		table_cell(t, "%s", units_size(q->bytes_used, &a));
		table_cell(t, "%s", units_size(q->bytes_limit, &b));
		table_cell(t, "%ju", (uintmax_t)q->buffers_used);
		table_cell(t, "%ju", (uintmax_t)q->buffers_limit);
		table_cell(t, "%ju", (uintmax_t)q->connections_used);
		table_cell(t, "%ju", (uintmax_t)q->connections_limit);
		if (q->requests_per_s_limit)
			table_cell(t, "%ju",
				   (uintmax_t)q->requests_per_s_limit);
		else
			table_cell(t, "any");
		table_cell(t, "%ju", (uintmax_t)q->denied);
	}
	table_print(t, ctl);
	table_free(t);
}

static int run(struct ctl *ctl, int argc, char **argv)
{
	struct dmaheap_quota_record *quota;
	size_t n;
	int r;

	(void)argc;
	(void)argv;
	r = quota_fetch(ctl, &quota, &n);
	if (r)
		return r;
	if (ctl->json)
		r = json_show(quota_json(quota, n));
	else
		show(ctl, quota, n);
	free(quota);
	return r;
}

const struct verb verb_quota = {
	.name = "quota",
	.arguments = "",
	.summary = "show what each uid uses and may use",
	.details = "Only your own uid, unless you may administer the daemon.",
	.run = run,
};
