/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Whole files into memory, with a limit, and the directory of a snapshot.
 *
 * Units:     *_bytes.
 * Ownership: texts are the caller's; conf_texts_fini() frees them.
 * Threads:   no state.
 */

#include "base/base.h"
#include "conf/ini.h"

#define CONF_SNAPSHOT_FILE_MAX_BYTES (4u << 20)

/**
 * conf_read_file() - read a text file
 * @path:       regular file, pipe or a file of /proc
 * @max_bytes:  more than this is refused
 * @ret_text:   receives the bytes and a NUL after them
 * @ret_len:    receives their number; may be NULL
 *
 * Return: 0, or -EFBIG (longer than @max_bytes), -EILSEQ (contains a NUL),
 * -ENOMEM, or the errno of open() and read().
 */
int conf_read_file(const char *path, size_t max_bytes, char **ret_text,
		   size_t *ret_len) _must_check_;

/* Fills @err with what conf_read_file()'s failure @r means: "path: reason". */
void conf_file_error(const char *path, int r, size_t max_bytes,
		     struct conf_error *err);

/* The files of a snapshot; NULL: that one is not there. */
struct conf_texts {
	char *buddyinfo;
	char *pagetypeinfo;
	char *zoneinfo;
	char *meminfo;
	char *vmstat;
};

#define CONF_TEXTS_INIT                                                        \
	{                                                                      \
		0                                                              \
	}

/**
 * conf_read_snapshot_dir() - read what configs/capture.sh collects
 * @dir:        a directory, /proc for this machine
 *
 * buddyinfo is needed; each of the others is left out when missing or not
 * permitted.
 *
 * Return: 0, CONF_E_INVALID with @err ("dir/buddyinfo: what is wrong"),
 * -ENOMEM.
 */
int conf_read_snapshot_dir(const char *dir, struct conf_texts *ret,
			   struct conf_error *err) _must_check_;

void conf_texts_fini(struct conf_texts *texts);
static inline void conf_texts_finip(struct conf_texts *texts)
{
	conf_texts_fini(texts);
}
