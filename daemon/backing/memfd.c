/* SPDX-License-Identifier: MIT */
#include "backing/memfd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/memfd.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U /* since 6.3 */
#endif
#ifndef F_SEAL_EXEC
#define F_SEAL_EXEC 0x0020 /* since 6.3 */
#endif

/* Not F_SEAL_WRITE: clients write. Nobody may resize, or add that seal. */
#define SEALS          (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define MODE           0600
#define ATTRIBUTE      "user.dmaheap"
#define IDENTITY_MAGIC 0x31484d44u /* "DMH1" */

/* What the attribute holds. Read by a later daemon, so the layout stays. */
struct identity_attribute {
	uint32_t magic;
	uint32_t uid;
	uint64_t id;
	uint64_t size_bytes;
	uint32_t page_size_bytes;
	uint32_t blocks[BACKING_ORDER_COUNT];
	char heap[BACKING_HEAP_NAME_BYTES];
};
static_assert(sizeof(struct identity_attribute) == 104, "layout on file");

static int create(const char *name, unsigned int flags)
{
	int fd = memfd_create(name, flags | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(name, flags);
	return fd;
}

int memfd_make(const char *name, uint64_t size_bytes, bool hugetlb,
	       int *ret_own)
{
	unsigned int flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	_cleanup_(fd_closep) int first = -1;
	_cleanup_(fd_closep) int own = -1;
	int r;

	if (hugetlb)
		flags |= MFD_HUGETLB | (unsigned int)MFD_HUGE_2MB;
	first = create(name, flags);
	if (first < 0)
		return err_raise(-errno);
	if (ftruncate(first, (off_t)size_bytes) < 0 || fchmod(first, MODE) < 0)
		return err_raise(-errno);
	r = memfd_reopen(first, O_RDWR, &own);
	if (r)
		return err_trace(r);
	if (fcntl(own, F_ADD_SEALS, SEALS) < 0)
		return err_raise(-errno);
	*ret_own = TAKE_FD(own);
	return 0;
}

int memfd_reopen(int fd, uint32_t flags, int *ret_fd)
{
	char path[32];
	int new_fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	new_fd = open(path, (int)flags | O_CLOEXEC | O_NONBLOCK);
	if (new_fd < 0)
		return err_raise(-errno);
	/* Needed for the open only; a dma-buf shows its access mode alone. */
	if (fcntl(new_fd, F_SETFL, flags & O_ACCMODE) < 0) {
		fd_close(new_fd);
		return err_raise(-EIO);
	}
	*ret_fd = new_fd;
	return 0;
}

int memfd_open_directory(void)
{
	int fd = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? err_raise(-errno) : fd;
}

int memfd_open_own(int directory, int own, uint32_t flags, int *ret_fd)
{
	char name[12], *digit = name + sizeof(name) - 1;
	int new_fd;

	*digit = '\0';
	do
		*--digit = (char)('0' + own % 10);
	while ((own /= 10) > 0);
	new_fd = openat(directory, digit, (int)flags | O_CLOEXEC);
	if (new_fd < 0)
		return err_raise(-errno);
	*ret_fd = new_fd;
	return 0;
}

int memfd_lease_take(int own)
{
	return fcntl(own, F_SETLEASE, F_WRLCK) < 0 ? -errno : 0;
}

bool memfd_lease_is_whole(int own)
{
	/* While somebody waits for its end it reads as what it is to become. */
	return fcntl(own, F_GETLEASE) == F_WRLCK;
}

bool memfd_lease_give(int own)
{
	bool whole = memfd_lease_is_whole(own);

	return fcntl(own, F_SETLEASE, F_UNLCK) == 0 && whole;
}

/* A lock of the description's, far behind what any client would lock. */
int memfd_claim(int own)
{
	struct flock lock = {.l_type = F_WRLCK,
			     .l_whence = SEEK_SET,
			     .l_start = INT64_MAX - 1,
			     .l_len = 1};

	return fcntl(own, F_OFD_SETLK, &lock) < 0 ? -errno : 0;
}

int memfd_trim(int own, uint64_t size_bytes, struct stat *ret)
{
	if (fstat(own, ret) < 0)
		return err_raise(-errno);
	if ((uint64_t)ret->st_blocks * 512 <= size_bytes)
		return 0;
	(void)fallocate(own, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			(off_t)size_bytes, (off_t)MIB(2));
	return fstat(own, ret) < 0 ? err_raise(-errno) : 0;
}

bool memfd_is_whole(int own, uint64_t size_bytes)
{
	struct stat st;

	return fstat(own, &st) == 0 && (uint64_t)st.st_size == size_bytes &&
	       (uint64_t)st.st_blocks * 512 == size_bytes;
}

int memfd_punch(int own, uint64_t offset_bytes, uint64_t len_bytes)
{
	if (fallocate(own, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		      (off_t)offset_bytes, (off_t)len_bytes) < 0)
		return err_raise(-errno);
	return 0;
}

int memfd_write_identity(int own, const struct backing_identity *id)
{
	struct identity_attribute a = {
		.magic = IDENTITY_MAGIC,
		.uid = id->uid,
		.id = id->id,
		.size_bytes = id->size_bytes,
		.page_size_bytes = id->page_size_bytes,
	};

	memcpy(a.blocks, id->blocks, sizeof(a.blocks));
	memcpy(a.heap, id->heap, sizeof(a.heap));
	if (fsetxattr(own, ATTRIBUTE, &a, sizeof(a), 0) < 0)
		return err_raise(-errno);
	return 0;
}

static int refuse(char *error, const char *why)
{
	snprintf(error, BACKING_ERROR_BYTES,
		 "the descriptor is not a buffer of an earlier daemon: %s",
		 why);
	return BACKING_E_FOREIGN;
}

/* The file itself: only its owner could have given it these properties. */
static int check_file(int fd, struct stat *st, char *error)
{
	struct statfs fs;
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0)
		return refuse(error, "it has no seals");
	if ((seals & ~F_SEAL_EXEC) != SEALS)
		return refuse(error, "its seals are others");
	if (fstat(fd, st) < 0 || fstatfs(fd, &fs) < 0)
		return refuse(error, "it cannot be examined");
	if (!S_ISREG(st->st_mode) ||
	    (fs.f_type != TMPFS_MAGIC && fs.f_type != HUGETLBFS_MAGIC))
		return refuse(error, "it is no memfd");
	if (st->st_nlink != 0)
		return refuse(error, "it has a name in a file system");
	if (st->st_uid != geteuid())
		return refuse(error, "it belongs to another user");
	if ((st->st_mode & 07777) != MODE)
		return refuse(error, "its mode is not 0600");
	return 0;
}

