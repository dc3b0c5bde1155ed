/* SPDX-License-Identifier: MIT */
#include "server/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/strbuf.h"
#include "server/config_keys.h"
#include "server/outcome.h"
#include "server/server.h"

/* Holds some 10 000 lines; what a pipe may have without privilege. */
#define TRACE_PIPE_BYTES (1 << 20)

struct reader {
	int fd;
	uint64_t n_lost; /* lines since the last one that fitted */
};

struct trace {
	struct server *server;
	unsigned int n_readers;
	struct reader readers[TRACE_READERS_MAX];
	struct strbuf line;
};

int trace_new(struct trace **ret, struct server *server)
{
	struct trace *t = calloc(1, sizeof(*t));

	if (!t)
		return err_raise(-ENOMEM);
	t->server = server;
	*ret = t;
	return 0;
}

struct trace *trace_free(struct trace *trace)
{
	if (!trace)
		return NULL;
	for (unsigned int i = 0; i < trace->n_readers; i++)
		fd_close(trace->readers[i].fd);
	strbuf_fini(&trace->line);
	free(trace);
	return NULL;
}

/* A line of at most PIPE_BUF bytes goes whole or not at all. Return: false when
 * the reader is gone. */
static bool write_line(struct reader *r, const char *text, size_t n)
{
	char note[64];
	int m;

	if (r->n_lost) {
		m = snprintf(note, sizeof(note),
			     "# %" PRIu64 " lines were lost here\n", r->n_lost);
		if (write(r->fd, note, (size_t)m) == m)
			r->n_lost = 0;
		else if (errno == EPIPE)
			return false;
	}
	if (r->n_lost || n > PIPE_BUF || write(r->fd, text, n) < 0) {
		if (!r->n_lost && n <= PIPE_BUF && errno == EPIPE)
			return false;
		r->n_lost++;
	}
	return true;
}

static void emit(struct trace *t)
{
	const char *text = strbuf_string(&t->line);

	for (unsigned int i = 0; i < t->n_readers;) {
		struct reader *r = &t->readers[i];

		if (write_line(r, text, t->line.len)) {
			i++;
			continue;
		}
		fd_close(r->fd);
		*r = t->readers[--t->n_readers];
	}
}

static struct strbuf *begin_at(struct trace *t, uint64_t time_ns,
			       const char *event)
{
	strbuf_reset(&t->line);
	strbuf_append(&t->line, "%" PRIu64 " %s", time_ns, event);
	return &t->line;
}

static struct strbuf *begin(struct trace *t, const char *event)
{
	return begin_at(t, node_now_ns(t->server->node), event);
}

_printf_(3, 4) static void put(struct trace *t, const char *event,
			       const char *fmt, ...)
{
	struct strbuf *line = begin(t, event);
	va_list ap;

	strbuf_append_char(line, ' ');
	va_start(ap, fmt);
	strbuf_vappend(line, fmt, ap);
	va_end(ap);
	strbuf_append_char(line, '\n');
	emit(t);
}

/* A value of several words is written with commas. */
static void append_words(struct strbuf *out, const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		strbuf_append_char(out, text[i] == ' ' ? ',' : text[i]);
}

/* " KEY=VALUE" for each line "KEY=VALUE" or "KEY = VALUE" with a value. */
static void append_keys(struct strbuf *out, const char *lines)
{
	while (*lines) {
		size_t n = strcspn(lines, "\n");
		size_t key = strcspn(lines, " =");
		const char *value = lines + key;

		value += strspn(value, " =");
		if (value < lines + n) {
			strbuf_append(out, " %.*s=", (int)key, lines);
			append_words(out, value, (size_t)(lines + n - value));
		}
		lines += n + (lines[n] == '\n');
	}
}

static void append_policy(struct strbuf *out, const struct policy *policy)
{
	_cleanup_(strbuf_finip) struct strbuf text = STRBUF_INIT;

	policy_render(policy, &text);
	append_keys(out, strbuf_string(&text));
}

