/* SPDX-License-Identifier: MIT */
/*
 * Two passes over each process: its fds, which stat() names by device and
 * inode, and its maps, which give both in text. Each pair that is a buffer's
 * adds to an entry for that record and process. All entries lie in one array;
 * those of a record are chained, the newest first, and a process is read to its
 * end before the next, so its entry, if any, is the first of the chain.
 */
#include "ctl/holders.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define NONE SIZE_MAX

struct entry {
	struct holder holder;
	size_t next; /* of the same record, or NONE */
};

/* Records by inode, for the binary search. */
struct key {
	uint64_t dev, ino;
	size_t record;
};

struct holders {
	struct key *keys;
	size_t *first; /* by record: its newest entry, or NONE */
	size_t n_records;
	struct entry *entries;
	size_t n_entries, capacity;
	unsigned int n_hidden;
};

static int compare(const void *left, const void *right)
{
	const struct key *a = left, *b = right;

	if (a->ino != b->ino)
		return a->ino < b->ino ? -1 : 1;
	if (a->dev != b->dev)
		return a->dev < b->dev ? -1 : 1;
	return 0;
}

static bool grow(struct holders *h)
{
	size_t capacity = h->capacity ? 2 * h->capacity : 64;
	struct entry *more = realloc(h->entries, capacity * sizeof(*more));

	if (!more)
		return false;
	h->entries = more;
	h->capacity = capacity;
	return true;
}

/* The holder for @pid of the buffer @dev:@ino; NULL when it is no buffer. */
static struct holder *holder_of(struct holders *h, dev_t dev, ino_t ino,
				pid_t pid)
{
	struct key key = {.dev = dev, .ino = ino}, *found;
	size_t *first;

	found = bsearch(&key, h->keys, h->n_records, sizeof(key), compare);
	if (!found)
		return NULL;
	first = &h->first[found->record];
	if (*first != NONE && h->entries[*first].holder.pid == pid)
		return &h->entries[*first].holder;
	if (h->n_entries == h->capacity && !grow(h))
		return NULL;
	h->entries[h->n_entries] =
		(struct entry){.holder = {.pid = pid}, .next = *first};
	*first = h->n_entries++;
	return &h->entries[*first].holder;
}

/* Return: false when the process may not be looked into. */
static bool search_fds(struct holders *h, int process, pid_t pid)
{
	int fd = openat(process, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent *entry;
	DIR *dir;

	if (fd < 0)
		return errno != EACCES && errno != EPERM;
	dir = fdopendir(fd);
	if (!dir) {
		close(fd);
		return true;
	}
	while ((entry = readdir(dir))) {
		struct holder *holder;
		struct stat st;

		if (fstatat(dirfd(dir), entry->d_name, &st, 0) < 0 ||
		    !S_ISREG(st.st_mode))
			continue;
		holder = holder_of(h, st.st_dev, st.st_ino, pid);
		if (holder)
			holder->n_fds++;
	}
	closedir(dir);
	return true;
}

static void search_maps(struct holders *h, int process, pid_t pid)
{
	int fd = openat(process, "maps", O_RDONLY | O_CLOEXEC);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	char *line = NULL;
	size_t size = 0;

	if (!file) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while (getline(&line, &size, file) >= 0) {
		unsigned int major, minor;
		struct holder *holder;
		unsigned long ino;

		if (sscanf(line, "%*s %*s %*s %x:%x %lu", &major, &minor,
			   &ino) != 3 ||
		    ino == 0)
			continue;
		holder = holder_of(h, makedev(major, minor), ino, pid);
		if (holder)
			holder->n_mappings++;
	}
	free(line);
	fclose(file);
}

/* Names the entries from @from on, which are all of this process. */
static void name_holders(struct holders *h, int process, size_t from)
{
	int fd = openat(process, "comm", O_RDONLY | O_CLOEXEC);
	char comm[16] = "";
	ssize_t n;

	if (fd < 0)
		return;
	n = read(fd, comm, sizeof(comm) - 1);
	close(fd);
	if (n > 0)
		comm[strcspn(comm, "\n")] = '\0';
	for (size_t i = from; i < h->n_entries; i++)
		memcpy(h->entries[i].holder.comm, comm, sizeof(comm));
}

static void search_process(struct holders *h, int proc, const char *name)
{
	size_t from = h->n_entries;
	pid_t pid = atoi(name);
	int process = openat(proc, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (process < 0)
		return; /* it has ended */
	if (search_fds(h, process, pid)) {
		search_maps(h, process, pid);
		name_holders(h, process, from);
	} else {
		h->n_hidden++;
	}
	close(process);
}

static bool search_all(struct holders *h, pid_t daemon_pid)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;

	if (!dir)
		return false;
	while ((entry = readdir(dir)))
		if (isdigit((unsigned char)entry->d_name[0]) &&
		    atoi(entry->d_name) != daemon_pid)
			search_process(h, dirfd(dir), entry->d_name);
	closedir(dir);
	return true;
}

struct holders *holders_find(const struct dmaheap_buffer_record *records,
			     size_t n, pid_t daemon_pid)
{
	struct holders *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->n_records = n;
	h->first = calloc(n + 1, sizeof(*h->first));
	h->keys = calloc(n + 1, sizeof(*h->keys));
	if (!h->first || !h->keys)
		return holders_free(h);
	for (size_t i = 0; i < n; i++) {
		h->first[i] = NONE;
		h->keys[i] = (struct key){.dev = records[i].dev,
					  .ino = records[i].ino,
					  .record = i};
	}
	qsort(h->keys, n, sizeof(*h->keys), compare);
	return search_all(h, daemon_pid) ? h : holders_free(h);
}

const struct holder *holders_get(const struct holders *h, size_t record,
				 size_t i)
{
	size_t at = h->first[record];

	while (at != NONE && i-- > 0)
		at = h->entries[at].next;
	return at == NONE ? NULL : &h->entries[at].holder;
}

unsigned int holders_hidden(const struct holders *h)
{
	return h->n_hidden;
}

struct holders *holders_free(struct holders *h)
{
	if (!h)
		return NULL;
	free(h->entries);
	free(h->first);
	free(h->keys);
	free(h);
	return NULL;
}
