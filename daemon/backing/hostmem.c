/* SPDX-License-Identifier: MIT */
#include "backing/hostmem.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"

/*
 * Level 0 is the machine; then the memory cgroups from our own upwards. A
 * container sees its hierarchy from somewhere in the middle; version 1 tells
 * the limit of what is above in the topmost one's memory.stat.
 */

#define NO_LIMIT_ABOVE                                                         \
	(UINT64_C(1) << 60) /* version 1 writes a huge number                  \
			     */
#define TEXT_BYTES KIB(64)
#define PATH_BYTES 4096

/* Return: the text, freed by the caller, or NULL. */
static char *read_text(const char *dir, const char *file)
{
	_cleanup_(fd_closep) int fd = -1;
	char path[PATH_BYTES];
	size_t len = 0;
	ssize_t n = 1;
	char *text;

	if (snprintf(path, sizeof(path), "%s/%s", dir, file) >= (int)PATH_BYTES)
		return NULL;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	text = malloc(TEXT_BYTES);
	while (text && n > 0 && len < TEXT_BYTES - 1) {
		n = read(fd, text + len, TEXT_BYTES - 1 - len);
		len += n > 0 ? (size_t)n : 0;
	}
	if (!text || n < 0) {
		free(text);
		return NULL;
	}
	text[len] = '\0';
	return text;
}

/* The number after @key at the start of a line. */
static bool find_number(const char *text, const char *key, uint64_t *ret)
{
	size_t len = strlen(key);
	const char *line = text;

	while (line && strncmp(line, key, len) != 0) {
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	return line && sscanf(line + len, " %" SCNu64, ret) == 1;
}

/* A file that holds one number, or the word max. */
static int read_number(const char *dir, const char *file, uint64_t *ret)
{
	char *text = read_text(dir, file);
	int r = 0;

	if (!text)
		return -ENOENT;
	if (strncmp(text, "max", 3) == 0)
		*ret = HOSTMEM_NO_LIMIT;
	else if (sscanf(text, "%" SCNu64, ret) != 1)
		r = -EBADMSG;
	free(text);
	return r;
}

static int read_machine(const struct hostmem *h, struct hostmem_reading *ret)
{
	char *text;
	uint64_t total, available;
	bool ok;

	text = read_text(h->root, "proc/meminfo");
	if (!text)
		return err_raise(-ENOENT);
	ok = find_number(text, "MemTotal:", &total) &&
	     find_number(text, "MemAvailable:", &available);
	free(text);
	if (!ok)
		return err_raise(-EBADMSG);
	ret->limit_bytes = total * 1024;
	ret->available_bytes = available * 1024;
	ret->key = "MemAvailable";
	return 0;
}

/* limit - usage + what reclaim gets without any harm */
static void set_reading(struct hostmem_reading *ret, uint64_t limit,
			uint64_t usage, uint64_t inactive_file, const char *key)
{
	uint64_t used = usage - MIN(usage, inactive_file);

	ret->limit_bytes = limit;
	ret->available_bytes = limit - MIN(limit, used);
	ret->key = key;
}

static int read_v1(const struct hostmem_level *l, struct hostmem_reading *ret)
{
	const char *key = "memory.limit_in_bytes";
	uint64_t limit, usage, above, inactive = 0;
	char *stat = NULL;
	int r = read_number(l->dir, key, &limit);

	if (r)
		return r;
	if (limit >= NO_LIMIT_ABOVE && !l->topmost)
		return 0;
	r = read_number(l->dir, "memory.usage_in_bytes", &usage);
	if (r)
		return r;
	stat = read_text(l->dir, "memory.stat");
	if (!stat)
		return -ENOENT;
	(void)find_number(stat, "total_inactive_file", &inactive);
	if (l->topmost &&
	    find_number(stat, "hierarchical_memory_limit", &above) &&
	    above < limit) {
		limit = above;
		key = "hierarchical_memory_limit";
	}
	free(stat);
	if (limit < NO_LIMIT_ABOVE)
		set_reading(ret, limit, usage, inactive, key);
	return 0;
}

static int read_v2(const struct hostmem_level *l, struct hostmem_reading *ret)
{
	const char *key = "memory.max";
	uint64_t limit, high, usage, inactive = 0;
	char *stat;
	int r = read_number(l->dir, key, &limit);

	if (r == -ENOENT) /* the root cgroup has none */
		return 0;
	else if (r)
		return r;
	/* Above memory.high the kernel puts the allocating thread to sleep. */
	if (read_number(l->dir, "memory.high", &high) == 0 && high < limit) {
		limit = high;
		key = "memory.high";
	}
	if (limit == HOSTMEM_NO_LIMIT)
		return 0;
	r = read_number(l->dir, "memory.current", &usage);
	if (r)
		return r;
	stat = read_text(l->dir, "memory.stat");
	if (!stat)
		return -ENOENT;
	(void)find_number(stat, "inactive_file", &inactive);
	free(stat);
	set_reading(ret, limit, usage, inactive, key);
	return 0;
}

int hostmem_read(const struct hostmem *h, unsigned int level,
		 struct hostmem_reading *ret)
{
	const struct hostmem_level *l = &h->level[level];

	assert(level < h->n_levels);
	ret->limit_bytes = HOSTMEM_NO_LIMIT;
	ret->available_bytes = HOSTMEM_NO_LIMIT;
	ret->key = "";
	if (!l->dir)
		return read_machine(h, ret);
	return l->v1 ? read_v1(l, ret) : read_v2(l, ret);
}

/*
 * Where our cgroup's directory is: @mount_root and @mount_point come from
 * mountinfo, @path from /proc/self/cgroup. A path outside of the mounted part
 * means that we see it through another namespace: then its root is ours.
 */
static const char *relative_path(const char *mount_root, const char *path)
{
	size_t len = strlen(mount_root);

	if (strcmp(mount_root, "/") == 0)
		return strncmp(path, "/..", 3) == 0 ? "" : path;
	if (strncmp(path, mount_root, len) == 0 &&
	    (path[len] == '/' || path[len] == '\0'))
		return path + len;
	return "";
}

static int add_level(struct hostmem *h, const char *mount_point,
		     const char *relative, bool v1)
{
	struct hostmem_level *l = &h->level[h->n_levels];
	const char *name = relative[0] ? relative : "/";

	if (asprintf(&l->dir, "%s%s%s", h->root, mount_point, relative) < 0) {
		l->dir = NULL;
		return err_raise(-ENOMEM);
	}
	l->name = strdup(name);
	if (!l->name) {
		free(l->dir);
		l->dir = NULL;
		return err_raise(-ENOMEM);
	}
	l->v1 = v1;
	l->topmost = relative[0] == '\0';
	h->n_levels++;
	return 0;
}

/* Our cgroup and all above it, up to the mount's root. */
static int add_levels(struct hostmem *h, const char *mount_point,
		      const char *relative, bool v1)
{
	char path[PATH_BYTES];
	char *slash;
	int r = 0;

	snprintf(path, sizeof(path), "%s", relative);
	if (strcmp(path, "/") == 0)
		path[0] = '\0';
	while (!r && h->n_levels < HOSTMEM_LEVELS_MAX) {
		r = add_level(h, mount_point, path, v1);
		slash = strrchr(path, '/');
		if (!slash)
			break;
		*slash = '\0';
	}
	return r;
}

/* Return: true and the path if @line of /proc/self/cgroup is the one of the
 * memory controller (version 1) or of version 2. */
static bool cgroup_line(const char *line, bool v1, char path[PATH_BYTES])
{
	char controllers[256] = "";
	const char *colon = strchr(line, ':');
	const char *second = colon ? strchr(colon + 1, ':') : NULL;
	size_t len;

	if (!second)
		return false;
	len = (size_t)(second - colon - 1);
	if (len >= sizeof(controllers) - 2)
		return false;
	snprintf(controllers, sizeof(controllers), ",%.*s,", (int)len,
		 colon + 1);
	if (v1 ? !strstr(controllers, ",memory,") : len != 0)
		return false;
	len = strcspn(second + 1, "\n");
	snprintf(path, PATH_BYTES, "%.*s",
		 (int)MIN(len, (size_t)PATH_BYTES - 1), second + 1);
	return true;
}

static bool find_cgroup(const char *text, bool v1, char path[PATH_BYTES])
{
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (cgroup_line(line, v1, path))
			return true;
	}
	return false;
}

