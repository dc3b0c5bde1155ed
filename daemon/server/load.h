/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Load: another node, with heaps of the same names and policies, in the place
 * of the one that runs.
 *
 * Units:     none.
 * Ownership: the server's node and heaps are replaced; texts stay the caller's.
 * Threads:   the loop's.
 */

#include "base/base.h"
#include "conf/files.h"

struct request;
struct server;

/* Return: true while a buffer lives, is being made or being released. */
bool load_is_busy(struct server *server);

/**
 * load_read_texts() - the texts that came as fds of a PRESSURE request
 * @ret: receives them (conf_texts_fini()), on failure too
 *
 * Return: 0, SERVER_E_FIELD (fd_kinds), SERVER_E_CONFIG (not a text, or too
 * long), both with @err.
 */
int load_read_texts(const struct request *request, struct conf_texts *ret,
		    struct conf_error *err) _must_check_;

/**
 * load_node() - replace the node
 * @texts: NULL: the node of the configuration
 * @where: how messages name @texts
 *
 * Parked buffers are dropped. On failure nothing has changed but that.
 * Return: 0, SERVER_E_BUSY, SERVER_E_CONFIG (both with @err), -ENOMEM.
 */
int load_node(struct server *server, const struct conf_texts *texts,
	      const char *where, struct conf_error *err) _must_check_;

/**
 * load_read_fd() - the text in a client's memfd or file
 * @fd: borrowed
 *
 * Return: 0, SERVER_E_CONFIG with @err, -ENOMEM. @ret_text is NUL-terminated
 * and the caller's to free.
 */
int load_read_fd(int fd, const char *name, char **ret_text, size_t *ret_len,
		 struct conf_error *err) _must_check_;
