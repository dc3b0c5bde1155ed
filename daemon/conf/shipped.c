/* SPDX-License-Identifier: MIT */
#include "conf/shipped.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool conf_path_exists(char ret[CONF_PATH_BYTES], const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(ret, CONF_PATH_BYTES, format, args);
	va_end(args);
	return n > 0 && n < (int)CONF_PATH_BYTES && access(ret, R_OK) == 0;
}

bool conf_find_shipped(char ret[CONF_PATH_BYTES], const char *kind,
		       const char *name, const char *suffix)
{
	const char *dir = getenv("DMAHEAP_DATA_DIR");
	char exe[CONF_PATH_BYTES];
	ssize_t n;

	if (dir && *dir)
		return conf_path_exists(ret, "%s/%s/%s%s", dir, kind, name,
					suffix);
	n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	if (n < 0)
		return false;
	exe[n] = '\0';
	for (char *slash = strrchr(exe, '/'); slash;
	     slash = strrchr(exe, '/')) {
		*slash = '\0';
		if (conf_path_exists(ret, "%s/configs/%s/%s%s", exe, kind, name,
				     suffix) ||
		    conf_path_exists(ret, "%s/share/dmaheap/%s/%s%s", exe, kind,
				     name, suffix))
			return true;
	}
	return false;
}
