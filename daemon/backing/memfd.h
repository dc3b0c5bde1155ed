/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Memfd: the descriptor discipline that makes "nobody else refers to this
 * buffer" a question the kernel answers.
 *
 * The description that memfd_create() returns is not in the inode's writer
 * count, a reopened one is. So the first is closed, the daemon keeps a reopened
 * one ("own"), and every client gets a reopened one of its own. Then a write
 * lease on own is granted only when no other description exists: no client
 * descriptor, no mapping, none in flight in a socket.
 *
 * Units:     *_bytes.
 * Ownership: descriptors returned are the caller's; those passed in are
 *            borrowed.
 * Threads:   no state.
 */

#include <sys/stat.h>

#include "backing/backing.h"

/**
 * memfd_make() - an empty, sealed memfd of a fixed size, mode 0600
 * @name:    for /proc/PID/maps
 * @hugetlb: of reserved 2 MiB pages
 * @ret_own: receives the daemon's description
 *
 * Return: 0, or the negated errno of the call that failed: -EMFILE and -ENFILE
 * (descriptors), -EFBIG (RLIMIT_FSIZE), -ENOMEM, -ENOSYS or -EINVAL (the kernel
 * has no such memfd), -ENOENT (no /proc).
 */
int memfd_make(const char *name, uint64_t size_bytes, bool hugetlb,
	       int *ret_own) _must_check_;

/**
 * memfd_reopen() - another description of the same file
 * @flags: an access mode; O_CLOEXEC is added
 *
 * Never waits for a lease that somebody else holds.
 *
 * Return: 0, -EWOULDBLOCK (such a lease), or the errno of open().
 */
int memfd_reopen(int fd, uint32_t flags, int *ret_fd) _must_check_;

/* Return: an O_PATH descriptor of this process' /proc/self/fd, for
 * memfd_open_own(), or a negated errno. A child does not inherit its meaning.
 */
int memfd_open_directory(void);

/**
 * memfd_open_own() - memfd_reopen() for each client, as fast as it can be
 * @directory: memfd_open_directory()'s
 * @own:       writable and no lease held: nobody else can have one then, so
 *             the open does not wait
 *
 * Return: 0 or the errno of open().
 */
int memfd_open_own(int directory, int own, uint32_t flags, int *ret_fd)
	_must_check_;

/**
 * memfd_lease_take() - is @own the only description?
 *
 * On success the write lease is held until memfd_lease_give() or close(): an
 * open() by somebody else waits, and is noticed.
 *
 * Return: 0, -EAGAIN (there are others), or the errno of F_SETLEASE.
 */
int memfd_lease_take(int own) _must_check_;

/* Return: true if the lease is still held and nobody waits for its end. */
bool memfd_lease_is_whole(int own);

/* Return: true if it was whole until now. */
bool memfd_lease_give(int own);

/**
 * memfd_claim() - mark the file as a living daemon's
 * @own: the claim lasts as long as this description
 *
 * Return: 0, -EAGAIN (somebody has claimed it already), or the errno of
 * F_OFD_SETLK.
 */
int memfd_claim(int own) _must_check_;

/*
 * Gives back what the kernel has put behind the end: a whole folio of 2 MiB
 * where the host's huge pages for shared memory are at "always" or "force".
 * @ret: receives what fstat() says afterwards
 * Return: 0, or the errno of fstat().
 */
int memfd_trim(int own, uint64_t size_bytes, struct stat *ret) _must_check_;

/* Return: true if every page is there, as far as st_blocks tells. */
bool memfd_is_whole(int own, uint64_t size_bytes);

/* Gives the pages of a range back to the host, even if an O_PATH descriptor
 * keeps the file. Return: 0 or the errno of fallocate(). */
int memfd_punch(int own, uint64_t offset_bytes, uint64_t len_bytes);

/* The attribute user.dmaheap, which only the owner of the file can write.
 * Return: 0, or the errno of fsetxattr(): -EOPNOTSUPP for hugetlb. */
int memfd_write_identity(int own, const struct backing_identity *id);

/**
 * memfd_read_identity() - check a descriptor that a client handed in
 * @error: receives the sentence of a refusal, BACKING_ERROR_BYTES
 *
 * Return: 0, or BACKING_E_FOREIGN.
 */
int memfd_read_identity(int fd, struct backing_identity *ret,
			struct stat *ret_st, char *error) _must_check_;