/* Finds the mount of the memory controller, or of version 2. Fields of a line:
 * id parent dev root point options [optional...] - type source superoptions */
static bool find_mount(const char *text, bool v1, char root[PATH_BYTES],
		       char point[PATH_BYTES])
{
	char type[32], super[256];

	for (const char *line = text; line; line = strchr(line, '\n')) {
		const char *dash;

		line += *line == '\n';
		if (sscanf(line, "%*s %*s %*s %4095s %4095s", root, point) != 2)
			continue;
		dash = strstr(line, " - ");
		if (!dash ||
		    sscanf(dash + 3, "%31s %*s %254s", type, super + 1) != 2)
			continue;
		super[0] = ',';
		if (v1 ? strcmp(type, "cgroup") == 0 && strstr(super, ",memory")
		       : strcmp(type, "cgroup2") == 0)
			return true;
	}
	return false;
}

/* A controller is in one hierarchy only, so at most one of the two versions has
 * limits; the files that the other lacks are skipped when read. */
static int add_hierarchy(struct hostmem *h, const char *cgroups,
			 const char *mounts, bool v1)
{
	char path[PATH_BYTES], root[PATH_BYTES], point[PATH_BYTES];

	if (!find_cgroup(cgroups, v1, path) ||
	    !find_mount(mounts, v1, root, point))
		return 0;
	return add_levels(h, point, relative_path(root, path), v1);
}

int hostmem_init(struct hostmem *h, const char *root)
{
	struct hostmem_reading reading;
	char *cgroups, *mounts;
	int r;

	memset(h, 0, sizeof(*h));
	h->root = strdup(root);
	if (!h->root)
		return err_raise(-ENOMEM);
	h->n_levels = 1;
	r = hostmem_read(h, 0, &reading);
	cgroups = read_text(root, "proc/self/cgroup");
	mounts = read_text(root, "proc/self/mountinfo");
	if (!r && cgroups && mounts) {
		r = add_hierarchy(h, cgroups, mounts, true);
		if (!r)
			r = add_hierarchy(h, cgroups, mounts, false);
	}
	free(cgroups);
	free(mounts);
	if (r)
		hostmem_fini(h);
	return r;
}

void hostmem_fini(struct hostmem *h)
{
	for (unsigned int i = 0; i < h->n_levels; i++) {
		free(h->level[i].dir);
		free(h->level[i].name);
	}
	free(h->root);
	memset(h, 0, sizeof(*h));
}
