/* SPDX-License-Identifier: MIT */
#include "contract.h"

#include <limits.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <sys/xattr.h>

#define SIZE (4 * PAGE)

static void seeks(int fd)
{
	static const struct {
		const char *name;
		off_t off;
		int whence;
	} seek[] = {
		{"END.0", 0, SEEK_END},
		{"END.1", 1, SEEK_END},
		{"END.-1", -1, SEEK_END},
		{"END.-4096", -4096, SEEK_END},
		{"SET.0", 0, SEEK_SET},
		{"SET.1", 1, SEEK_SET},
		{"SET.-1", -1, SEEK_SET},
		{"SET.4096", 4096, SEEK_SET},
		{"CUR.0", 0, SEEK_CUR},
		{"CUR.1", 1, SEEK_CUR},
		{"DATA.0", 0, SEEK_DATA},
		{"HOLE.0", 0, SEEK_HOLE},
		{"5.0", 0, 5},
		{"-1.0", 0, -1},
	};
	char name[64];

	for (size_t i = 0; i < sizeof(seek) / sizeof(seek[0]); i++) {
		off_t r = lseek(fd, seek[i].off, seek[i].whence);

		snprintf(name, sizeof(name), "buf.lseek.%s", seek[i].name);
		if (i == 0 && r >= 0)
			line(name, "ok %lld", (long long)r);
		else
			line(name, "%s", res(r));
	}
}

static void fdinfo(const char *name, int fd)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	file_lines(name, path);
}

static void stats(int fd)
{
	int second = buf_alloc(SIZE, O_RDWR | O_CLOEXEC), copy = dup(fd);
	struct stat st, other;

	fstat(fd, &st);
	line("buf.fstat",
	     "type=%s mode=0%o nlink=%llu uid=%u gid=%u rdev=%llu size=%lld "
	     "blksize=%ld blocks=%lld",
	     file_type(st.st_mode), st.st_mode & 07777,
	     (unsigned long long)st.st_nlink, st.st_uid, st.st_gid,
	     (unsigned long long)st.st_rdev, (long long)st.st_size,
	     (long)st.st_blksize, (long long)st.st_blocks);
	line("buf.fstat.times", "atime=%s mtime=%s ctime=%s",
	     st.st_atime ? "set" : "0", st.st_mtime ? "set" : "0",
	     st.st_ctime ? "set" : "0");
	fstat(second, &other);
	line("buf.fstat.ino", "second-first=%lld same-dev=%d",
	     (long long)(other.st_ino - st.st_ino), other.st_dev == st.st_dev);
	line("buf.fstat.dev", "major=%u", (unsigned int)(st.st_dev >> 8));
	fstat(copy, &other);
	line("buf.dup.fstat", "same-ino=%d", other.st_ino == st.st_ino);
	line("buf.fstatat-empty", "%s",
	     res(fstatat(fd, "", &other, AT_EMPTY_PATH)));
	close(copy);
	close(second);
}

static void reads_and_writes(int fd)
{
	char byte = 0;
	struct iovec iov = {&byte, 1};

	line("buf.read", "%s", res(read(fd, &byte, 1)));
	line("buf.read.0", "%s", res(read(fd, &byte, 0)));
	line("buf.write", "%s", res(write(fd, &byte, 1)));
	line("buf.pread", "%s", res(pread(fd, &byte, 1, 0)));
	line("buf.pwrite", "%s", res(pwrite(fd, &byte, 1, 0)));
	line("buf.readv", "%s", res(readv(fd, &iov, 1)));
	line("buf.writev", "%s", res(writev(fd, &iov, 1)));
	line("buf.preadv2", "%s", res(preadv2(fd, &iov, 1, 0, 0)));
}

static void sizes_and_syncs(int fd)
{
	line("buf.ftruncate.same", "%s", res(ftruncate(fd, SIZE)));
	line("buf.ftruncate.0", "%s", res(ftruncate(fd, 0)));
	line("buf.ftruncate.grow", "%s", res(ftruncate(fd, 2 * SIZE)));
	line("buf.fallocate", "%s", res(fallocate(fd, 0, 0, SIZE)));
	line("buf.fallocate.PUNCH", "%s",
	     res(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
			   PAGE)));
	errno = posix_fadvise(fd, 0, 0, POSIX_FADV_NORMAL);
	line("buf.posix_fadvise(errno-number)", "%s",
	     errno ? res_errno(errno) : "ok");
	line("buf.readahead", "%s", res(readahead(fd, 0, PAGE)));
	line("buf.fsync", "%s", res(fsync(fd)));
	line("buf.fdatasync", "%s", res(fdatasync(fd)));
	line("buf.sync_file_range", "%s", res(sync_file_range(fd, 0, PAGE, 0)));
}

