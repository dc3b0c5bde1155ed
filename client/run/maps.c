/* SPDX-License-Identifier: MIT */
#include "run/maps.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "run/node.h"

int maps_walk(pid_t pid, maps_visit *visit, void *ctx)
{
	struct maps_area area;
	char path[64], *line = NULL;
	size_t capacity = 0;
	bool more = true;
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	file = fopen(path, "re");
	if (!file)
		return -errno;
	while (more && getline(&line, &capacity, file) > 0) {
		unsigned int major_nr, minor_nr;
		int at = 0;

		if (sscanf(line,
			   "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64
			   " %x:%x %lu %n",
			   &area.start, &area.end, area.perms,
			   &area.offset_bytes, &major_nr, &minor_nr, &area.ino,
			   &at) != 7)
			continue;
		area.dev = makedev(major_nr, minor_nr);
		line[strcspn(line, "\n")] = '\0';
		area.path = line + at;
		more = visit(ctx, &area);
	}
	free(line);
	(void)fclose(file);
	return 0;
}

struct search {
	uint64_t start;
	uint64_t end;
	bool found;
};

static bool is_searched(void *ctx, const struct maps_area *area)
{
	struct search *search = ctx;

	if (area->start >= search->end)
		return false;
	search->found = area->end > search->start &&
			strncmp(area->path, NODE_BUFFER_PREFIX,
				strlen(NODE_BUFFER_PREFIX)) == 0;
	return !search->found;
}

bool maps_has_buffer(pid_t pid, uint64_t start, uint64_t n_bytes)
{
	struct search search = {.start = start, .end = start + n_bytes};

	if (search.end < start)
		search.end = UINT64_MAX;
	(void)maps_walk(pid, is_searched, &search);
	return search.found;
}