/* What replay needs to build the same node and heaps. */
static void append_preamble(struct server *s, struct strbuf *out)
{
	_cleanup_(strbuf_finip) struct strbuf keys = STRBUF_INIT;
	struct heap *heap;

	for (const struct config_key *k = config_keys; k->name; k++)
		if (!strcmp(k->section, "node"))
			config_key_render(k, s->config, &keys);
	strbuf_append(out, "dmaheap-trace 1\nnode");
	append_keys(out, strbuf_string(&keys));
	for (unsigned int i = 0; (heap = heap_set_get(s->heaps, i)); i++) {
		strbuf_append(out, "\n%" PRIu64 " heap name=%s",
			      node_now_ns(s->node), heap_name(heap));
		append_policy(out, heap_policy(heap));
	}
	strbuf_append_char(out, '\n');
}

int trace_open(struct trace *trace, int *ret_fd)
{
	_cleanup_(strbuf_finip) struct strbuf head = STRBUF_INIT;
	int fds[2];

	if (trace->n_readers == TRACE_READERS_MAX)
		return SERVER_E_BUSY;
	append_preamble(trace->server, &head);
	if (strbuf_failed(&head))
		return err_raise(-ENOMEM);
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return SERVER_E_NO_FD;
	/* Refused above the user's share of pipe pages: then it is shorter. */
	(void)fcntl(fds[1], F_SETPIPE_SZ, TRACE_PIPE_BYTES);
	if (write(fds[1], head.s, head.len) != (ssize_t)head.len) {
		fd_close(fds[0]);
		fd_close(fds[1]);
		return err_raise(-ENOMEM);
	}
	/* The reader may want to wait; only our end must not. */
	(void)fcntl(fds[0], F_SETFL, O_RDONLY);
	trace->readers[trace->n_readers++] = (struct reader){.fd = fds[1]};
	*ret_fd = fds[0];
	return 0;
}

static void append_blocks(struct strbuf *out,
			  const uint32_t composition[POLICY_ORDER_COUNT])
{
	const char *separator = "";

	for (unsigned int n = POLICY_ORDER_COUNT; n-- > 0;) {
		if (!composition[n])
			continue;
		strbuf_append(out, "%s%u:%" PRIu32, separator, n,
			      composition[n]);
		separator = ",";
	}
}

void trace_alloc(struct trace *trace, const struct heap *heap, uid_t uid,
		 const struct heap_request *request,
		 const struct buffer *buffer, int err)
{
	struct strbuf *line;

	if (!trace->n_readers)
		return;
	/* by now the node is at the end of it */
	line = begin_at(trace, request->start_ns, "alloc");
	if (buffer)
		strbuf_append(line, " id=%" PRIu64, buffer->id);
	strbuf_append(line, " heap=%s uid=%u size=%" PRIu64 " status=%d",
		      heap_name(heap), (unsigned int)uid, request->len_bytes,
		      err);
	if (buffer) {
		strbuf_append(line, " blocks=");
		append_blocks(line, buffer->composition);
	}
	strbuf_append(line, " spent_ns=%" PRIu64 " stall_ns=%" PRIu64 "\n",
		      request->spent_ns, request->stall_ns);
	emit(trace);
}

void trace_take(struct trace *trace, const struct buffer *buffer)
{
	if (trace->n_readers)
		put(trace, "take", "id=%" PRIu64 " heap=%s uid=%u", buffer->id,
		    heap_name(buffer->heap), (unsigned int)buffer->uid);
}

void trace_release(struct trace *trace, const struct buffer *buffer)
{
	if (trace->n_readers)
		put(trace, "release", "id=%" PRIu64, buffer->id);
}

void trace_finish(struct trace *trace, uint64_t id, const char *how)
{
	if (trace->n_readers)
		put(trace, "finish", "id=%" PRIu64 " how=%s", id, how);
}

void trace_policy(struct trace *trace, const struct heap *heap)
{
	struct strbuf *line;

	if (!trace->n_readers)
		return;
	line = begin(trace, "policy");
	strbuf_append(line, " heap=%s", heap_name(heap));
	append_policy(line, heap_policy(heap));
	strbuf_append_char(line, '\n');
	emit(trace);
}

void trace_shrink(struct trace *trace, const struct heap *heap,
		  uint64_t to_bytes)
{
	if (trace->n_readers)
		put(trace, "shrink", "heap=%s to=%" PRIu64, heap_name(heap),
		    to_bytes);
}

void trace_refill(struct trace *trace, const struct heap *heap)
{
	if (trace->n_readers)
		put(trace, "refill", "heap=%s", heap_name(heap));
}

void trace_pressure(struct trace *trace, const char *detail)
{
	if (trace->n_readers)
		put(trace, "pressure", "%s", detail);
}
