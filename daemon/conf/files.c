/* SPDX-License-Identifier: MIT */
#include "conf/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"

#define FIRST_BYTES 4096u

struct text {
	char *bytes;
	size_t len;
	size_t cap;
};

/* Makes room for one more byte than has been read, and the NUL. */
static int make_room(struct text *text, size_t max_bytes)
{
	size_t cap = text->cap ? 2 * text->cap : FIRST_BYTES;
	char *bytes;

	if (text->len + 2 <= text->cap)
		return 0;
	cap = MIN(cap, max_bytes + 2);
	bytes = realloc(text->bytes, cap);
	if (!bytes)
		return -ENOMEM;
	text->bytes = bytes;
	text->cap = cap;
	return 0;
}

static int read_all(int fd, size_t max_bytes, struct text *text)
{
	for (;;) {
		ssize_t n;
		int r = make_room(text, max_bytes);

		if (r)
			return r;
		n = read(fd, text->bytes + text->len,
			 text->cap - text->len - 1);
		if (n < 0 && errno == EINTR)
			continue;
		else if (n < 0)
			return -errno;
		else if (n == 0)
			return 0;
		text->len += (size_t)n;
		if (text->len > max_bytes)
			return -EFBIG;
	}
}

int conf_read_file(const char *path, size_t max_bytes, char **ret_text,
		   size_t *ret_len)
{
	_cleanup_(fd_closep) int fd = -1;
	struct text text = {0};
	int r;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return -errno;
	r = read_all(fd, max_bytes, &text);
	if (r == 0 && memchr(text.bytes, '\0', text.len))
		r = -EILSEQ;
	if (r) {
		free(text.bytes);
		return r;
	}
	text.bytes[text.len] = '\0';
	*ret_text = text.bytes;
	if (ret_len)
		*ret_len = text.len;
	return 0;
}

void conf_file_error(const char *path, int r, size_t max_bytes,
		     struct conf_error *err)
{
	char max[24];

	if (r == -EFBIG)
		(void)snprintf(err->text, sizeof(err->text),
			       "%s: longer than the %s allowed", path,
			       conf_format_size(max, sizeof(max), max_bytes));
	else if (r == -EILSEQ)
		(void)snprintf(err->text, sizeof(err->text),
			       "%s: contains a NUL byte: not a text", path);
	else
		(void)snprintf(err->text, sizeof(err->text),
			       "%s: cannot be read: %s", path, strerror(-r));
}

static int read_member(const char *dir, const char *name, bool needed,
		       char **ret, struct conf_error *err)
{
	char path[4096];
	int r;

	r = snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (r < 0 || (size_t)r >= sizeof(path))
		r = -ENAMETOOLONG;
	else
		r = conf_read_file(path, CONF_SNAPSHOT_FILE_MAX_BYTES, ret,
				   NULL);
	if (r == 0 || r == -ENOMEM)
		return r;
	if (!needed && (r == -ENOENT || r == -EACCES || r == -EPERM))
		return 0;
	conf_file_error(path, r, CONF_SNAPSHOT_FILE_MAX_BYTES, err);
	return CONF_E_INVALID;
}

int conf_read_snapshot_dir(const char *dir, struct conf_texts *ret,
			   struct conf_error *err)
{
	struct conf_texts texts = CONF_TEXTS_INIT;
	const struct {
		const char *name;
		char **text;
	} members[] = {
		{"buddyinfo", &texts.buddyinfo},
		{"pagetypeinfo", &texts.pagetypeinfo},
		{"zoneinfo", &texts.zoneinfo},
		{"meminfo", &texts.meminfo},
		{"vmstat", &texts.vmstat},
	};

	for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
		int r = read_member(dir, members[i].name, i == 0,
				    members[i].text, err);

		if (r) {
			conf_texts_fini(&texts);
			return r;
		}
	}
	*ret = texts;
	return 0;
}

void conf_texts_fini(struct conf_texts *texts)
{
	free(texts->buddyinfo);
	free(texts->pagetypeinfo);
	free(texts->zoneinfo);
	free(texts->meminfo);
	free(texts->vmstat);
	*texts = (struct conf_texts)CONF_TEXTS_INIT;
}
