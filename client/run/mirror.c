/* SPDX-License-Identifier: MIT */
#include "run/mirror.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run/live.h"
#include "run/util.h"

#define BUFFERS "/sys/kernel/dmabuf/buffers"
#define BUFINFO "/sys/kernel/debug/dma_buf/bufinfo"
#define CLASS   "/sys/class/dma_heap"
#define DEVICES "/proc/devices"

struct mirror {
	pthread_mutex_t lock;
	char root[WORKDIR_PATH_BYTES + 16];
	const struct node *node;
	struct names *names;
	bool has_class; /* written once */
	bool closed;
};

struct mirror *mirror_new(const struct workdir *workdir,
			  const struct node *node, struct names *names)
{
	struct mirror *mirror = calloc(1, sizeof(*mirror));

	if (!mirror)
		return NULL;
	(void)pthread_mutex_init(&mirror->lock, NULL);
	(void)snprintf(mirror->root, sizeof(mirror->root), "%s/mirror",
		       workdir->path);
	mirror->node = node;
	mirror->names = names;
	return mirror;
}

static int remove_one(const char *path, const struct stat *st, int type,
		      struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	(void)remove(path);
	return 0;
}

static void remove_tree(const char *path)
{
	(void)nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

void mirror_close(struct mirror *mirror)
{
	if (!mirror)
		return;
	(void)pthread_mutex_lock(&mirror->lock);
	mirror->closed = true;
	remove_tree(mirror->root);
	(void)pthread_mutex_unlock(&mirror->lock);
}

struct mirror *mirror_free(struct mirror *mirror)
{
	if (!mirror)
		return NULL;
	mirror_close(mirror);
	(void)pthread_mutex_destroy(&mirror->lock);
	free(mirror);
	return NULL;
}

/* The path below @prefix, "" for itself; NULL when it is elsewhere. */
static const char *below(const char *path, const char *prefix)
{
	size_t length = strlen(prefix);

	if (strncmp(path, prefix, length) ||
	    (path[length] && path[length] != '/'))
		return NULL;
	return path + length;
}

bool mirror_is_interesting(const char *path)
{
	return below(path, BUFFERS) || below(path, BUFINFO) ||
	       below(path, CLASS) || below(path, DEVICES);
}

static FILE *create(const struct mirror *mirror, const char *path, mode_t mode)
{
	char full[PATH_MAX];
	FILE *file;

	(void)snprintf(full, sizeof(full), "%s%s", mirror->root, path);
	(void)unlink(full);
	file = fopen(full, "wxe");
	if (file)
		(void)fchmod(fileno(file), mode);
	return file;
}

/* Makes the directories above a path of the mirror. */
static void make_parents(const struct mirror *mirror, const char *path)
{
	char full[PATH_MAX];
	char *at;

	(void)snprintf(full, sizeof(full), "%s%s/", mirror->root, path);
	for (at = full + 1; (at = strchr(at, '/')); at++) {
		*at = '\0';
		(void)mkdir(full, 0755);
		*at = '/';
	}
}

static void write_attribute(const struct mirror *mirror, const char *directory,
			    const char *name, const char *text)
{
	char path[PATH_MAX];
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/%s", directory, name);
	file = create(mirror, path, 0444);
	if (!file)
		return;
	(void)fprintf(file, "%s\n", text);
	(void)fclose(file);
}

static void write_buffers(const struct mirror *mirror, const struct live *live)
{
	char directory[256], full[PATH_MAX], size[32];

	(void)snprintf(full, sizeof(full), "%s" BUFFERS, mirror->root);
	remove_tree(full);
	make_parents(mirror, BUFFERS);
	for (size_t i = 0; i < live->n; i++) {
		const struct live_buffer *b = &live->buffer[i];

		(void)snprintf(directory, sizeof(directory), BUFFERS "/%llu",
			       (unsigned long long)b->ino);
		make_parents(mirror, directory);
		(void)snprintf(size, sizeof(size), "%llu",
			       (unsigned long long)b->size_bytes);
		write_attribute(mirror, directory, "exporter_name", b->heap);
		write_attribute(mirror, directory, "size", size);
	}
}

/* An fd's mode bits as a dma-buf has them: seekable, and the access mode. */
static unsigned int file_mode(unsigned int flags)
{
	return 0x80004u | ((flags + 1) & O_ACCMODE);
}

static void write_bufinfo(const struct mirror *mirror, const struct live *live)
{
	char name[DMAHEAP_NAME_MAX_BYTES];
	unsigned long long total = 0;
	FILE *file;

	make_parents(mirror, "/sys/kernel/debug/dma_buf");
	file = create(mirror, BUFINFO, 0444);
	if (!file)
		return;
	(void)fprintf(file,
		      "\nDma-buf Objects:\n%-8s\t%-8s\t%-8s\t%-8s\t"
		      "exp_name\t%-8s\tname\n",
		      "size", "flags", "mode", "count", "ino");
	for (size_t i = 0; i < live->n; i++) {
		const struct live_buffer *b = &live->buffer[i];

		if (!names_get(mirror->names, b->dev, b->ino, name))
			(void)snprintf(name, sizeof(name), "<none>");
		(void)fprintf(file,
			      "%08llu\t%08x\t%08x\t%08u\t%s\t%08llu\t%s\n"
			      "\tAttached Devices:\n"
			      "Total 0 devices attached\n\n",
			      (unsigned long long)b->size_bytes, b->flags,
			      file_mode(b->flags), b->n_references, b->heap,
			      (unsigned long long)b->ino, name);
		total += b->size_bytes;
	}
	(void)fprintf(file, "\nTotal %zu objects, %llu bytes\n", live->n,
		      total);
	(void)fclose(file);
}

static void write_class(struct mirror *mirror)
{
	char directory[128], text[128];
	const struct node_heap *heap;

	if (mirror->has_class)
		return;
	make_parents(mirror, CLASS);
	for (unsigned int i = 0; (heap = node_heap_at(mirror->node, i)); i++) {
		(void)snprintf(directory, sizeof(directory), CLASS "/%s",
			       heap->name);
		make_parents(mirror, directory);
		(void)snprintf(text, sizeof(text),
			       "MAJOR=%u\nMINOR=%u\nDEVNAME=dma_heap/%s",
			       NODE_MAJOR, heap->minor, heap->name);
		write_attribute(mirror, directory, "uevent", text);
		(void)snprintf(text, sizeof(text), "%u:%u", NODE_MAJOR,
			       heap->minor);
		write_attribute(mirror, directory, "dev", text);
	}
	mirror->has_class = true;
}

/* The line goes to the end of the character devices. */
static void write_devices(const struct mirror *mirror)
{
	FILE *from = fopen(DEVICES, "re"), *to;
	char line[256];
	bool done = false;

	make_parents(mirror, "/proc");
	to = create(mirror, DEVICES, 0444);
	while (to && from && fgets(line, sizeof(line), from)) {
		if (line[0] == '\n' && !done) {
			(void)fprintf(to, "%3u dma_heap\n", NODE_MAJOR);
			done = true;
		}
		(void)fputs(line, to);
	}
	if (to)
		(void)fclose(to);
	if (from)
		(void)fclose(from);
}

static bool host_lists_heaps(void)
{
	FILE *file = fopen(DEVICES, "re");
	bool found = false;
	char line[256];

	while (file && fgets(line, sizeof(line), file))
		found |= strstr(line, " dma_heap\n") != NULL;
	if (file)
		(void)fclose(file);
	return found;
}

static bool refresh(struct mirror *mirror, const char *path)
{
	struct live live;

	if (below(path, DEVICES)) {
		if (host_lists_heaps())
			return false;
		write_devices(mirror);
	} else if (below(path, CLASS)) {
		if (access(CLASS, F_OK) == 0)
			return false;
		write_class(mirror);
	} else {
		bool info = below(path, BUFINFO);

		if (access(info ? BUFINFO : BUFFERS, F_OK) == 0)
			return false;
		live_collect(&live);
		if (info)
			write_bufinfo(mirror, &live);
		else
			write_buffers(mirror, &live);
		live_free(&live);
	}
	return true;
}

bool mirror_look(struct mirror *mirror, const char *path,
		 char ret_path[PATH_MAX])
{
	bool ours;

	if (strstr(path, "/../") || strlen(path) > PATH_MAX / 2)
		return false;
	(void)pthread_mutex_lock(&mirror->lock);
	ours = !mirror->closed && refresh(mirror, path);
	(void)pthread_mutex_unlock(&mirror->lock);
	(void)snprintf(ret_path, PATH_MAX, "%s%s", mirror->root, path);
	return ours;
}
