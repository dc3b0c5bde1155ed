/* SPDX-License-Identifier: MIT */
#include "run/fdinfo.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "run/maps.h"
#include "run/target.h"
#include "run/util.h"

void fdinfo_heap_name(const char *link, char ret[DMAHEAP_NAME_MAX_BYTES])
{
	const char *from = link + strlen(NODE_BUFFER_PREFIX);
	const char *space = strchr(from, ' ');
	size_t length = space ? (size_t)(space - from) : strlen(from);

	/* The last colon: a heap's name may hold others. */
	while (length && from[length - 1] != ':')
		length--;
	if (length)
		length--;
	if (length >= DMAHEAP_NAME_MAX_BYTES)
		length = DMAHEAP_NAME_MAX_BYTES - 1;
	memcpy(ret, from, length);
	ret[length] = '\0';
}

static unsigned int count_fds(pid_t pid, const struct stat *buffer)
{
	char path[64];
	struct dirent *entry;
	unsigned int n = 0;
	struct stat st;
	DIR *dir;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	if (!dir)
		return 0;
	while ((entry = readdir(dir)))
		if (fstatat(dirfd(dir), entry->d_name, &st, 0) == 0 &&
		    st.st_ino == buffer->st_ino && st.st_dev == buffer->st_dev)
			n++;
	(void)closedir(dir);
	return n;
}

struct count {
	const struct stat *buffer;
	unsigned int n;
};

static bool count_mapping(void *ctx, const struct maps_area *area)
{
	struct count *count = ctx;

	if (area->ino == count->buffer->st_ino &&
	    strncmp(area->path, NODE_BUFFER_PREFIX,
		    strlen(NODE_BUFFER_PREFIX)) == 0)
		count->n++;
	return true;
}

/* The value of the line "mnt_id:" in the kernel's own text; it is kept. */
static int mount_id(pid_t pid, int fd)
{
	char path[64], line[128];
	FILE *file;
	int id = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", (int)pid, fd);
	file = fopen(path, "re");
	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file))
		if (strncmp(line, "mnt_id:", 7) == 0)
			id = atoi(line + 7);
	(void)fclose(file);
	return id;
}

static int text_file(const char *text, size_t length)
{
	_cleanup_(fd_closep) int fd = -1;
	char path[32];
	int r;

	fd = memfd_create("fdinfo", MFD_CLOEXEC);
	if (fd < 0 || write(fd, text, length) != (ssize_t)length)
		return -errno;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r = open(path, O_RDONLY | O_CLOEXEC);
	return r < 0 ? -errno : r;
}

int fdinfo_open(struct names *names, pid_t pid, int fd,
		const struct node_object *buffer)
{
	char heap[DMAHEAP_NAME_MAX_BYTES], name[DMAHEAP_NAME_MAX_BYTES];
	struct count count = {.buffer = &buffer->st};
	char text[512], name_line[64] = "";
	unsigned int flags;
	int n, r;

	r = target_fd_flags(pid, fd, &flags);
	if (r)
		return r;
	fdinfo_heap_name(buffer->link, heap);
	if (names_get(names, buffer->st.st_dev, buffer->st.st_ino, name))
		(void)snprintf(name_line, sizeof(name_line), "name:\t%s\n",
			       name);
	count.n = count_fds(pid, &buffer->st);
	(void)maps_walk(pid, count_mapping, &count);
	n = snprintf(text, sizeof(text),
		     "pos:\t0\nflags:\t0%o\nmnt_id:\t%d\nino:\t%llu\n"
		     "size:\t%lld\ncount:\t%u\nexp_name:\t%s\n%s",
		     flags & ~(unsigned int)MAPS_O_LARGEFILE, mount_id(pid, fd),
		     (unsigned long long)buffer->st.st_ino,
		     (long long)buffer->st.st_size, count.n, heap, name_line);
	return text_file(text, (size_t)n);
}

struct maps_text {
	struct names *names;
	FILE *to;
	bool has_buffer;
};

static bool print_area(void *ctx, const struct maps_area *area)
{
	struct maps_text *text = ctx;
	char name[DMAHEAP_NAME_MAX_BYTES];
	bool is_buffer = strncmp(area->path, NODE_BUFFER_PREFIX,
				 strlen(NODE_BUFFER_PREFIX)) == 0;
	int n;

	text->has_buffer |= is_buffer;
	n = fprintf(text->to, "%llx-%llx %s %08llx %02x:%02x %llu",
		    (unsigned long long)area->start,
		    (unsigned long long)area->end, area->perms,
		    (unsigned long long)area->offset_bytes, major(area->dev),
		    minor(area->dev), (unsigned long long)area->ino);
	/* The kernel pads to the 73rd column. */
	if (area->path[0])
		(void)fprintf(text->to, "%*s", n < 73 ? 73 - n : 1, "");
	if (is_buffer) {
		(void)names_get(text->names, area->dev, area->ino, name);
		(void)fprintf(text->to, "/dmabuf:%s\n", name);
	} else {
		(void)fprintf(text->to, "%s\n",
			      area->path[0] ? area->path : " ");
	}
	return true;
}

int fdinfo_open_maps(struct names *names, pid_t pid)
{
	struct maps_text text = {.names = names};
	char *bytes = NULL;
	size_t n_bytes = 0;
	int r;

	text.to = open_memstream(&bytes, &n_bytes);
	if (!text.to)
		return -ENOMEM;
	r = maps_walk(pid, print_area, &text);
	if (fclose(text.to) && r == 0)
		r = -ENOMEM;
	if (r == 0)
		r = text.has_buffer ? text_file(bytes, n_bytes) : -ENOENT;
	free(bytes);
	return r;
}
