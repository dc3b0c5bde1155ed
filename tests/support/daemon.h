/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A real dmaheapd on a socket in a directory of its own, for tests.
 *
 * Units:     none.
 * Ownership: daemon_start() owns the directory, the process and its log until
 *            daemon_stop() or daemon_kill().
 * Threads:   one.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define DAEMON_ANY_UID ((uid_t)-1)

struct daemon {
	pid_t pid; /* 0: does not run */
	char dir[64];
	char socket[96];
	char config[96];
	char log[96];
	int status; /* of wait(), once it has ended */
};

struct daemon_options {
	const char *config; /* text of the file; NULL: empty */
	const char *loop;   /* "uring", "epoll"; NULL: auto */
	uid_t uid;       /* run as this user; 0 or DAEMON_ANY_UID: as we are */
	uint64_t nofile; /* RLIMIT_NOFILE, soft and hard; 0: as it is */
	bool keep_dir;   /* in the directory of an ended daemon */
	const char *stderr_path; /* instead of its log */
	bool no_socket;          /* without --socket: the search decides */
	char *const *env;        /* more NAME=VALUE, ends with NULL; or NULL */
	const char *const *args; /* more of its command line; or NULL */
	char *const *wrap; /* words before dmaheapd, such as strace; or NULL */
};

/**
 * daemon_start() - start one and wait until it is ready
 *
 * Return: true; false when it ended instead: daemon_log_text() says why, and
 * daemon_stop() cleans up.
 */
bool daemon_start(struct daemon *daemon, const struct daemon_options *options);

/* SIGTERM, wait, remove the directory. Return: true if it ended with 0. */
bool daemon_stop(struct daemon *daemon);

/* SIGKILL and wait; socket file and directory stay. */
void daemon_kill(struct daemon *daemon);

/* Writes the config file again. */
void daemon_write_config(const struct daemon *daemon, const char *text);

/* Everything it wrote to standard error. The caller's to free. */
char *daemon_log_text(const struct daemon *daemon);

/* Waits until @text is in the log, at most 5 s. Return: true if it came. */
bool daemon_log_wait(const struct daemon *daemon, const char *text);

/* Open descriptors and inotify watches of a process, 0 for our own. */
unsigned int count_fds(pid_t pid);
unsigned int count_watches(pid_t pid);

/* Tests @condition every millisecond, at most @timeout_ms. Return: whether it
 * came true. */
bool wait_until(bool (*condition)(void *ctx), void *ctx,
		unsigned int timeout_ms);

/* Return: whether an io_uring can be made here. */
bool uring_works(void);
