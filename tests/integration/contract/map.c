/* SPDX-License-Identifier: MIT */
#include "contract.h"

#define R PROT_READ
#define W PROT_WRITE
#define X PROT_EXEC

static void map_and_touch(const char *name, int fd, size_t pages, int prot,
			  int flags)
{
	void *at = mmap(NULL, pages * PAGE, prot, flags, fd, 0);

	if (at == MAP_FAILED) {
		line(name, "%s", res_errno(errno));
		return;
	}
	line(name, "%s", touch(at));
	munmap(at, pages * PAGE);
}

static void kinds(int four, int one)
{
	static const struct {
		const char *name;
		int prot, flags;
		bool only_one;
	} kind[] = {
		{"shared.rw", R | W, MAP_SHARED, false},
		{"shared.r", R, MAP_SHARED, false},
		{"shared.w", W, MAP_SHARED, true},
		{"shared.none", 0, MAP_SHARED, false},
		{"shared.rwx", R | W | X, MAP_SHARED, false},
		{"shared.rx", R | X, MAP_SHARED, false},
		{"private.rw", R | W, MAP_PRIVATE, false},
		{"private.r", R, MAP_PRIVATE, false},
		{"private.none", 0, MAP_PRIVATE, false},
		{"validate.rw", R | W, MAP_SHARED_VALIDATE, false},
		{"validate+sync.rw", R | W, MAP_SHARED_VALIDATE | MAP_SYNC,
		 false},
		{"shared+populate.rw", R | W, MAP_SHARED | MAP_POPULATE, false},
		{"shared+locked.rw", R | W, MAP_SHARED | MAP_LOCKED, false},
		{"shared+noreserve.rw", R | W, MAP_SHARED | MAP_NORESERVE,
		 false},
		{"shared+hugetlb.rw", R | W, MAP_SHARED | MAP_HUGETLB, false},
#ifdef MAP_32BIT
		{"shared+32bit.rw", R | W, MAP_SHARED | MAP_32BIT, true},
#endif
		{"shared+growsdown.rw", R | W, MAP_SHARED | MAP_GROWSDOWN,
		 false},
		{"notype.rw", R | W, 0, true},
	};
	char name[64];

	for (size_t i = 0; i < sizeof(kind) / sizeof(kind[0]); i++) {
		if (!kind[i].only_one) {
			snprintf(name, sizeof(name), "mmap.4pages.%s",
				 kind[i].name);
			map_and_touch(name, four, 4, kind[i].prot,
				      kind[i].flags);
		}
		snprintf(name, sizeof(name), "mmap.1page.%s", kind[i].name);
		map_and_touch(name, one, 1, kind[i].prot, kind[i].flags);
	}
	line("mmap.4pages.private.first-page-only", "%s",
	     try_map(four, PAGE, R | W, MAP_PRIVATE, 0));
}

static void range(int fd, const char *what, size_t len, off_t off)
{
	char name[64];

	snprintf(name, sizeof(name), "mmap.range.%s", what);
	line(name, "%s", try_map(fd, len, R | W, MAP_SHARED, off));
}

static void ranges(int fd)
{
	range(fd, "len0", 0, 0);
	range(fd, "len1", 1, 0);
	range(fd, "len.size-1", 4 * PAGE - 1, 0);
	range(fd, "len.size+1", 4 * PAGE + 1, 0);
	range(fd, "off1", PAGE, 1);
	range(fd, "off.page.len3", 3 * PAGE, PAGE);
	range(fd, "off.page.len4", 4 * PAGE, PAGE);
	range(fd, "off.last", PAGE, 3 * PAGE);
	range(fd, "off.end", PAGE, 4 * PAGE);
	range(fd, "off.-page", PAGE, -PAGE);
	range(fd, "off.2^62", PAGE, (off_t)1 << 62);
	range(fd, "len.2^46", (size_t)1 << 46, 0);
	range(fd, "len.2^63", (size_t)1 << 63, 0);
}

