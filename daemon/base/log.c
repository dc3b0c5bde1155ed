/* SPDX-License-Identifier: MIT */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LIMIT_WINDOW_NS (5 * NSEC_PER_SEC)
#define LIMIT_LINES     10u

static const char *const level_names[] = {
	[LOG_LEVEL_ERROR] = "error",
	[LOG_LEVEL_WARN] = "warn",
	[LOG_LEVEL_INFO] = "info",
	[LOG_LEVEL_DEBUG] = "debug",
};

static _Atomic int max_level = LOG_LEVEL_INFO;

void log_set_level(enum log_level level)
{
	atomic_store_explicit(&max_level, (int)level, memory_order_relaxed);
}

enum log_level log_get_level(void)
{
	return (enum log_level)atomic_load_explicit(&max_level,
						    memory_order_relaxed);
}

int log_level_from_name(const char *name, enum log_level *ret_level)
{
	for (size_t i = 0; i < ARRAY_SIZE(level_names); i++) {
		if (!strcmp(name, level_names[i])) {
			*ret_level = (enum log_level)i;
			return 0;
		}
	}
	return -EINVAL;
}

const char *log_level_name(enum log_level level)
{
	return level_names[level];
}

/* Return: how many bytes of @line are the finished line. */
static size_t finish_line(char *line, size_t size, size_t len)
{
	if (len > size - 2) {
		len = size - 2;
		memcpy(line + len - 3, "...", 3);
	}
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
			line[i] = '?';
	line[len++] = '\n';
	return len;
}

void log_line(enum log_level level, const char *format, ...)
{
	char line[LOG_LINE_MAX_BYTES];
	int saved_errno = errno;
	size_t len;
	va_list args;
	int n;

	if (level > log_get_level())
		return;

	len = (size_t)snprintf(line, sizeof(line), "%s ",
			       log_level_name(level));
	va_start(args, format);
	n = vsnprintf(line + len, sizeof(line) - len, format, args);
	va_end(args);
	len = finish_line(line, sizeof(line), len + (n > 0 ? (size_t)n : 0));

	/* A log that cannot be written (disk full) must not stop the daemon. */
	if (write(STDERR_FILENO, line, len) < 0)
		errno = 0;
	errno = saved_errno;
}

/* Return: the bytes that @c takes when quoted, written to @out (4 or less). */
static size_t escape(unsigned char c, char out[5])
{
	if (c == '"' || c == '\\')
		return (size_t)snprintf(out, 5, "\\%c", c);
	else if (c == '\n')
		return (size_t)snprintf(out, 5, "\\n");
	else if (c < ' ' || c >= 0x7f)
		return (size_t)snprintf(out, 5, "\\x%02x", c);
	out[0] = (char)c;
	return 1;
}

const char *log_quote(char *buf, size_t size, const char *s)
{
	const size_t tail = strlen("\"...") + 1;
	size_t len = 0;

	assert(size >= 8);

	buf[len++] = '"';
	for (; s && *s; s++) {
		char part[5];
		size_t n = escape((unsigned char)*s, part);

		if (len + n + tail > size) {
			memcpy(buf + len, "\"...", tail);
			return buf;
		}
		memcpy(buf + len, part, n);
		len += n;
	}
	buf[len++] = '"';
	buf[len] = '\0';
	return buf;
}

bool log_ratelimited(struct log_limit *limit, uint64_t now_ns,
		     uint32_t *ret_suppressed)
{
	if (limit->n_in_window == 0 ||
	    now_ns - limit->window_start_ns >= LIMIT_WINDOW_NS) {
		limit->window_start_ns = now_ns;
		limit->n_in_window = 0;
	}
	if (limit->n_in_window == LIMIT_LINES) {
		limit->n_suppressed++;
		return false;
	}
	limit->n_in_window++;
	if (ret_suppressed)
		*ret_suppressed = limit->n_suppressed;
	limit->n_suppressed = 0;
	return true;
}
