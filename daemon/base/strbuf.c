/* SPDX-License-Identifier: MIT */
#include "base/strbuf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Either s is NULL and cap 0 (empty), or s holds cap bytes of the memory with a
 * NUL at s[len]. After a failure: s is NULL, cap 0, failed true; the fixed text
 * is shown by strbuf_string() and never becomes s, so nothing can free it.
 */

#define FIRST_CAP 64u

static void *grow(const struct strbuf *sb, size_t new_bytes)
{
	if (sb->memory)
		return sb->memory->resize(sb->memory->ctx, sb->s, sb->cap,
					  new_bytes);
	return realloc(sb->s, new_bytes);
}

static void release(struct strbuf *sb)
{
	if (sb->s && sb->memory)
		(void)sb->memory->resize(sb->memory->ctx, sb->s, sb->cap, 0);
	else
		free(sb->s);
	sb->s = NULL;
	sb->len = 0;
	sb->cap = 0;
}

static void fail(struct strbuf *sb)
{
	release(sb);
	sb->failed = true;
}

static size_t grown_cap(const struct strbuf *sb, size_t need)
{
	size_t cap = sb->cap;

	if (sb->memory && sb->memory->grow_exactly)
		return need;
	cap = cap < FIRST_CAP ? FIRST_CAP : cap + cap / 2;
	return MAX(cap, need);
}

/* Room for @more bytes and the NUL. Return: false when the string failed. */
static bool reserve(struct strbuf *sb, size_t more)
{
	size_t need, cap;
	char *s;

	if (sb->failed)
		return false;
	if (more >= SIZE_MAX / 2 - sb->len) {
		fail(sb);
		return false;
	}
	need = sb->len + more + 1;
	if (need <= sb->cap)
		return true;

	cap = grown_cap(sb, need);
	s = grow(sb, cap);
	if (!s) {
		fail(sb);
		return false;
	}
	sb->s = s;
	sb->cap = cap;
	return true;
}

void strbuf_vappend(struct strbuf *sb, const char *format, va_list args)
{
	size_t room = sb->cap - sb->len;
	va_list again;
	int n;

	if (sb->failed)
		return;

	va_copy(again, args);
	n = vsnprintf(room ? sb->s + sb->len : NULL, room, format, args);
	if (n < 0) {
		fail(sb);
	} else if ((size_t)n < room) {
		sb->len += (size_t)n; /* it fitted: formatted once */
	} else {
		if (room)
			sb->s[sb->len] = '\0';
		if (reserve(sb, (size_t)n)) {
			(void)vsnprintf(sb->s + sb->len, (size_t)n + 1, format,
					again);
			sb->len += (size_t)n;
		}
	}
	va_end(again);
}

void strbuf_append(struct strbuf *sb, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	strbuf_vappend(sb, format, args);
	va_end(args);
}

void strbuf_append_bytes(struct strbuf *sb, const void *bytes, size_t len)
{
	uintptr_t from = (uintptr_t)bytes, start = (uintptr_t)sb->s;
	bool is_own = sb->s && from >= start && from < start + sb->cap;

	if (!reserve(sb, len))
		return;
	if (is_own)
		bytes = sb->s + (from - start);
	if (len)
		memmove(sb->s + sb->len, bytes, len);
	sb->len += len;
	sb->s[sb->len] = '\0';
}

void strbuf_append_string(struct strbuf *sb, const char *s)
{
	strbuf_append_bytes(sb, s, strlen(s));
}

void strbuf_append_char(struct strbuf *sb, char c)
{
	if (!reserve(sb, 1))
		return;
	sb->s[sb->len++] = c;
	sb->s[sb->len] = '\0';
}

const char *strbuf_string(const struct strbuf *sb)
{
	if (sb->failed)
		return STRBUF_FAILED_TEXT;
	return sb->s ? sb->s : "";
}

bool strbuf_failed(const struct strbuf *sb)
{
	return sb->failed;
}

void strbuf_reset(struct strbuf *sb)
{
	sb->len = 0;
	sb->failed = false;
	if (sb->s)
		sb->s[0] = '\0';
}

char *strbuf_steal(struct strbuf *sb)
{
	char *s;

	(void)reserve(sb, 0);
	s = sb->s;
	if (s)
		s[sb->len] = '\0';
	sb->s = NULL;
	sb->len = 0;
	sb->cap = 0;
	return s;
}

void strbuf_fini(struct strbuf *sb)
{
	release(sb);
	sb->failed = false;
}
