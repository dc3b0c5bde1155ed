/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <dmaheap/dmaheap.h>

#include "lib/handle.h"
#include "lib/origin.h"

/* Where the daemon's, or our own, reason of a failure goes; may be NULL. */
struct reason {
	char *text;
	size_t bytes;
};

static _printf_(3, 4) int refuse(const struct reason *why, int r,
				 const char *format, ...)
{
	va_list args;

	if (why->text && why->bytes > 0) {
		va_start(args, format);
		vsnprintf(why->text, why->bytes, format, args);
		va_end(args);
	}
	return r;
}

static int fill_request(struct dmaheap_alloc_req *req, const char *heap,
			const struct reason *why)
{
	if (!heap)
		heap = "system";
	if (strlen(heap) >= sizeof(req->heap_name))
		return refuse(why, -ENOENT,
			      "heap: a name has at most %zu bytes, not %zu",
			      sizeof(req->heap_name) - 1, strlen(heap));
	memcpy(req->heap_name, heap, strlen(heap));
	if (req->count < 1 || req->count > DMAHEAP_ALLOC_MAX_COUNT)
		return refuse(why, -EINVAL, "count: %u is not within 1 to %u",
			      req->count, DMAHEAP_ALLOC_MAX_COUNT);
	return 0;
}

/* A file of at least the length asked for, so that no access can fault. */
static bool is_buffer(int fd, uint64_t len_bytes, struct origin_file *ret)
{
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    (uint64_t)st.st_size < len_bytes)
		return false;
	*ret = (struct origin_file){.dev = st.st_dev, .ino = st.st_ino};
	return true;
}

static bool reply_fits(const struct wire_reply *reply,
		       const struct dmaheap_alloc_reply *head, uint32_t count)
{
	return head->n_records == count && reply->n_fds == count &&
	       head->record_bytes > 0 &&
	       head->record_bytes <= DMAHEAP_MESSAGE_MAX_BYTES &&
	       reply->payload_bytes - sizeof(*head) >=
		       (size_t)head->record_bytes * count;
}

/* A record of another version may be longer or shorter than ours. */
static void copy_report(struct dmaheap_alloc_report *to, const uint8_t *from,
			size_t record_bytes)
{
	memset(to, 0, sizeof(*to));
	memcpy(to, from,
	       record_bytes < sizeof(*to) ? record_bytes : sizeof(*to));
	to->backing_reason[sizeof(to->backing_reason) - 1] = '\0';
}

/* Checks everything first: outputs stay untouched on failure. */
static int take_buffers(struct dmaheap *dh, const struct dmaheap_alloc_req *req,
			struct wire_reply *reply, int *ret_fds,
			struct dmaheap_alloc_report *ret_reports)
{
	struct origin_file files[DMAHEAP_ALLOC_MAX_COUNT];
	struct dmaheap_alloc_reply head;
	const uint8_t *record = reply->payload + sizeof(head);

	if (reply->payload_bytes < sizeof(head))
		return -EPROTO;
	memcpy(&head, reply->payload, sizeof(head));
	if (!reply_fits(reply, &head, req->count))
		return -EPROTO;
	for (uint32_t i = 0; i < req->count; i++)
		if (!is_buffer(reply->fds[i], req->len_bytes, &files[i]))
			return -EPROTO;

	for (uint32_t i = 0; i < req->count; i++) {
		if (!(req->fd_flags & O_CLOEXEC))
			fcntl(reply->fds[i], F_SETFD, 0);
		origin_note(dh->origin, reply->fds[i], files[i]);
		ret_fds[i] = reply->fds[i];
		reply->fds[i] = -1;
		if (ret_reports)
			copy_report(&ret_reports[i], record, head.record_bytes);
		record += head.record_bytes;
	}
	return 0;
}

static int alloc_locked(struct dmaheap *dh, const struct dmaheap_alloc_req *req,
			int *ret_fds, struct dmaheap_alloc_report *ret_reports,
			const struct reason *why)
{
	struct wire_request wire = {.opcode = DMAHEAP_OP_ALLOC,
				    .payload = req,
				    .payload_bytes = sizeof(*req)};
	struct wire_reply reply;
	int r;

	r = handle_request(dh, &wire, &reply);
	if (r)
		return r;
	if (reply.status < 0) {
		if (why->text && why->bytes > 0)
			wire_error_text(&reply, why->text, why->bytes);
		r = reply.status;
	} else {
		r = take_buffers(dh, req, &reply, ret_fds, ret_reports);
	}
	wire_close_fds(&reply);
	if (r == -EPROTO)
		handle_drop(dh);
	return r;
}

static int alloc_common(struct dmaheap *dh, const char *heap,
			struct dmaheap_alloc_req *req, int *ret_fds,
			struct dmaheap_alloc_report *ret_reports,
			const struct reason *why)
{
	int r;

	if (why->text && why->bytes > 0)
		why->text[0] = '\0';
	r = fill_request(req, heap, why);
	if (r)
		return r;
	handle_lock(dh);
	r = alloc_locked(dh, req, ret_fds, ret_reports, why);
	handle_unlock(dh);
	return r;
}

_public_ int dmaheap_alloc_ex(struct dmaheap *dh, const char *heap,
			      uint64_t len_bytes, uint32_t fd_flags,
			      uint64_t heap_flags, uint32_t count, int *ret_fds,
			      struct dmaheap_alloc_report *ret_reports,
			      char *ret_error, size_t error_bytes)
{
	struct dmaheap_alloc_req req = {.len_bytes = len_bytes,
					.heap_flags = heap_flags,
					.fd_flags = fd_flags,
					.count = count};

	return alloc_common(dh, heap, &req, ret_fds, ret_reports,
			    &(struct reason){ret_error, error_bytes});
}

_public_ int dmaheap_alloc_many(struct dmaheap *dh, const char *heap,
				uint64_t len_bytes, uint32_t fd_flags,
				uint64_t heap_flags, uint32_t count,
				int *ret_fds)
{
	return dmaheap_alloc_ex(dh, heap, len_bytes, fd_flags, heap_flags,
				count, ret_fds, NULL, NULL, 0);
}

_public_ int dmaheap_alloc(struct dmaheap *dh, const char *heap,
			   uint64_t len_bytes, uint32_t fd_flags,
			   uint64_t heap_flags)
{
	int fd;
	int r = dmaheap_alloc_many(dh, heap, len_bytes, fd_flags, heap_flags, 1,
				   &fd);

	return r ? r : fd;
}
