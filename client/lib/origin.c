/* SPDX-License-Identifier: MIT */
#include "lib/origin.h"

#include <stdlib.h>
#include <string.h>

#include "lib/handle.h"

struct entry {
	uint64_t origin; /* 0: no buffer was received under this number */
	struct origin_file file;
};

static struct entry *entries; /* by fd number */
static size_t n_entries;

uint64_t origin_of_path(const char *path)
{
	uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */

	for (; *path; path++)
		hash = (hash ^ (unsigned char)*path) * 0x100000001b3u;
	return hash ? hash : 1;
}

static bool grow(size_t n)
{
	size_t wanted = n_entries * 2 > n ? n_entries * 2 : n;
	struct entry *more = realloc(entries, wanted * sizeof(*more));

	if (!more)
		return false;
	memset(more + n_entries, 0, (wanted - n_entries) * sizeof(*more));
	entries = more;
	n_entries = wanted;
	return true;
}

void origin_note(uint64_t origin, int fd, struct origin_file file)
{
	size_t i = (size_t)fd;

	handles_lock();
	/* Without memory the buffer stays unknown, which the header allows. */
	if (i < n_entries || grow(i + 1))
		entries[i] = (struct entry){.origin = origin, .file = file};
	handles_unlock();
}

bool origin_is_foreign(uint64_t origin, struct origin_file file)
{
	bool foreign = false;

	handles_lock();
	for (size_t i = 0; i < n_entries; i++) {
		const struct entry *e = &entries[i];

		if (e->origin == 0 || e->file.dev != file.dev ||
		    e->file.ino != file.ino)
			continue;
		foreign = e->origin != origin;
		if (!foreign)
			break;
	}
	handles_unlock();
	return foreign;
}
