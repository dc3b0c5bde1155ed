/* SPDX-License-Identifier: MIT */
#include "ctl/ctl.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX_BYTES ((size_t)16 << 20) /* no text of a daemon is longer */

static void __attribute__((format(printf, 1, 0)))
complain(const char *format, va_list args)
{
	fflush(stdout);
	fputs("dmaheapctl: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
}

int ctl_fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	complain(format, args);
	va_end(args);
	return CTL_FAILED;
}

int ctl_misuse(const struct ctl *ctl, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	complain(format, args);
	va_end(args);
	fprintf(stderr, "Try \"dmaheapctl %s --help\".\n", ctl->verb->name);
	return CTL_USAGE;
}

const char *ctl_printable(const char *text)
{
	static char buffer[DMAHEAP_ERROR_TEXT_MAX_BYTES];
	size_t i;

	/* UTF-8 passes; what moves the cursor or hides text does not. */
	for (i = 0; text[i] && i < sizeof(buffer) - 1; i++) {
		unsigned char c = (unsigned char)text[i];

		buffer[i] = c < 0x20 || c == 0x7f ? '?' : text[i];
	}
	buffer[i] = '\0';
	return buffer;
}

/* Who named the path may not be who reads this: it says where it came from. */
static int fail_named(const char *path, const char *by, int r)
{
	if (r == -ENOENT || r == -ECONNREFUSED)
		return ctl_fail("no dmaheapd at %s, which %s names: %s (start "
				"one with dmaheapd --socket %s)",
				path, by, strerror(-r), path);
	return ctl_fail("%s, which %s names: %s", path, by, strerror(-r));
}

int ctl_connect(struct ctl *ctl)
{
	const char *named = getenv("DMAHEAP_SOCKET");
	const char *refusal;
	int r;

	if (ctl->dh)
		return CTL_OK;
	r = dmaheap_connect(&ctl->dh, ctl->socket_path);
	if (r == 0)
		return CTL_OK;
	refusal = dmaheap_connect_error();
	if (*refusal)
		return ctl_fail("the daemon refuses the connection: %s (%s)",
				ctl_printable(refusal), strerror(-r));
	if (ctl->socket_path)
		return fail_named(ctl->socket_path, "--socket", r);
	if (named && *named)
		return fail_named(named, "DMAHEAP_SOCKET", r);
	return ctl_fail("no dmaheapd to talk to: %s (start one, or name its "
			"socket with --socket or DMAHEAP_SOCKET)",
			strerror(-r));
}

int ctl_call(struct ctl *ctl, const char *what, struct dmaheap_message *msg)
{
	int r = ctl_connect(ctl);

	if (r)
		return r;
	r = dmaheap_call(ctl->dh, msg);
	if (r == 0)
		return CTL_OK;
	if (msg->error[0])
		return ctl_fail("%s: %s (%s)", what, ctl_printable(msg->error),
				strerror(-r));
	return ctl_fail("%s: %s", what, strerror(-r));
}

/* What a daemon of another mind could leave without end or beyond its array. */
static void bound_stats(struct dmaheap_stats *s)
{
#define END(array) (array)[sizeof(array) - 1] = '\0'
	END(s->daemon.version);
	END(s->daemon.loop);
	END(s->daemon.clock);
	END(s->daemon.latency);
	END(s->daemon.lifetime);
	END(s->backing.mode);
	END(s->backing.reason);
	if (s->node.n_zones > DMAHEAP_STATS_ZONES_MAX)
		s->node.n_zones = DMAHEAP_STATS_ZONES_MAX;
	for (uint32_t i = 0; i < s->node.n_zones; i++)
		END(s->node.zone[i].name);
	if (s->vmstat.n_items > DMAHEAP_STATS_VMSTAT_MAX)
		s->vmstat.n_items = DMAHEAP_STATS_VMSTAT_MAX;
	for (uint64_t i = 0; i < s->vmstat.n_items; i++)
		END(s->vmstat.item[i].name);
	for (uint32_t i = 0; i < s->n_heaps; i++) {
		END(s->heap[i].name);
		END(s->heap[i].policy);
		if (s->heap[i].n_pools > DMAHEAP_ORDER_COUNT)
			s->heap[i].n_pools = DMAHEAP_ORDER_COUNT;
	}
#undef END
}

int ctl_copy_stats(struct ctl *ctl, struct dmaheap_stats **ret)
{
	struct dmaheap_stats *stats = malloc(sizeof(*stats));
	int r;

	if (!stats)
		return -ENOMEM;
	r = dmaheap_stats(ctl->dh, stats);
	if (r) {
		free(stats);
		return r;
	}
	bound_stats(stats);
	*ret = stats;
	return 0;
}

int ctl_stats(struct ctl *ctl, struct dmaheap_stats **ret)
{
	int r = ctl_connect(ctl);

	if (r)
		return r;
	r = ctl_copy_stats(ctl, ret);
	return r ? ctl_fail("stats: %s", strerror(-r)) : CTL_OK;
}

/* Adds one part to @text. Return: NULL after a message. */
static char *append_part(const char *what, char *text, size_t *n_bytes,
			 const struct dmaheap_message *msg,
			 uint64_t *ret_total_bytes)
{
	const struct dmaheap_text_reply *head = msg->reply;
	size_t n = msg->reply_bytes - sizeof(*head);
	char *more;

	if (msg->reply_bytes < sizeof(*head) ||
	    head->offset_bytes != *n_bytes || *n_bytes + n > TEXT_MAX_BYTES) {
		ctl_fail("%s: the daemon's answer makes no sense", what);
		free(text);
		return NULL;
	}
	more = realloc(text, *n_bytes + n + 1);
	if (!more) {
		ctl_fail("%s: out of memory", what);
		free(text);
		return NULL;
	}
	memcpy(more + *n_bytes, head + 1, n);
	*n_bytes += n;
	more[*n_bytes] = '\0';
	*ret_total_bytes = n > 0 ? head->total_bytes : *n_bytes;
	return more;
}

int ctl_text(struct ctl *ctl, const char *what, struct dmaheap_message *msg,
	     uint64_t *offset_at, char **ret)
{
	_Alignas(8) char reply[DMAHEAP_MESSAGE_MAX_BYTES];
	uint64_t total_bytes = 1;
	size_t n_bytes = 0;
	char *text = NULL;

	do {
		msg->reply = reply;
		msg->reply_capacity_bytes = sizeof(reply);
		if (offset_at)
			*offset_at = n_bytes;
		if (ctl_call(ctl, what, msg)) {
			free(text);
			return CTL_FAILED;
		}
		text = append_part(what, text, &n_bytes, msg, &total_bytes);
		if (!text)
			return CTL_FAILED;
	} while (offset_at && n_bytes < total_bytes);
	*ret = text;
	return CTL_OK;
}

int ctl_node_text(struct ctl *ctl, enum dmaheap_node_text which, char **ret)
{
	struct dmaheap_node_req req = {.text = which};
	struct dmaheap_message msg = {.opcode = DMAHEAP_OP_NODE,
				      .payload = &req,
				      .payload_bytes = sizeof(req)};

	return ctl_text(ctl, ctl->verb->name, &msg, &req.offset_bytes, ret);
}
