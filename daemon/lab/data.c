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

/* Return: true if the text fits and names something that exists. */
static bool _printf_(2, 3)
	path_exists(char ret[LAB_PATH_BYTES], const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(ret, LAB_PATH_BYTES, format, args);
	va_end(args);
	return n > 0 && n < (int)LAB_PATH_BYTES && access(ret, R_OK) == 0;
}

/* Return: true if one of the directories has @kind/@name@suffix. */
static bool find_shipped(char ret[LAB_PATH_BYTES], const char *kind,
			 const char *name, const char *suffix)
{
	const char *dir = getenv("DMAHEAP_DATA_DIR");
	char exe[LAB_PATH_BYTES];
	ssize_t n;

	if (dir && *dir)
		return path_exists(ret, "%s/%s/%s%s", dir, kind, name, suffix);
	n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	if (n < 0)
		return false;
	exe[n] = '\0';
	for (char *slash = strrchr(exe, '/'); slash;
	     slash = strrchr(exe, '/')) {
		*slash = '\0';
		if (path_exists(ret, "%s/configs/%s/%s%s", exe, kind, name,
				suffix) ||
		    path_exists(ret, "%s/share/dmaheap/%s/%s%s", exe, kind,
				name, suffix))
			return true;
	}
	return false;
}

bool lab_find(char ret[LAB_PATH_BYTES], const char *kind, const char *name,
	      const char *suffix, const char *beside)
{
	const char *slash;

	if (!strchr(name, '/') && strcmp(name, ".") && strcmp(name, ".."))
		return find_shipped(ret, kind, name, suffix);
	slash = beside && *name != '/' ? strrchr(beside, '/') : NULL;
	if (!slash)
		return path_exists(ret, "%s", name);
	return path_exists(ret, "%.*s/%s", (int)(slash - beside), beside, name);
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

	if (!find_shipped(dir, kind, "", ""))
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
