/* SPDX-License-Identifier: MIT */
#include "lab/data.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conf/shipped.h"

bool lab_is_path(const char *name)
{
	size_t len = strlen(name);

	return strchr(name, '/') || !strcmp(name, ".") || !strcmp(name, "..") ||
	       (len >= 5 && !strcmp(name + len - 5, ".conf"));
}

bool lab_find(char ret[LAB_PATH_BYTES], const char *kind, const char *name,
	      const char *suffix, const char *beside)
{
	const char *slash;

	if (!lab_is_path(name))
		return conf_find_shipped(ret, kind, name, suffix);
	slash = beside && *name != '/' ? strrchr(beside, '/') : NULL;
	if (!slash)
		return conf_path_exists(ret, "%s", name);
	return conf_path_exists(ret, "%.*s/%s", (int)(slash - beside), beside,
				name);
}

/* Return: true if @name ends in @suffix and is no dot-file; cuts it off. */
static bool cut_suffix(char *name, const char *suffix)
{
	size_t len = strlen(name), n = strlen(suffix);

	if (name[0] == '.' || len <= n || strcmp(name + len - n, suffix) != 0)
		return false;
	name[len - n] = '\0';
	return true;
}

unsigned int lab_list(const char *kind, const char *suffix,
		      void (*fn)(void *ctx, const char *name), void *ctx)
{
	char dir[LAB_PATH_BYTES];
	struct dirent **entries;
	unsigned int count = 0;
	int n;

	if (!conf_find_shipped(dir, kind, "", ""))
		return 0;
	n = scandir(dir, &entries, NULL, alphasort);
	if (n < 0)
		return 0;
	for (int i = 0; i < n; i++) {
		if (cut_suffix(entries[i]->d_name, suffix)) {
			fn(ctx, entries[i]->d_name);
			count++;
		}
		free(entries[i]);
	}
	free(entries);
	return count;
}
