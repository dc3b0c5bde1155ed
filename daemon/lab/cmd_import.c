/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "conf/files.h"
#include "lab/cmd.h"

/*
 * From the text of a kernel's trace (tracefs "trace", or trace-cmd report) with
 * the event dma_heap_stat of Android kernels:
 *
 *   cam-412  [002] ..... 1234.567890: dma_heap_stat: inode=77 len=1048576 ...
 *
 * A positive length is an allocation, a negative one the buffer's end. Other
 * lines are skipped; a line of that event that cannot be read is refused.
 */

#define IMPORT_BYTES_MAX  (1u << 30)
#define IMPORT_EVENT      "dma_heap_stat:"
#define IMPORT_NODE_BYTES GIB(8)

struct live {
	uint64_t inode;
	uint64_t id;
};

struct import {
	const char *file;
	unsigned int line;
	struct strbuf out;
	struct live *live;
	size_t n_live;
	uint64_t next_id;
	uint64_t first_ns;
	uint64_t last_ns;
	uint64_t n_events;
	bool any;
};

static int import_fail(const struct import *im, const char *what)
{
	return lab_fail("%s:%u: " IMPORT_EVENT " %s", im->file, im->line, what);
}

/* "1234.567890:" before the event. Return: false if it is no such time. */
static bool parse_seconds(const char *begin, const char *end, uint64_t *ret_ns)
{
	char word[40];
	uint64_t seconds, fraction, unit = NSEC_PER_SEC;
	size_t len;
	char *dot;

	while (end > begin && (end[-1] == ' ' || end[-1] == ':'))
		end--;
	for (len = 0; end - len > begin && end[-(ptrdiff_t)len - 1] != ' ';)
		len++;
	if (len == 0 || len >= sizeof(word))
		return false;
	memcpy(word, end - len, len);
	word[len] = '\0';
	dot = strchr(word, '.');
	if (!dot || strlen(dot + 1) > 9)
		return false;
	*dot = '\0';
	for (size_t i = strlen(dot + 1); i; i--)
		unit /= 10;
	if (parse_u64(word, &seconds) || parse_u64(dot + 1, &fraction) ||
	    seconds > UINT64_MAX / NSEC_PER_SEC / 4)
		return false;
	*ret_ns = seconds * NSEC_PER_SEC + fraction * unit;
	return true;
}

/* The number after "key="; a '-' before it sets *@negative. */
static bool parse_field(const char *text, const char *key, uint64_t *ret,
			bool *negative)
{
	const char *at = strstr(text, key);
	char word[24];
	size_t len;

	if (!at || at[-1] != ' ')
		return false;
	at += strlen(key);
	*negative = *at == '-';
	at += *negative;
	len = strcspn(at, " ");
	if (len >= sizeof(word))
		return false;
	memcpy(word, at, len);
	word[len] = '\0';
	return parse_u64(word, ret) == 0;
}

static struct live *find_live(struct import *im, uint64_t inode)
{
	for (size_t i = im->n_live; i-- > 0;) {
		if (im->live[i].inode == inode)
			return &im->live[i];
	}
	return NULL;
}

static int import_alloc(struct import *im, uint64_t ns, uint64_t inode,
			uint64_t size)
{
	struct live *live;

	if (find_live(im, inode))
		return import_fail(im, "allocates an inode that is not freed");
	live = reallocarray(im->live, im->n_live + 1, sizeof(*live));
	if (!live)
		return lab_fail("%s", strerror(ENOMEM));
	im->live = live;
	live[im->n_live++] = (struct live){.inode = inode, .id = ++im->next_id};
	strbuf_append(&im->out,
		      "%" PRIu64 " alloc id=%" PRIu64
		      " heap=system uid=0 size=%" PRIu64 "\n",
		      ns, im->next_id, size);
	return LAB_EXIT_OK;
}

/* A buffer that was there before the trace began is not in it. */
static void import_free(struct import *im, uint64_t ns, uint64_t inode)
{
	struct live *live = find_live(im, inode);

	if (!live)
		return;
	strbuf_append(&im->out,
		      "%" PRIu64 " release id=%" PRIu64 "\n%" PRIu64
		      " finish id=%" PRIu64 " how=pool\n",
		      ns, live->id, ns, live->id);
	*live = im->live[--im->n_live];
}

static int import_line(struct import *im, const char *line)
{
	const char *event = strstr(line, IMPORT_EVENT);
	uint64_t ns, inode, len;
	bool negative, inode_negative;

	if (!event)
		return LAB_EXIT_OK;
	if (!parse_seconds(line, event, &ns))
		return import_fail(im, "no time in seconds before it");
	if (!parse_field(event, "inode=", &inode, &inode_negative) ||
	    inode_negative)
		return import_fail(im, "no inode=NUMBER");
	if (!parse_field(event, "len=", &len, &negative) || len == 0 ||
	    len > UINT64_MAX >> 1)
		return import_fail(im, "no len=NUMBER");
	if (!im->any)
		im->first_ns = ns;
	im->any = true;
	if (ns < im->first_ns || ns - im->first_ns < im->last_ns)
		return import_fail(im, "the time falls");
	im->last_ns = ns - im->first_ns;
	im->n_events++;
	if (!negative)
		return import_alloc(im, im->last_ns, inode, len);
	import_free(im, im->last_ns, inode);
	return LAB_EXIT_OK;
}

static int import_text(struct import *im, char *text)
{
	int r = LAB_EXIT_OK;

	strbuf_append(&im->out,
		      "dmaheap-trace 1\n# from %s\n"
		      "node size=%" PRIu64 " profile=arm64-phone\n"
		      "0 heap name=system policy=840-high\n",
		      im->file, IMPORT_NODE_BYTES);
	for (char *at = text; *at && !r;) {
		size_t len = strcspn(at, "\n");
		char *next = at + len + (at[len] == '\n');

		at[len] = '\0';
		im->line++;
		r = import_line(im, at);
		at = next;
	}
	if (!r && !im->any)
		r = lab_fail("%s: no event " IMPORT_EVENT, im->file);
	return r;
}

int cmd_import(int argc, char **argv)
{
	struct import im = {.file = argc == 2 ? argv[1] : NULL};
	char *text = NULL;
	int r;

	if (!im.file || *im.file == '-')
		return lab_usage("import needs one file");
	r = conf_read_file(im.file, IMPORT_BYTES_MAX, &text, NULL);
	if (r)
		return lab_fail("%s: cannot be read: %s", im.file,
				strerror(-r));
	r = import_text(&im, text);
	if (!r)
		r = lab_write(NULL, &im.out);
	free(text);
	free(im.live);
	strbuf_fini(&im.out);
	return r;
}
