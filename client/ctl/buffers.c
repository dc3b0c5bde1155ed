/* SPDX-License-Identifier: MIT */
#include "ctl/buffers.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/holders.h"
#include "ctl/json.h"
#include "ctl/names.h"
#include "ctl/records.h"
#include "ctl/table.h"
#include "ctl/units.h"
#include "ctl/verbs.h"

static bool with_holders, bufinfo;

static const struct option options[] = {
	{.name = "--holders",
	 .kind = OPTION_SWITCH,
	 .value = &with_holders,
	 .help = "name the processes that hold or map each buffer"},
	{.name = "--bufinfo",
	 .kind = OPTION_SWITCH,
	 .value = &bufinfo,
	 .help = "print in the form of the kernel's dma_buf/bufinfo"},
	{0},
};

/* Adds one page to the list. Return: CTL_OK, or CTL_FAILED after a message. */
static int add_page(const struct dmaheap_message *msg,
		    struct dmaheap_buffer_record **list, size_t *n)
{
	const struct dmaheap_buffers_reply *head = msg->reply;
	struct dmaheap_buffer_record *more;

	if (msg->reply_bytes < sizeof(*head) ||
	    head->n_records > DMAHEAP_MESSAGE_MAX_BYTES ||
	    (head->more && head->n_records == 0))
		return ctl_fail("buffers: the daemon's answer makes no sense");
	more = realloc(*list, (*n + head->n_records + 1) * sizeof(*more));
	if (!more)
		return ctl_fail("buffers: out of memory");
	*list = more;
	if (!records_unpack(head + 1, msg->reply_bytes - sizeof(*head),
			    head->n_records, head->record_bytes, sizeof(*more),
			    more + *n))
		return ctl_fail("buffers: the daemon's answer makes no sense");
	for (uint32_t i = 0; i < head->n_records; i++) {
		struct dmaheap_buffer_record *b = &more[(*n)++];

		b->heap[sizeof(b->heap) - 1] = '\0';
		b->name[sizeof(b->name) - 1] = '\0';
	}
	return CTL_OK;
}

int buffers_fetch(struct ctl *ctl, struct dmaheap_buffer_record **ret,
		  size_t *ret_n)
{
	_Alignas(8) char reply[DMAHEAP_MESSAGE_MAX_BYTES];
	const struct dmaheap_buffers_reply *head = (const void *)reply;
	struct dmaheap_buffer_record *list = NULL;
	struct dmaheap_buffers_req req = {0};
	size_t n = 0;

	do {
		struct dmaheap_message msg = {.opcode = DMAHEAP_OP_BUFFERS,
					      .payload = &req,
					      .payload_bytes = sizeof(req),
					      .reply = reply,
					      .reply_capacity_bytes =
						      sizeof(reply)};

		if (ctl_call(ctl, "buffers", &msg) ||
		    add_page(&msg, &list, &n)) {
			free(list);
			return CTL_FAILED;
		}
		/* A list that does not rise would never end. */
		if (n > 0 && list[n - 1].id <= req.after_id && head->more) {
			free(list);
			return ctl_fail("buffers: the daemon repeats itself");
		}
		req.after_id = n > 0 ? list[n - 1].id : 0;
	} while (head->more);
	*ret = list;
	*ret_n = n;
	return CTL_OK;
}

static json_t *holders_json(const struct holders *h, size_t record)
{
	json_t *array = json_array();
	const struct holder *holder;

	for (size_t i = 0; (holder = holders_get(h, record, i)); i++)
		json_array_append_new(array,
				      json_pack("{s:i, s:o, s:i, s:i}", "pid",
						holder->pid, "comm",
						json_text(holder->comm), "fds",
						holder->n_fds, "mappings",
						holder->n_mappings));
	return array;
}

static json_t *buffer_json(const struct dmaheap_buffer_record *b)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:i, s:b, s:o, "
			 "s:o, s:s, s:s}",
			 "id", json_u64(b->id), "heap", json_text(b->heap),
			 "name", json_text(b->name), "size",
			 json_u64(b->size_bytes), "age_ns", json_u64(b->age_ns),
			 "ino", json_u64(b->ino), "uid", json_u64(b->uid),
			 "pid", b->pid, "owner_is_dead", !!b->owner_is_dead,
			 "composition", json_composition(b->blocks), "dev",
			 json_u64(b->dev), "state", names_state(b->state),
			 "backing", names_backing(b->backing));
}

static json_t *to_json(const struct dmaheap_buffer_record *list, size_t n,
		       const struct holders *h)
{
	json_t *array = json_array();

	for (size_t i = 0; i < n; i++) {
		json_t *b = buffer_json(&list[i]);

		if (h)
			json_object_set_new(b, "holders", holders_json(h, i));
		json_array_append_new(array, b);
	}
	return array;
}

