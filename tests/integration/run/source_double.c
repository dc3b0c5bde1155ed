/* SPDX-License-Identifier: MIT */
/*
 * A double of client/run/source.c that needs no daemon: each buffer is a memfd
 * made here. For tests of what dmaheap-run itself does, and of failures that a
 * real daemon gives rarely. The environment says how it behaves:
 *   DOUBLE_STALL_MS  every allocation takes so long
 *   DOUBLE_FAIL      every allocation fails with this errno
 *   DOUBLE_WHY       and this sentence
 */
#include "run/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct source {
	atomic_uint_fast64_t next_id;
	long stall_ms;
	int fail;
};

static long number_of(const char *name)
{
	const char *text = getenv(name);

	return text ? atol(text) : 0;
}

int source_new(struct source **ret, const char *socket_path,
	       unsigned int max_handles)
{
	struct source *source = calloc(1, sizeof(*source));

	(void)socket_path;
	(void)max_handles;
	if (!source)
		return -ENOMEM;
	source->stall_ms = number_of("DOUBLE_STALL_MS");
	source->fail = (int)number_of("DOUBLE_FAIL");
	*ret = source;
	return 0;
}

const char *source_socket_path(const struct source *source)
{
	(void)source;
	return NULL;
}

struct source *source_free(struct source *source)
{
	free(source);
	return NULL;
}

int source_heaps(struct source *source,
		 char (*ret_names)[DMAHEAP_NAME_MAX_BYTES], size_t capacity)
{
	static const char *const names[] = {"system", "system-uncached",
					    "linux,cma", "reserved"};
	size_t n = 0;

	(void)source;
	for (; n < 4 && n < capacity; n++)
		(void)snprintf(ret_names[n], DMAHEAP_NAME_MAX_BYTES, "%s",
			       names[n]);
	return (int)n;
}

static int reopen(int fd, uint32_t flags)
{
	char path[32];
	int r;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r = open(path, (int)(flags & O_ACCMODE) | O_CLOEXEC);
	return r < 0 ? -errno : r;
}

static int make(const char *heap, uint64_t id, uint64_t size, uint32_t flags)
{
	char name[64];
	int fd, r;

	(void)snprintf(name, sizeof(name), "dmaheap:%s:%llu", heap,
		       (unsigned long long)id);
	fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	if (size > UINT64_C(1) << 32 || fchmod(fd, 0600) ||
	    ftruncate(fd, (off_t)size) || fallocate(fd, 0, 0, (off_t)size) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		r = -ENOMEM;
	else
		r = reopen(fd, flags);
	(void)close(fd);
	return r;
}

int source_alloc(struct source *source, const char *heap, uint64_t len_bytes,
		 uint32_t fd_flags, struct dmaheap_alloc_report *ret_report,
		 char ret_why[DMAHEAP_ERROR_TEXT_MAX_BYTES])
{
	struct timespec stall = {source->stall_ms / 1000,
				 source->stall_ms % 1000 * 1000000};
	uint64_t id = atomic_fetch_add(&source->next_id, 1) + 1;
	uint64_t size = (len_bytes + 4095) & ~UINT64_C(4095);

	ret_why[0] = '\0';
	(void)nanosleep(&stall, NULL);
	if (source->fail) {
		(void)snprintf(ret_why, DMAHEAP_ERROR_TEXT_MAX_BYTES, "%s",
			       getenv("DOUBLE_WHY")
				       ? getenv("DOUBLE_WHY")
				       : "the double was asked to fail");
		return -source->fail;
	}
	memset(ret_report, 0, sizeof(*ret_report));
	ret_report->id = id;
	ret_report->size_bytes = size;
	ret_report->blocks[0] = (uint32_t)(size / 4096);
	ret_report->modelled_stall_ns = (uint64_t)source->stall_ms * 1000000;
	ret_report->waited_stall_ns = ret_report->modelled_stall_ns;
	return make(heap, id, size, fd_flags);
}

int source_daemon_pid(struct source *source)
{
	(void)source;
	return 0;
}

void source_daemon_died(struct source *source)
{
	source->fail = ENOMEM;
}

int source_set_name(struct source *source, int fd, const char *name)
{
	(void)source;
	(void)fd;
	(void)name;
	return 0;
}
