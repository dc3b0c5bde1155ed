/* SPDX-License-Identifier: MIT */
#include "lib/adopt.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/handle.h"
#include "lib/origin.h"

/* "/memfd:dmaheap:HEAP:ID"; the stats segment's has no ID. */
#define MEMFD_PREFIX "/memfd:dmaheap:"

static bool is_buffer_name(const char *path)
{
	size_t n = strlen(MEMFD_PREFIX);

	return !strncmp(path, MEMFD_PREFIX, n) && strchr(path + n, ':');
}

/* A buffer of this process: an fd, or only the mapping [start, end). */
struct found {
	ino_t ino; /* all memfds lie on one device */
	int fd;    /* -1: none */
	unsigned long start, end;
};

struct search {
	struct dmaheap *dh;
	struct found *found;
	size_t n, capacity;
};

static int add(struct search *s, const struct found *f)
{
	if (s->n == s->capacity) {
		size_t capacity = s->capacity ? 2 * s->capacity : 64;
		struct found *more =
			realloc(s->found, capacity * sizeof(*more));

		if (!more)
			return -ENOMEM;
		s->found = more;
		s->capacity = capacity;
	}
	s->found[s->n++] = *f;
	return 0;
}

static int consider_fd(struct search *s, int dir, const char *name)
{
	char target[128];
	struct found f = {.fd = atoi(name)};
	struct stat st;
	ssize_t n;

	n = readlinkat(dir, name, target, sizeof(target) - 1);
	if (n < 0)
		return 0;
	target[n] = '\0';
	if (!is_buffer_name(target))
		return 0;
	if (fstat(f.fd, &st) < 0)
		return 0; /* another thread closed it meanwhile */
	f.ino = st.st_ino;
	return add(s, &f);
}

static int search_fds(struct search *s)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	int r = 0;

	if (!dir) /* no /proc: then nothing can be found */
		return errno == EMFILE || errno == ENOMEM ? -errno : 0;
	while (r == 0 && (entry = readdir(dir)))
		if (isdigit((unsigned char)entry->d_name[0]))
			r = consider_fd(s, dirfd(dir), entry->d_name);
	closedir(dir);
	return r;
}

/* A line of /proc/self/maps: "start-end perms offset major:minor inode path" */
static int consider_mapping(struct search *s, const char *line)
{
	struct found f = {.fd = -1};
	unsigned long inode;
	int path_at = 0;

	if (sscanf(line, "%lx-%lx %*s %*s %*s %lu %n", &f.start, &f.end, &inode,
		   &path_at) != 3 ||
	    !is_buffer_name(line + path_at))
		return 0;
	f.ino = inode;
	return add(s, &f);
}

static int search_mappings(struct search *s)
{
	FILE *file = fopen("/proc/self/maps", "re");
	char *line = NULL;
	size_t size = 0;
	int r = 0;

	if (!file)
		return errno == EMFILE || errno == ENOMEM ? -errno : 0;
	while (r == 0 && getline(&line, &size, file) >= 0)
		r = consider_mapping(s, line);
	free(line);
	fclose(file);
	return r;
}

/* By inode, those with an fd first. */
static int compare(const void *left, const void *right)
{
	const struct found *a = left, *b = right;

	if (a->ino != b->ino)
		return a->ino < b->ino ? -1 : 1;
	return (a->fd < 0) - (b->fd < 0);
}

static int open_mapping(const struct found *f)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx", f->start,
		 f->end);
	/* A lease of its owner must not make us wait. */
	return open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
}

/*
 * Our own fd of the buffer, since another thread may close the one that was
 * found, or its number may by now be another file's.
 *
 * Return: the fd, -EMFILE, or -ENOENT (it is gone, foreign or out of reach).
 */
static int hold(const struct search *s, const struct found *f)
{
	struct stat st;
	int fd;

	fd = f->fd < 0 ? open_mapping(f) : fcntl(f->fd, F_DUPFD_CLOEXEC, 3);
	if (fd < 0)
		return errno == EMFILE ? -EMFILE : -ENOENT;
	if (fstat(fd, &st) < 0 || st.st_ino != f->ino ||
	    origin_is_foreign(s->dh->origin,
			      (struct origin_file){st.st_dev, st.st_ino})) {
		close(fd);
		return -ENOENT;
	}
	return fd;
}

static int hand_over(struct dmaheap *dh, const int *fds, size_t n_fds)
{
	struct dmaheap_adopt_req adopt = {0};
	struct wire_request req = {.opcode = DMAHEAP_OP_ADOPT,
				   .payload = &adopt,
				   .payload_bytes = sizeof(adopt),
				   .fds = fds,
				   .n_fds = n_fds};
	struct wire_reply reply;
	int r = handle_exchange(dh, &req, &reply);

	/* What it says of each buffer changes nothing here. */
	if (r == 0)
		wire_close_fds(&reply);
	return r;
}

static void close_all(int *fds, size_t *n_fds)
{
	while (*n_fds > 0)
		close(fds[--*n_fds]);
}

/* Hands over @s->found, sorted, each inode once, in requests of up to 64. */
static int hand_over_all(const struct search *s)
{
	int fds[DMAHEAP_ADOPT_MAX_COUNT];
	size_t n_fds = 0, i = 0;
	ino_t last = 0;
	int r = 0;

	while (r == 0 && i < s->n) {
		const struct found *f = &s->found[i];
		int fd = f->ino == last ? -ENOENT : hold(s, f);

		if (fd == -EMFILE && n_fds == 0)
			return -EMFILE;
		if (fd >= 0) {
			fds[n_fds++] = fd;
			last = f->ino;
		}
		if (fd != -EMFILE) /* else again, after making room */
			i++;
		if (n_fds == DMAHEAP_ADOPT_MAX_COUNT || fd == -EMFILE) {
			r = hand_over(s->dh, fds, n_fds);
			close_all(fds, &n_fds);
		}
	}
	if (r == 0 && n_fds > 0)
		r = hand_over(s->dh, fds, n_fds);
	close_all(fds, &n_fds);
	return r;
}

int adopt_all(struct dmaheap *dh)
{
	struct search s = {.dh = dh};
	int r;

	r = search_fds(&s);
	if (r == 0)
		r = search_mappings(&s);
	if (r == 0 && s.n > 0) {
		qsort(s.found, s.n, sizeof(*s.found), compare);
		r = hand_over_all(&s);
	}
	free(s.found);
	return r;
}