static void holders_cell(struct table *t, const struct holders *h,
			 size_t record)
{
	const struct holder *holder;
	char text[512] = "";
	size_t n = 0;

	for (size_t i = 0; (holder = holders_get(h, record, i)); i++) {
		if (n < sizeof(text))
			n += (size_t)snprintf(text + n, sizeof(text) - n,
					      "%s%s[%d] %u fd %u map",
					      i ? ", " : "", holder->comm,
					      holder->pid, holder->n_fds,
					      holder->n_mappings);
	}
	table_cell(t, "%s", n ? text : "-");
}

static void show(const struct ctl *ctl,
		 const struct dmaheap_buffer_record *list, size_t n,
		 const struct holders *h)
{
	const char *const headings[] = {">ID",     "HEAP",
					">SIZE",   ">AGE",
					">UID",    ">PID",
					"OWNER",   "COMPOSITION",
					"BACKING", "STATE",
					"NAME",    h ? "HELD BY" : NULL,
					NULL};
	struct table *t = table_new(headings);
	struct names_composition composition;
	struct units_text text;

	for (size_t i = 0; i < n; i++) {
		const struct dmaheap_buffer_record *b = &list[i];

		table_cell(t, "%ju", (uintmax_t)b->id);
		table_cell(t, "%s", b->heap);
		table_cell(t, "%s", units_size(b->size_bytes, &text));
		table_cell(t, "%s", units_time(b->age_ns, &text));
		table_cell(t, "%u", b->uid);
		table_cell(t, b->pid ? "%d" : "-", b->pid);
		table_cell(t, "%s", b->owner_is_dead ? "dead" : "alive");
		table_cell(t, "%s", names_composition(b->blocks, &composition));
		table_cell(t, "%s", names_backing(b->backing));
		table_cell(t, "%s", names_state(b->state));
		table_cell(t, "%s", b->name[0] ? b->name : "-");
		if (h)
			holders_cell(t, h, i);
		if (b->owner_is_dead)
			table_mark_row(t);
	}
	table_print(t, ctl);
	table_free(t);
	if (h && holders_hidden(h) > 0)
		printf("%u processes could not be looked into\n",
		       holders_hidden(h));
}

/* The columns of the kernel's debugfs file, for tools that read it. */
static void show_bufinfo(const struct dmaheap_buffer_record *list, size_t n)
{
	uint64_t bytes = 0;

	printf("\nDma-buf Objects:\n%-8s\t%-8s\t%-8s\t%-8s\texp_name\t%-8s\t"
	       "name\n",
	       "size", "flags", "mode", "count", "ino");
	for (size_t i = 0; i < n; i++) {
		const struct dmaheap_buffer_record *b = &list[i];

		printf("%08ju\t%08x\t%08x\t%08d\t%s\t%08ju\t%s\n",
		       (uintmax_t)b->size_bytes, 2, 0600, 1, b->heap,
		       (uintmax_t)b->ino,
		       b->name[0] ? ctl_printable(b->name) : "<none>");
		bytes += b->size_bytes;
	}
	printf("\nTotal %zu objects, %ju bytes\n", n, (uintmax_t)bytes);
}

static int search(struct ctl *ctl, const struct dmaheap_buffer_record *list,
		  size_t n, struct holders **ret)
{
	struct dmaheap_hello_reply hello;
	int r = dmaheap_hello(ctl->dh, &hello);

	if (r)
		return ctl_fail("buffers: %s", strerror(-r));
	*ret = holders_find(list, n, hello.daemon_pid);
	return *ret ? CTL_OK : ctl_fail("buffers: cannot search /proc");
}

static int run(struct ctl *ctl, int argc, char **argv)
{
	struct dmaheap_buffer_record *list = NULL;
	struct holders *h = NULL;
	int r = CTL_OK;
	size_t n = 0;

	(void)argc;
	(void)argv;
	if (bufinfo && ctl->json)
		return ctl_misuse(ctl, "--bufinfo and --json exclude each "
				       "other");
	if (buffers_fetch(ctl, &list, &n))
		return CTL_FAILED;
	if (with_holders)
		r = search(ctl, list, n, &h);
	if (r == CTL_OK && bufinfo)
		show_bufinfo(list, n);
	else if (r == CTL_OK && ctl->json)
		r = json_show(to_json(list, n, h));
	else if (r == CTL_OK)
		show(ctl, list, n, h);
	holders_free(h);
	free(list);
	return r;
}

const struct verb verb_buffers = {
	.name = "buffers",
	.arguments = "",
	.summary = "list the buffers, and who holds them",
	.details = "Only your own uid's, unless you may administer the daemon. "
		   "A buffer whose owner\nhas died lives on as long as anyone "
		   "holds it.",
	.options = options,
	.run = run,
};
