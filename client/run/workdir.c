/* SPDX-License-Identifier: MIT */
#include "run/workdir.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run/util.h"

#define LEAF "/dmaheap-run-XXXXXX"

static bool can_make_devices(const char *directory)
{
	char path[WORKDIR_PATH_BYTES + 16];
	bool can;

	(void)snprintf(path, sizeof(path), "%s/probe", directory);
	can = mknod(path, S_IFCHR | 0600, 0) == 0;
	if (can)
		(void)unlink(path);
	return can;
}

static int make_in(const char *parent, struct workdir *workdir)
{
	int n = snprintf(workdir->path, sizeof(workdir->path), "%s" LEAF,
			 parent);

	if (n < 0 || (size_t)n >= sizeof(workdir->path))
		return -ENAMETOOLONG;
	if (!mkdtemp(workdir->path))
		return -errno;
	workdir->has_devices = can_make_devices(workdir->path);
	return 0;
}

int workdir_make(struct workdir *ret)
{
	const char *places[] = {getenv("XDG_RUNTIME_DIR"), "/dev/shm",
				getenv("TMPDIR"), "/tmp", "/var/tmp"};
	int r = -ENOENT;

	for (int wanted = 1; wanted >= 0; wanted--)
		for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
			if (!places[i] || places[i][0] != '/')
				continue;
			r = make_in(places[i], ret);
			if (r)
				continue;
			if (ret->has_devices || !wanted)
				return 0;
			workdir_remove(ret);
		}
	return r;
}

void workdir_remove(const struct workdir *workdir)
{
	(void)rmdir(workdir->path);
}
