/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A growing string that needs no error check between its appends.
 *
 * When memory runs out, what was built is freed, the string becomes a fixed
 * text that says so, and every later append does nothing: the caller checks
 * once, at the end.
 *
 * Units:     len and cap are bytes; len leaves out the NUL, cap includes it.
 * Ownership: the struct owns its bytes; strbuf_fini() frees them, and
 *            strbuf_steal() hands them on. A struct strbuf that is all zero is
 *            an empty string.
 * Threads:   one string is used by one thread.
 */

#include <stdarg.h>

#include "base/base.h"

/* The content of a string that failed. Never freed. */
#define STRBUF_FAILED_TEXT "(out of memory)"

/*
 * Where bytes come from when not from malloc(): an arena, size classes, a test
 * that injects failures.
 *
 * resize(): as realloc(): @old may be NULL (then @old_bytes is 0), @new_bytes 0
 * frees and returns NULL; otherwise NULL means no memory, @old being untouched.
 */
struct strbuf_memory {
	void *(*resize)(void *ctx, void *old, size_t old_bytes,
			size_t new_bytes);
	void *ctx;
	bool grow_exactly; /* to the byte, not in proportion: see experiments */
};

struct strbuf {
	char *s; /* NULL, or NUL-terminated */
	size_t len;
	size_t cap;
	bool failed;
	const struct strbuf_memory *memory; /* NULL: the C library's */
};

#define STRBUF_INIT                                                            \
	{                                                                      \
		0                                                              \
	}

/* Appends text formatted as by printf(). @sb's own text may be an argument
 * only if it need not grow. */
void strbuf_append(struct strbuf *sb, const char *format, ...) _printf_(2, 3);
void strbuf_vappend(struct strbuf *sb, const char *format, va_list args)
	_printf_(2, 0);

/* Appends @len bytes, which may hold NULs and may lie in @sb itself. */
void strbuf_append_bytes(struct strbuf *sb, const void *bytes, size_t len);

/* Appends @s, which must not be NULL. */
void strbuf_append_string(struct strbuf *sb, const char *s);
void strbuf_append_char(struct strbuf *sb, char c);

/* Return: the text, never NULL, valid until the next append. */
const char *strbuf_string(const struct strbuf *sb);

/* Return: true if memory ran out since the string was empty. */
bool strbuf_failed(const struct strbuf *sb);

/* Makes it empty again, and no longer failed; keeps its memory. */
void strbuf_reset(struct strbuf *sb);

/**
 * strbuf_steal() - take the bytes out; the string is empty afterwards
 *
 * Return: the NUL-terminated text, to be freed by free() (or by the memory's
 * resize()), or NULL if the string had failed or no memory for an empty one.
 */
char *strbuf_steal(struct strbuf *sb);

/* Frees. Safe on an empty, a failed and an already freed string. */
void strbuf_fini(struct strbuf *sb);

/* For _cleanup_(). */
static inline void strbuf_finip(struct strbuf *sb)
{
	strbuf_fini(sb);
}
