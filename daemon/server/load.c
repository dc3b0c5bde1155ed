/* SPDX-License-Identifier: MIT */
#include "server/load.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "server/live.h"
#include "server/model.h"
#include "server/outcome.h"
#include "server/server.h"
#include "server/session.h"

bool load_is_busy(struct server *server)
{
	const struct buffer *b;

	if (server->n_recycling || !list_is_empty(&server->allocs))
		return true;
	b = heap_set_next_buffer(server->heaps, 0);
	for (; b; b = heap_set_buffer_after(server->heaps, b))
		if (b->state != BUFFER_PARKED)
			return true;
	return false;
}

static int bad(struct conf_error *err, const char *name, const char *what)
{
	snprintf(err->text, sizeof(err->text), "%s: %s", name, what);
	return SERVER_E_CONFIG;
}

int load_read_fd(int fd, const char *name, char **ret_text, size_t *ret_len,
		 struct conf_error *err)
{
	const int seals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW;
	struct stat st;
	size_t n;
	char *text;
	int has;

	/* Only memory that cannot change or block is worth reading here; of a
	 * stranger's file even fstat() may wait, so the seals come first. */
	has = fcntl(fd, F_GET_SEALS);
	if (has < 0 || (has & seals) != seals || fstat(fd, &st) < 0 ||
	    !S_ISREG(st.st_mode))
		return bad(err, name,
			   "the fd must be a memfd sealed against writing, "
			   "shrinking and growing");
	if (st.st_size > (off_t)CONF_SNAPSHOT_FILE_MAX_BYTES)
		return bad(err, name, "longer than 4 MiB");
	n = (size_t)st.st_size;
	text = malloc(n + 1);
	if (!text)
		return err_raise(-ENOMEM);
	if (pread(fd, text, n, 0) != (ssize_t)n || memchr(text, '\0', n)) {
		free(text);
		return bad(err, name, "cannot be read as a text");
	}
	text[n] = '\0';
	*ret_text = text;
	*ret_len = n;
	return 0;
}

static char **text_of_kind(struct conf_texts *texts, uint8_t kind,
			   const char **ret_name)
{
	static const char *const names[] = {
		[DMAHEAP_TEXT_BUDDYINFO] = "buddyinfo",
		[DMAHEAP_TEXT_PAGETYPEINFO] = "pagetypeinfo",
		[DMAHEAP_TEXT_ZONEINFO] = "zoneinfo",
		[DMAHEAP_TEXT_MEMINFO] = "meminfo",
		[DMAHEAP_TEXT_VMSTAT] = "vmstat",
	};
	char **const members[] = {
		[DMAHEAP_TEXT_BUDDYINFO] = &texts->buddyinfo,
		[DMAHEAP_TEXT_PAGETYPEINFO] = &texts->pagetypeinfo,
		[DMAHEAP_TEXT_ZONEINFO] = &texts->zoneinfo,
		[DMAHEAP_TEXT_MEMINFO] = &texts->meminfo,
		[DMAHEAP_TEXT_VMSTAT] = &texts->vmstat,
	};

	if (kind >= ARRAY_SIZE(members) || !members[kind])
		return NULL;
	*ret_name = names[kind];
	return members[kind];
}

int load_read_texts(const struct request *request, struct conf_texts *ret,
		    struct conf_error *err)
{
	const uint8_t *kinds = request->codec.body.pressure.fd_kinds;

	for (size_t i = 0; i < request->n_fds; i++) {
		const char *name = "fd_kinds";
		char **member = text_of_kind(ret, kinds[i], &name);
		size_t len;
		int r;

		if (!member || *member) {
			bad(err, name, "not allowed here, or there twice");
			return SERVER_E_FIELD;
		}
		r = load_read_fd(request->fds[i], name, member, &len, err);
		if (r)
			return r;
	}
	if (!ret->buddyinfo)
		return bad(err, "buddyinfo", "is needed");
	return 0;
}

/* The policies in force may not be the config's any more. */
static void keep_policies(struct heap_set *from, struct heap_set *to)
{
	struct heap *heap;

	for (unsigned int i = 0; (heap = heap_set_get(to, i)); i++) {
		const struct heap *old = heap_set_find(from, heap_name(heap));

		if (old)
			heap_set_policy(heap, heap_policy(old));
	}
}

static void drop_parked(struct server *s)
{
	struct heap *heap;

	for (unsigned int i = 0; (heap = heap_set_get(s->heaps, i)); i++)
		(void)heap_shrink(heap, 0);
}

int load_node(struct server *server, const struct conf_texts *texts,
	      const char *where, struct conf_error *err)
{
	_cleanup_(node_freep) struct node *node = NULL;
	_cleanup_(heap_set_freep) struct heap_set *heaps = NULL;
	int r;

	if (load_is_busy(server)) {
		bad(err, "load", "buffers are live, being made or released");
		return SERVER_E_BUSY;
	}
	r = model_node_new(&node, server->config, texts, where, err);
	if (!r)
		r = model_heaps_new(&heaps, node, server->config,
				    &live_heap_ops, server, err);
	if (r)
		return r == MODEL_E_INVALID ? SERVER_E_CONFIG : err_trace(r);
	drop_parked(server);
	keep_policies(server->heaps, heaps);
	server_enter_heaps(server, heaps);
	heap_set_free(server->heaps);
	node_free(server->node);
	server->heaps = TAKE_PTR(heaps);
	server->node = TAKE_PTR(node);
	server->node_start_ns = clock_now_ns();
	server->node_bytes = model_node_bytes(server->node);
	server_apply_quota(server);
	return 0;
}
