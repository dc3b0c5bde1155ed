/* SPDX-License-Identifier: MIT */
/* What this machine offers, found without the daemon and without privilege. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <linux/seccomp.h>

#include "ctl/facts.h"
#include "ctl/units.h"

#define THP_DIR  "/sys/kernel/mm/transparent_hugepage"
#define HUGE_DIR "/sys/kernel/mm/hugepages/hugepages-2048kB"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* since Linux 6.1; the libc may be older */
#endif

struct fact *facts_add(struct facts *facts, const char *name, bool ok,
		       const char *value, const char *reason)
{
	static struct fact spare;
	struct fact *f =
		facts->n < FACTS_MAX ? &facts->fact[facts->n++] : &spare;

	f->ok = ok;
	snprintf(f->name, sizeof(f->name), "%s", name);
	snprintf(f->value, sizeof(f->value), "%s", value);
	snprintf(f->reason, sizeof(f->reason), "%s", reason);
	return f;
}

/* The first line of @path without its end. Return: false: cannot be read. */
static bool read_line(const char *path, char *buffer, size_t size)
{
	FILE *file = fopen(path, "re");
	bool ok;

	if (!file)
		return false;
	ok = fgets(buffer, (int)size, file) != NULL;
	fclose(file);
	if (ok)
		buffer[strcspn(buffer, "\n")] = '\0';
	return ok;
}

static void kernel(struct facts *facts)
{
	struct utsname u;

	if (uname(&u) == 0)
		facts_add(facts, "kernel", true, u.release, "");
}

/* The word in brackets: "always [advise] never". */
static void bracketed(const char *line, char *word, size_t size)
{
	const char *open = strchr(line, '[');
	size_t n = open ? strcspn(open + 1, "]") : 0;

	snprintf(word, size, "%.*s", (int)n, open ? open + 1 : "");
}

static void folio_switches(struct facts *facts)
{
	static const unsigned int sizes[] = {64, 1024, 2048};
	char value[64] = "";
	bool all = true;
	size_t n = 0;

	for (size_t i = 0; i < 3; i++) {
		char path[128], line[128], word[16];

		snprintf(path, sizeof(path),
			 THP_DIR "/hugepages-%ukB/shmem_enabled", sizes[i]);
		if (!read_line(path, line, sizeof(line))) {
			facts_add(facts, "folio", false, "no switches",
				  "this kernel has no large pages per size for "
				  "shared memory");
			return;
		}
		bracketed(line, word, sizeof(word));
		all &= strcmp(word, "never") != 0;
		n += (size_t)snprintf(value + n, sizeof(value) - n, "%s%uK %s",
				      i ? ", " : "", sizes[i], word);
	}
	facts_add(facts, "folio", all, value,
		  all ? "" : "a size that is on never gives no such pages");
}

/* Tries it on a memfd of our own. Return: 0 or an errno. */
static int try_collapse(void)
{
	const size_t huge = (size_t)2 << 20;
	int fd = memfd_create("doctor", MFD_CLOEXEC), err = 0;
	char *base, *aligned;

	if (fd < 0 || ftruncate(fd, (off_t)huge) < 0) {
		err = errno;
		if (fd >= 0)
			close(fd);
		return err;
	}
	base = mmap(NULL, 2 * huge, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED) {
		close(fd);
		return ENOMEM;
	}
	aligned = (char *)(((uintptr_t)base + huge - 1) & ~(huge - 1));
	if (mmap(aligned, huge, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		 fd, 0) == MAP_FAILED ||
	    madvise(aligned, huge, MADV_POPULATE_WRITE) < 0 ||
	    madvise(aligned, huge, MADV_COLLAPSE) < 0)
		err = errno;
	munmap(base, 2 * huge);
	close(fd);
	return err;
}

static void collapse(struct facts *facts)
{
	int err = try_collapse();

	facts_add(facts, "collapse", err == 0, err ? "no" : "works",
		  err ? strerror(err) : "");
}

static void hugetlb(struct facts *facts)
{
	char total[32], free_pages[32], value[96];

	if (!read_line(HUGE_DIR "/nr_hugepages", total, sizeof(total)) ||
	    !read_line(HUGE_DIR "/free_hugepages", free_pages,
		       sizeof(free_pages))) {
		facts_add(facts, "hugetlb", false, "none",
			  "this kernel has no pages of 2 MiB to reserve");
		return;
	}
	snprintf(value, sizeof(value), "%s of %s pages of 2 MiB free",
		 free_pages, total);
	facts_add(facts, "hugetlb", strcmp(free_pages, "0") != 0, value,
		  strcmp(free_pages, "0") ? "" : "none is reserved and free");
}

