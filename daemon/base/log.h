/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Log lines on standard error: "LEVEL message", one line and one write() each,
 * the message by custom a list of key=value.
 *
 * Units:     now_ns and interval_ns are nanoseconds of any one clock.
 * Ownership: nothing is kept.
 * Threads:   any thread may log; lines never mix. The level is atomic.
 *
 * Only daemon/server, daemon/lab and daemon/ipc log; a lower layer returns its
 * errors. Text that came from a client goes through log_quote() first.
 */

#include "base/base.h"

enum log_level {
	LOG_LEVEL_ERROR,
	LOG_LEVEL_WARN,
	LOG_LEVEL_INFO,
	LOG_LEVEL_DEBUG,
};

#define LOG_LINE_MAX_BYTES 1024u /* longer lines end in "..." */

/* Lines above @level are not written. The default is LOG_LEVEL_INFO. */
void log_set_level(enum log_level level);
enum log_level log_get_level(void);

/* Return: 0, or -EINVAL when @name is none of error, warn, info, debug. */
int log_level_from_name(const char *name, enum log_level *ret_level)
	_must_check_;

/* Return: "error", "warn", "info" or "debug". */
const char *log_level_name(enum log_level level);

/* Control characters in the message become '?'. Keeps errno. */
void log_line(enum log_level level, const char *format, ...) _printf_(2, 3);

#define log_error(...) log_line(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warn(...)  log_line(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_info(...)  log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_LEVEL_DEBUG, __VA_ARGS__)

/**
 * log_quote() - a foreign string in double quotes, safe to print
 * @buf:        receives the text, always NUL-terminated
 * @size:       of @buf in bytes, >= 8
 * @s:          may be NULL, printed as "" then
 *
 * Quotes, backslashes and bytes outside printable ASCII become escapes; what
 * does not fit is cut and marked by "..." after the closing quote.
 *
 * Return: @buf.
 */
const char *log_quote(char *buf, size_t size, const char *s);

/* A limit on lines that a client can cause; all zero at first. */
struct log_limit {
	uint64_t window_start_ns;
	uint32_t n_in_window;
	uint32_t n_suppressed;
};

/**
 * log_ratelimited() - may this line be written?
 * @limit:      one per kind of line; used by one thread
 * @now_ns:     the time
 * @ret_suppressed: receives how many lines were held back since the last one
 *              that was not; may be NULL
 *
 * Lets 10 lines through per 5 seconds.
 *
 * Return: true if the line may be written.
 */
bool log_ratelimited(struct log_limit *limit, uint64_t now_ns,
		     uint32_t *ret_suppressed);