/* The attribute against the file; a daemon of our own uid wrote it. */
static int check_attribute(const struct identity_attribute *a,
			   const struct stat *st, char *error)
{
	uint64_t bytes = 0;

	if (a->magic != IDENTITY_MAGIC || a->heap[0] == '\0' ||
	    !memchr(a->heap, '\0', sizeof(a->heap)))
		return refuse(error, "its attribute is malformed");
	if (!is_power_of_2(a->page_size_bytes) || a->page_size_bytes < 4096)
		return refuse(error, "its attribute has a bad page size");
	if (a->size_bytes == 0 || a->size_bytes != (uint64_t)st->st_size)
		return refuse(error, "its size is not what it was");
	for (unsigned int i = 0; i < BACKING_ORDER_COUNT; i++)
		bytes += ((uint64_t)a->blocks[i] * a->page_size_bytes) << i;
	if (bytes != a->size_bytes)
		return refuse(error, "its blocks do not add up to its size");
	return 0;
}

int memfd_read_identity(int fd, struct backing_identity *ret,
			struct stat *ret_st, char *error)
{
	struct identity_attribute a;
	int r = check_file(fd, ret_st, error);

	if (r)
		return r;
	if (fgetxattr(fd, ATTRIBUTE, &a, sizeof(a)) != sizeof(a))
		return refuse(error, "it has no attribute " ATTRIBUTE);
	r = check_attribute(&a, ret_st, error);
	if (r)
		return r;
	ret->id = a.id;
	ret->uid = a.uid;
	ret->size_bytes = a.size_bytes;
	ret->page_size_bytes = a.page_size_bytes;
	memcpy(ret->heap, a.heap, sizeof(ret->heap));
	memcpy(ret->blocks, a.blocks, sizeof(ret->blocks));
	return 0;
}
