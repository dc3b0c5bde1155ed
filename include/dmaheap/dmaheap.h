/* SPDX-License-Identifier: MIT */
#ifndef DMAHEAP_H
#define DMAHEAP_H

/*
 * libdmaheap: buffers from dmaheapd, each one a sealed memfd.
 *
 * Units:     *_bytes, *_ns; sizes are rounded up to the daemon's page size.
 * Ownership: every fd returned belongs to the caller; close() it, and when the
 *            last fd and mapping of a buffer are gone it is free. There is no
 *            free call.
 * Threads:   a handle may be used from several threads; requests of one handle
 *            are answered in turn. After fork() the child reconnects by itself
 *            at its first request; fds and mappings are inherited as usual. A
 *            thread must not be cancelled within a call.
 *
 * When the daemon goes away, buffers stay as they are. The next request waits
 * up to 10 s after that for a daemon on the same socket, connects, hands it
 * this process's live buffers when it is a new daemon, and is then sent to it.
 * Not handed over are fds in flight in a socket and, without CAP_SYS_ADMIN or
 * CAP_CHECKPOINT_RESTORE, buffers of which only a mapping is left: those stay
 * valid outside the new daemon's books.
 *
 * Functions that return int give 0 or more on success and a negated errno on
 * failure. These can come from any function that talks to the daemon:
 * -ECONNREFUSED and -ENOENT (no daemon), -ECONNRESET (it went away and did not
 * come back in time, or it hung up twice on this request), -EMFILE (no free fd
 * here; what came was closed), -EPROTO (not a dmaheapd), -ETIMEDOUT (it does
 * not answer a new connection).
 */

#include <stddef.h>
#include <stdint.h>

#include <dmaheap/protocol.h>
#include <dmaheap/stats.h>

