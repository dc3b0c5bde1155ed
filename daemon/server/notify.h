/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Telling whoever started the daemon how it is: the service manager through
 * $NOTIFY_SOCKET (sd_notify(3)), and a waiting parent through --ready-fd.
 *
 * Ownership: notify_ready_fd() consumes the fd.
 * Threads:   start-up and shutdown, one thread.
 */

#include "base/base.h"

/**
 * notify_manager() - send @state, such as "READY=1", to $NOTIFY_SOCKET
 *
 * Return: 0 (also when the variable is not set), or a negated errno.
 */
int notify_manager(const char *state) _must_check_;

/**
 * notify_ready_fd() - write @text and a newline to @fd, and close it
 *
 * Return: 0 (also when @fd is -1), or a negated errno.
 */
int notify_ready_fd(int fd, const char *text) _must_check_;