static void inotify(struct facts *facts)
{
	char instances[32] = "?", watches[32] = "?", value[96];
	int fd = inotify_init1(IN_CLOEXEC), err = errno;

	read_line("/proc/sys/fs/inotify/max_user_instances", instances,
		  sizeof(instances));
	read_line("/proc/sys/fs/inotify/max_user_watches", watches,
		  sizeof(watches));
	snprintf(value, sizeof(value), "%s instances, %s watches a user",
		 instances, watches);
	facts_add(facts, "inotify", fd >= 0, value,
		  fd >= 0 ? "" : strerror(err));
	if (fd >= 0)
		close(fd);
}

static void memlock(struct facts *facts)
{
	struct rlimit l = {0};
	struct units_text text;

	getrlimit(RLIMIT_MEMLOCK, &l);
	facts_add(facts, "memlock", l.rlim_max >= 65536,
		  l.rlim_max == RLIM_INFINITY ? "unlimited"
					      : units_size(l.rlim_max, &text),
		  l.rlim_max >= 65536
			  ? ""
			  : "kernels before 5.12 charge io_uring to it");
}

/* The least limit from our cgroup up to the root; UINT64_MAX: none. */
static uint64_t least_limit(const char *mount, const char *file, char *path)
{
	uint64_t least = UINT64_MAX;

	for (;;) {
		char name[PATH_MAX], line[32];
		uint64_t limit;
		char *slash;

		if (snprintf(name, sizeof(name), "%s%s/%s", mount, path, file) <
			    (int)sizeof(name) &&
		    read_line(name, line, sizeof(line)) &&
		    units_parse_number(line, &limit) && limit < least)
			least = limit;
		slash = strrchr(path, '/');
		if (!slash || !*path)
			return least;
		*slash = '\0';
	}
}

static uint64_t cgroup_limit(void)
{
	FILE *file = fopen("/proc/self/cgroup", "re");
	uint64_t least = UINT64_MAX, limit;
	char line[PATH_MAX];

	if (!file)
		return least;
	while (fgets(line, sizeof(line), file)) {
		char *controllers = strchr(line, ':'), *path;

		path = controllers ? strchr(controllers + 1, ':') : NULL;
		if (!path)
			continue;
		*path++ = '\0';
		path[strcspn(path, "\n")] = '\0';
		if (controllers[1] == '\0')
			limit = least_limit("/sys/fs/cgroup", "memory.max",
					    path);
		else if (strstr(controllers, "memory"))
			limit = least_limit("/sys/fs/cgroup/memory",
					    "memory.limit_in_bytes", path);
		else
			continue;
		if (limit < least)
			least = limit;
	}
	fclose(file);
	return least;
}

static void cgroup(struct facts *facts)
{
	uint64_t limit = cgroup_limit();
	/* Version 1 writes "none" as the largest multiple of a page. */
	bool none = limit >= (uint64_t)INT64_MAX - 65536;
	struct units_text text;

	facts_add(facts, "cgroup", none,
		  none ? "no memory limit" : units_size(limit, &text),
		  none ? "" : "the memory of this cgroup is limited");
}

static void overcommit(struct facts *facts)
{
	char mode[32] = "?";
	bool ok;

	read_line("/proc/sys/vm/overcommit_memory", mode, sizeof(mode));
	ok = strcmp(mode, "2") != 0;
	facts_add(facts, "overcommit", ok, mode,
		  ok ? "" : "memory is promised only as far as it is there");
}

static void psi(struct facts *facts)
{
	/* Whole windows of 2 s are what ordinary users may ask for. */
	static const char trigger[] = "some 150000 2000000";
	int fd = open("/proc/pressure/memory", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, trigger, sizeof(trigger)) > 0;
	int err = errno;

	facts_add(facts, "psi", ok, ok ? "triggers work" : "no",
		  ok ? "" : strerror(err));
	if (fd >= 0)
		close(fd);
}

static void seccomp_notify(struct facts *facts)
{
	struct seccomp_notif_sizes sizes;
	int r = (int)syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes);
	int err = errno;

	facts_add(facts, "seccomp-notify", r == 0, r == 0 ? "works" : "no",
		  r == 0 ? "" : strerror(err));
}

void facts_add_host(struct facts *facts)
{
	kernel(facts);
	folio_switches(facts);
	collapse(facts);
	hugetlb(facts);
	inotify(facts);
	memlock(facts);
	cgroup(facts);
	overcommit(facts);
	psi(facts);
	seccomp_notify(facts);
}