static void transfers(int fd)
{
	int file = memfd_create("other", MFD_CLOEXEC), pipes[2];

	if (file < 0 || pipe2(pipes, O_CLOEXEC | O_NONBLOCK) ||
	    write(file, "abcd", 4) != 4 || write(pipes[1], "abcd", 4) != 4)
		return;
	line("buf.sendfile.from", "%s", res(sendfile(file, fd, NULL, 4)));
	lseek(file, 0, SEEK_SET);
	line("buf.sendfile.to", "%s", res(sendfile(fd, file, NULL, 4)));
	line("buf.copy_file_range.from", "%s",
	     res(copy_file_range(fd, NULL, file, NULL, 4, 0)));
	line("buf.splice.from", "%s",
	     res(splice(fd, NULL, pipes[1], NULL, 4, 0)));
	line("buf.splice.to", "%s",
	     res(splice(pipes[0], NULL, fd, NULL, 4, 0)));
	close(file);
	close(pipes[0]);
	close(pipes[1]);
}

static void controls(int fd)
{
	struct flock lock = {.l_type = F_RDLCK,
			     .l_whence = SEEK_SET,
			     .l_len = 1};
	int r;

	line("buf.F_GET_SEALS", "%s", res(fcntl(fd, F_GET_SEALS)));
	line("buf.F_ADD_SEALS.SHRINK", "%s",
	     res(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK)));
	line("buf.F_ADD_SEALS.0", "%s", res(fcntl(fd, F_ADD_SEALS, 0)));
	line("buf.F_GETPIPE_SZ", "%s", res(fcntl(fd, F_GETPIPE_SZ)));
	r = fcntl(fd, F_GETLEASE);
	if (r < 0)
		line("buf.F_GETLEASE", "%s", res(r));
	else
		line("buf.F_GETLEASE", "ok %d", r);
	line("buf.F_SETLEASE", "%s", res(fcntl(fd, F_SETLEASE, F_RDLCK)));
	line("buf.F_GETOWN", "%s", res(fcntl(fd, F_GETOWN)));
	line("buf.F_GETFD", "ok %d", fcntl(fd, F_GETFD));
	line("buf.F_GETFL", "0%o", fcntl(fd, F_GETFL));
	line("buf.F_SETFL.NONBLOCK", "%s", res(fcntl(fd, F_SETFL, O_NONBLOCK)));
	line("buf.F_SETFL.APPEND", "%s", res(fcntl(fd, F_SETFL, O_APPEND)));
	line("buf.F_SETFL.DIRECT", "%s", res(fcntl(fd, F_SETFL, O_DIRECT)));
	fcntl(fd, F_SETFL, 0);
	line("buf.F_SETLK", "%s", res(fcntl(fd, F_SETLK, &lock)));
	line("buf.flock", "%s", res(flock(fd, LOCK_EX | LOCK_NB)));
}

static void attributes(int fd)
{
	const struct timespec now[2] = {{0, UTIME_NOW}, {0, UTIME_NOW}};
	struct stat st;
	char list[64];
	long r;

	line("buf.fchmod", "%s", res(fchmod(fd, 0666)));
	fstat(fd, &st);
	line("buf.fchmod.after", "0%o", st.st_mode & 07777);
	line("buf.fchown", "%s", res(fchown(fd, 1, 1)));
	fstat(fd, &st);
	line("buf.fchown.after", "uid=%u gid=%u", st.st_uid, st.st_gid);
	line("buf.futimens", "%s", res(futimens(fd, now)));
	line("buf.fsetxattr", "%s", res(fsetxattr(fd, "user.x", "1", 1, 0)));
	line("buf.flistxattr", "%s", res(flistxattr(fd, list, sizeof(list))));
	line("buf.fchdir", "%s", res(fchdir(fd)));
	r = fpathconf(fd, _PC_NAME_MAX);
	line("buf.fpathconf", "%s %ld", res(r), r);
}