static void alias(int fd)
{
	char *whole = mmap(NULL, 4 * PAGE, R | W, MAP_SHARED, fd, 0);
	char *third = mmap(NULL, PAGE, R | W, MAP_SHARED, fd, 2 * PAGE);

	if (whole == MAP_FAILED || third == MAP_FAILED) {
		line("mmap.alias.offset", "%s", res_errno(errno));
		return;
	}
	third[5] = 77;
	line("mmap.alias.offset", "%s",
	     whole[2 * PAGE + 5] == 77 ? "same memory" : "other memory");
	munmap(whole, 4 * PAGE);
	munmap(third, PAGE);
}

static void in_maps(const char *name, const void *at)
{
	char text[512], perms[8], path[256];
	unsigned long start, off, ino;
	FILE *file = fopen("/proc/self/maps", "re");
	int used;

	while (file && fgets(text, sizeof(text), file)) {
		text[strcspn(text, "\n")] = '\0';
		used = 0;
		if (sscanf(text, "%lx-%*x %7s %lx %*s %lu %n", &start, perms,
			   &off, &ino, &used) < 4 ||
		    start != (unsigned long)at)
			continue;
		snprintf(path, sizeof(path), "%s", text + used);
		line(name, "perms=%s off=%lu ino=%s path='%s'", perms, off,
		     ino ? "nonzero" : "0", path);
	}
	if (file)
		fclose(file);
}

static void smaps_line(const char *key, const void *at)
{
	char text[512], name[64];
	unsigned long start;
	bool here = false;
	FILE *file = fopen("/proc/self/smaps", "re");

	snprintf(name, sizeof(name), "mmap.smaps.%s", key);
	while (file && fgets(text, sizeof(text), file)) {
		if (sscanf(text, "%lx-", &start) == 1 && strchr(text, '-'))
			here = start == (unsigned long)at;
		if (here && strncmp(text, key, strlen(key)) == 0 &&
		    text[strlen(key)] == ':') {
			const char *value = text + strlen(key) + 1;

			text[strcspn(text, "\n")] = '\0';
			line(name, "%s", value + strspn(value, " "));
		}
	}
	if (file)
		fclose(file);
}

static void areas(int fd)
{
	unsigned char present[4];
	char *at = mmap(NULL, 4 * PAGE, R | W, MAP_SHARED, fd, 0);
	int r;

	at[0] = 1;
	in_maps("mmap.maps", at);
	smaps_line("Size", at);
	smaps_line("Rss", at);
	r = mincore(at, 4 * PAGE, present);
	if (r)
		line("mmap.mincore", "%s", res(r));
	else
		line("mmap.mincore", "ok %d%d%d%d", present[0] & 1,
		     present[1] & 1, present[2] & 1, present[3] & 1);
	munmap(at, 4 * PAGE);
	buf_set_name(fd, "viadup");
	at = mmap(NULL, 4 * PAGE, R, MAP_SHARED, fd, 0);
	in_maps("name.in-maps", at);
	munmap(at, 4 * PAGE);
}

static void protections(int fd)
{
	char *at = mmap(NULL, 4 * PAGE, R | W, MAP_SHARED, fd, 0);

	mprotect(at, 4 * PAGE, R);
	line("mprotect.r.access", "%s", touch(at));
	line("mprotect.none", "%s", res(mprotect(at, 4 * PAGE, 0)));
	line("mprotect.none.access", "%s", touch(at));
	line("mprotect.rw", "%s", res(mprotect(at, 4 * PAGE, R | W)));
	line("mprotect.rw.access", "%s", touch(at));
	line("mprotect.middle-page.r", "%s", res(mprotect(at + PAGE, PAGE, R)));
	line("mprotect.middle-page.access", "%s", touch(at + PAGE));
	munmap(at, 4 * PAGE);
}

void walk_mmap(void)
{
	int four = buf_alloc(4 * PAGE, O_RDWR | O_CLOEXEC);
	int one = buf_alloc(PAGE, O_RDWR | O_CLOEXEC);
	int odd = buf_alloc(4097, O_RDWR | O_CLOEXEC);

	kinds(four, one);
	ranges(four);
	line("mmap.odd4097.4097", "%s", try_map(odd, 4097, R, MAP_SHARED, 0));
	alias(four);
	areas(four);
	protections(four);
	close(four);
	close(one);
	close(odd);
}