#ifdef __cplusplus
extern "C" {
#endif

struct dmaheap;

/**
 * dmaheap_connect() - connect to a daemon
 * @ret:         receives the handle on success; untouched on failure
 * @socket_path: the daemon's socket; NULL: $DMAHEAP_SOCKET, else
 *               $XDG_RUNTIME_DIR/dmaheap.sock, /tmp/dmaheap-<uid>/dmaheap.sock,
 *               /run/dmaheap/dmaheap.sock, the first that accepts
 *
 * A socket that exists and belongs neither to root nor to the caller is not
 * used (-EPERM).
 *
 * Return: 0, or the errors above, -ENOMEM, -ENAMETOOLONG, -EACCES, -EPERM.
 */
int dmaheap_connect(struct dmaheap **ret, const char *socket_path);

/**
 * dmaheap_connect_error() - why the daemon refused
 *
 * Return: the daemon's sentence, if it refused this thread's last attempt to
 * connect (dmaheap_connect(), or a request that connects again), for example
 * with -EDQUOT; else "". It stays until the thread's next attempt.
 */
const char *dmaheap_connect_error(void);

/**
 * dmaheap_socket_path() - which daemon this is
 *
 * Return: the socket that dmaheap_connect() was given or found, which stays
 * the same for as long as the handle lives.
 */
const char *dmaheap_socket_path(const struct dmaheap *dh);

/**
 * dmaheap_close() - give the handle back; buffers are not touched
 *
 * Return: NULL, always. @dh may be NULL. No other thread may still use it.
 */
struct dmaheap *dmaheap_close(struct dmaheap *dh);

/**
 * dmaheap_alloc() - allocate one buffer
 * @dh:         handle
 * @heap:       heap name or alias; NULL: "system"
 * @len_bytes:  > 0
 * @fd_flags:   O_RDONLY, O_WRONLY or O_RDWR, and O_CLOEXEC
 * @heap_flags: must be 0
 *
 * Return: the new fd, or -EINVAL (length, flags), -ENOENT (heap), -ENOMEM
 * (node, budget or host exhausted), -EDQUOT (a quota of the caller's uid), or
 * the errors above.
 */
int dmaheap_alloc(struct dmaheap *dh, const char *heap, uint64_t len_bytes,
		  uint32_t fd_flags, uint64_t heap_flags);

/**
 * dmaheap_alloc_many() - allocate @count buffers of one size in one request
 * @ret_fds: receives @count fds on success; untouched on failure
 *
 * All or nothing; @count is 1..DMAHEAP_ALLOC_MAX_COUNT.
 * Return: 0, or as dmaheap_alloc().
 */
int dmaheap_alloc_many(struct dmaheap *dh, const char *heap, uint64_t len_bytes,
		       uint32_t fd_flags, uint64_t heap_flags, uint32_t count,
		       int *ret_fds);

/**
 * dmaheap_alloc_ex() - dmaheap_alloc_many() with the daemon's report
 * @ret_reports: NULL, or receives @count reports on success
 * @ret_error:   NULL, or receives on failure the daemon's sentence of why, at
 *               most @error_bytes with its NUL; "" when the daemon said nothing
 *
 * Return: as dmaheap_alloc_many().
 */
int dmaheap_alloc_ex(struct dmaheap *dh, const char *heap, uint64_t len_bytes,
		     uint32_t fd_flags, uint64_t heap_flags, uint32_t count,
		     int *ret_fds, struct dmaheap_alloc_report *ret_reports,
		     char *ret_error, size_t error_bytes);

/**
 * dmaheap_map() - map a buffer so that first touch is cheap
 * @fd:        borrowed
 * @len_bytes: > 0
 * @prot:      PROT_READ, PROT_WRITE
 *
 * The address is congruent to the file offset modulo 2 MiB and the pages are
 * mapped in before it returns. munmap() frees.
 *
 * Return: the address, or MAP_FAILED and errno as of mmap(); EINVAL also when
 * @len_bytes is more than the buffer has, or a part of a page of hugetlb's.
 */
void *dmaheap_map(int fd, size_t len_bytes, int prot);

/**
 * dmaheap_sync() - DMA_BUF_IOCTL_SYNC for a buffer
 * @fd:    borrowed
 * @flags: DMA_BUF_SYNC_* of <linux/dma-buf.h>
 *
 * Memory here is always coherent: only the arguments are checked, as the kernel
 * checks them.
 *
 * Return: 0, -EBADF, -EINVAL (flags), -ENOTTY (not a buffer).
 */
int dmaheap_sync(int fd, uint64_t flags);

/**
 * dmaheap_set_name() - name a buffer, for every holder to see
 * @fd:   borrowed
 * @name: at most 31 bytes, "" clears
 *
 * Return: 0, -EINVAL (longer), -ENOTTY (not a buffer of this daemon), or the
 * errors above.
 */
int dmaheap_set_name(struct dmaheap *dh, int fd, const char *name);

/**
 * dmaheap_stats() - a consistent copy of the daemon's stats segment
 * @ret: receives the copy; each section is consistent in itself
 *
 * The segment is mapped at the first call and kept with the handle.
 * Return: 0, -EPROTO (another layout), -EBUSY (a section never settled), or the
 * errors above.
 */
int dmaheap_stats(struct dmaheap *dh, struct dmaheap_stats *ret);

/**
 * dmaheap_hello() - what the daemon said of itself when the handle connected
 *
 * Return: 0, or the errors above when it has to reconnect first.
 */
int dmaheap_hello(struct dmaheap *dh, struct dmaheap_hello_reply *ret);

/* A request of protocol.h and its answer, for dmaheap_call(). */
struct dmaheap_message {
	uint16_t opcode;
	const void *payload; /* the opcode's struct and tail; may be NULL */
	size_t payload_bytes;
	const int *fds; /* borrowed; sent along */
	size_t n_fds;
	/* The answer. */
	void *reply; /* the caller's buffer; may be NULL */
	size_t reply_capacity_bytes;
	size_t reply_bytes; /* set to what was stored */
	int *reply_fds;     /* the caller's array; may be NULL */
	size_t reply_fds_capacity;
	size_t n_reply_fds;                       /* set to what was stored */
	char error[DMAHEAP_ERROR_TEXT_MAX_BYTES]; /* set: "" or the reason */
};

/**
 * dmaheap_call() - send any request of protocol.h and wait for its answer
 * @msg: see the struct; everything that it points to stays the caller's
 *
 * Fds that do not fit @reply_fds_capacity are closed; the others are
 * close-on-exec.
 *
 * Return: 0, -EINVAL (too long or too many fds for one message), -EMSGSIZE (the
 * reply is longer than its buffer; what fits is there), the daemon's status, or
 * the errors above.
 */
int dmaheap_call(struct dmaheap *dh, struct dmaheap_message *msg);

#ifdef __cplusplus
}
#endif

#endif