static void ioctls(int fd)
{
	/* FIOASYNC with 0 would change nothing, which is no error. */
	long arg[32] = {1};
	int r;

	line("buf.ioctl.FIONREAD", "%s", res(ioctl(fd, FIONREAD, arg)));
	line("buf.ioctl.FIOASYNC", "%s", res(ioctl(fd, FIOASYNC, arg)));
	line("buf.ioctl.FIOCLEX", "%s", res(ioctl(fd, FIOCLEX, arg)));
	line("buf.ioctl.FIGETBSZ", "%s", res(ioctl(fd, FIGETBSZ, arg)));
	line("buf.ioctl.FIOQSIZE", "%s", res(ioctl(fd, FIOQSIZE, arg)));
	line("buf.ioctl.FS_IOC_GETFLAGS", "%s",
	     res(ioctl(fd, FS_IOC_GETFLAGS, arg)));
	errno = 0;
	r = isatty(fd);
	line("buf.isatty", "%d %s", r, res_errno(errno));
	line("buf.ioctl.b.nr4", "%s", res(ioctl(fd, _IOWR('b', 4, int), arg)));
	line("buf.ioctl.b.nr255", "%s",
	     res(ioctl(fd, _IOWR('b', 255, int), arg)));
	line("buf.ioctl.cmd0", "%s", res(ioctl(fd, 0, arg)));
	line("buf.ioctl.0xdeadbeef", "%s", res(ioctl(fd, 0xdeadbeef, arg)));
}

void walk_buf(void)
{
	int fd = buf_alloc(SIZE, O_RDWR | O_CLOEXEC);

	seeks(fd);
	lseek(fd, 0, SEEK_END);
	fdinfo("buf.fdinfo.after-seek-end", fd);
	stats(fd);
	reads_and_writes(fd);
	sizes_and_syncs(fd);
	transfers(fd);
	controls(fd);
	/* Another one: attributes stay with the inode. */
	close(fd);
	fd = buf_alloc(SIZE, O_RDWR | O_CLOEXEC);
	ioctls(fd);
	attributes(fd);
	close(fd);
}

static void reopens(const char *path)
{
	static const struct {
		const char *name;
		int flags;
	} open_as[] = {
		{"RDONLY", O_RDONLY},
		{"WRONLY", O_WRONLY},
		{"RDWR", O_RDWR},
		{"RDWR|TRUNC", O_RDWR | O_TRUNC},
		{"RDWR|CREAT", O_RDWR | O_CREAT},
	};
	char name[64];
	int fd;

	for (size_t i = 0; i < sizeof(open_as) / sizeof(open_as[0]); i++) {
		fd = open(path, open_as[i].flags, 0600);
		snprintf(name, sizeof(name), "buf.reopen-proc.%s",
			 open_as[i].name);
		line(name, "%s", res(fd));
		close(fd);
	}
	fd = open(path, O_PATH);
	line("buf.reopen-proc.PATH", "%s", res(fd));
	line("buf.reopen-proc.PATH.ioctl", "%s",
	     res(ioctl(fd, DMA_BUF_IOCTL_SYNC,
		       &(struct dma_buf_sync){DMA_BUF_SYNC_READ})));
	line("buf.reopen-proc.PATH.mmap", "%s",
	     try_map(fd, PAGE, PROT_READ, MAP_SHARED, 0));
	close(fd);
}

void walk_proc(void)
{
	int fd = buf_alloc(1 << 20, O_RDWR | O_CLOEXEC), copy;
	char path[64], link[128];
	struct statx stx;
	struct stat st;
	ssize_t n;
	void *at;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, link, sizeof(link) - 1);
	link[n > 0 ? n : 0] = '\0';
	line("buf.readlink", "'%s'", link);
	fdinfo("buf.fdinfo", fd);
	copy = dup(fd);
	fdinfo("buf.fdinfo.dup", fd);
	close(copy);
	memset(&stx, 0, sizeof(stx));
	if (statx(fd, "", AT_EMPTY_PATH, STATX_ALL, &stx))
		line("buf.statx", "%s", res_errno(errno));
	else
		line("buf.statx",
		     "mask=0x%x mode=0%o attributes=0x%llx size=%llu",
		     stx.stx_mask & 0x1fffu, stx.stx_mode,
		     (unsigned long long)stx.stx_attributes,
		     (unsigned long long)stx.stx_size);
	at = mmap(NULL, 1 << 20, PROT_READ, MAP_SHARED, fd, 0);
	fdinfo("buf.fdinfo.mapped", fd);
	munmap(at, 1 << 20);
	reopens(path);
	line("buf.stat-proc", "%s", res(stat(path, &st)));
	line("buf.access-proc.R", "%s", res(access(path, R_OK)));
	line("buf.access-proc.X", "%s", res(access(path, X_OK)));
	line("buf.truncate-proc", "%s", res(truncate(path, 0)));
	line("buf.link-proc", "%s",
	     res(linkat(AT_FDCWD, path, AT_FDCWD, "/tmp/contract-link",
			AT_SYMLINK_FOLLOW)));
	close(fd);
}
