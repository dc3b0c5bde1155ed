/* SPDX-License-Identifier: MIT */
#include "run/holders.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "run/maps.h"
#include "run/node.h"
#include "run/target.h"
#include "run/util.h"

static void visit_fds(pid_t pid, holders_visit *visit, void *ctx)
{
	struct holders_held held = {.is_mapping = false};
	char path[64], link[128];
	struct dirent *entry;
	struct stat st;
	DIR *dir;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		int fd = atoi(entry->d_name);

		if (target_fd_link(pid, fd, link, sizeof(link)) < 0 ||
		    strncmp(link, NODE_BUFFER_PREFIX,
			    strlen(NODE_BUFFER_PREFIX)) ||
		    target_fd_stat(pid, fd, &st))
			continue;
		held.fd = fd;
		held.size_bytes = (uint64_t)st.st_size;
		held.link = link;
		held.dev = st.st_dev;
		held.ino = st.st_ino;
		visit(ctx, pid, &held);
	}
	(void)closedir(dir);
}

struct map_search {
	pid_t pid;
	holders_visit *visit;
	void *ctx;
};

static bool visit_area(void *ctx, const struct maps_area *area)
{
	const struct map_search *search = ctx;
	struct holders_held held = {.is_mapping = true};

	if (strncmp(area->path, NODE_BUFFER_PREFIX, strlen(NODE_BUFFER_PREFIX)))
		return true;
	held.size_bytes = area->offset_bytes + area->end - area->start;
	held.link = area->path;
	held.dev = area->dev;
	held.ino = area->ino;
	search->visit(search->ctx, search->pid, &held);
	return true;
}

void holders_of(pid_t pid, holders_visit *visit, void *ctx)
{
	struct map_search search = {.pid = pid, .visit = visit, .ctx = ctx};

	visit_fds(pid, visit, ctx);
	(void)maps_walk(pid, visit_area, &search);
}

static bool descends(pid_t pid, pid_t ancestor)
{
	long parent = pid;

	/* A bound instead of trust: the tree changes under the walk. */
	for (int depth = 0; depth < 1000 && parent > 1; depth++) {
		if (target_status((pid_t)parent, "PPid", &parent))
			return false;
		if (parent == ancestor)
			return true;
	}
	return false;
}

void holders_of_descendants(pid_t ancestor, pid_t except, holders_visit *visit,
			    void *ctx)
{
	struct dirent *entry;
	DIR *dir = opendir("/proc");

	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		pid_t pid = (pid_t)atoi(entry->d_name);

		if (pid > 0 && pid != except && descends(pid, ancestor) &&
		    getsid(pid) != getsid(ancestor))
			holders_of(pid, visit, ctx);
	}
	(void)closedir(dir);
}
