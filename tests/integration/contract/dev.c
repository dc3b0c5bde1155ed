/* SPDX-License-Identifier: MIT */
#include "contract.h"

#include <dirent.h>
#include <limits.h>
#include <sys/epoll.h>
#include <sys/sysmacros.h>

static void directory(void)
{
	struct stat st;
	struct dirent *entry;
	DIR *dir;

	if (stat("/dev/dma_heap", &st))
		line("dev.dir", "%s", res_errno(errno));
	else
		line("dev.dir", "type=%s mode=0%o uid=%u gid=%u",
		     file_type(st.st_mode), st.st_mode & 07777, st.st_uid,
		     st.st_gid);
	dir = opendir("/dev/dma_heap");
	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			line("dev.dir.entry", "%s d_type=%s", entry->d_name,
			     entry->d_type == DT_CHR ? "chr" : "other");
	if (dir)
		closedir(dir);
}

static void node(void)
{
	struct stat st;
	char path[PATH_MAX];
	int fd;

	if (stat(contract_heap, &st))
		line("dev.stat", "%s", res_errno(errno));
	else
		line("dev.stat",
		     "type=%s mode=0%o uid=%u gid=%u size=%lld nlink=%llu "
		     "major=#N minor=%u",
		     file_type(st.st_mode), st.st_mode & 07777, st.st_uid,
		     st.st_gid, (long long)st.st_size,
		     (unsigned long long)st.st_nlink, minor(st.st_rdev));
	line("dev.lstat", "%s", res(lstat(contract_heap, &st)));
	line("dev.access.R", "%s", res(access(contract_heap, R_OK)));
	line("dev.access.W", "%s", res(access(contract_heap, W_OK)));
	line("dev.stat.nonexistent", "%s",
	     res(stat("/dev/dma_heap/nonexistent", &st)));
	fd = open("/dev/dma_heap/nonexistent", O_RDWR);
	line("dev.open.nonexistent", "%s", res(fd));
	snprintf(path, sizeof(path), "%s/", contract_heap);
	line("dev.open.trailing-slash", "%s", res(open(path, O_RDWR)));
	snprintf(path, sizeof(path), "%s/below", contract_heap);
	line("dev.open.below", "%s", res(open(path, O_RDWR)));
	snprintf(path, sizeof(path), "/dev/./dma_heap/../dma_heap//%s",
		 contract_heap_name);
	fd = open(path, O_RDWR);
	line("dev.open.dot-path", "%s", res(fd));
	close(fd);
	fd = open("/dev/dma_heap", O_RDONLY | O_DIRECTORY);
	line("dev.open.dir", "%s", res(fd));
	close(fd);
}

static void alloc_through(const char *name, int heap)
{
	char full[64];
	int fd = heap_alloc_on(heap, PAGE, O_RDWR | O_CLOEXEC);

	snprintf(full, sizeof(full), "%s.alloc", name);
	if (fd < 0) {
		line(full, "%s", res_errno(errno));
		return;
	}
	line(full, "ok mmap-rw %s",
	     try_map(fd, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, 0));
	close(fd);
}

static void modes(void)
{
	static const struct {
		const char *name;
		int flags;
	} mode[] = {
		{"RDONLY", O_RDONLY},
		{"WRONLY", O_WRONLY},
		{"RDWR", O_RDWR},
		{"ACCMODE3", 3},
		{"RDONLY|CLOEXEC", O_RDONLY | O_CLOEXEC},
		{"RDWR|NONBLOCK", O_RDWR | O_NONBLOCK},
		{"RDWR|TRUNC", O_RDWR | O_TRUNC},
		{"RDWR|APPEND", O_RDWR | O_APPEND},
		{"RDWR|CREAT", O_RDWR | O_CREAT},
		{"RDWR|CREAT|EXCL", O_RDWR | O_CREAT | O_EXCL},
		{"RDONLY|DIRECTORY", O_RDONLY | O_DIRECTORY},
		{"RDWR|DIRECT", O_RDWR | O_DIRECT},
		{"RDWR|SYNC", O_RDWR | O_SYNC},
		{"RDWR|NOFOLLOW", O_RDWR | O_NOFOLLOW},
		{"PATH", O_PATH},
		{"RDWR|TMPFILE", O_RDWR | O_TMPFILE},
	};
	char name[64];

	for (size_t i = 0; i < sizeof(mode) / sizeof(mode[0]); i++) {
		int fd = heap_open(mode[i].flags);

		snprintf(name, sizeof(name), "dev.open.%s", mode[i].name);
		if (fd < 0) {
			line(name, "%s", res_errno(errno));
			continue;
		}
		line(name, "ok getfl=0%o getfd=%d", fcntl(fd, F_GETFL),
		     fcntl(fd, F_GETFD));
		alloc_through(name, fd);
		close(fd);
	}
}

static void proc_devices(void)
{
	FILE *file = fopen("/proc/devices", "re");
	char text[128];
	int n = 0;

	while (file && fgets(text, sizeof(text), file))
		n += strstr(text, " dma_heap\n") != NULL;
	if (file)
		fclose(file);
	line("dev.proc-devices", "%d line(s) named dma_heap", n);
}

void walk_dev(void)
{
	char path[PATH_MAX];

	directory();
	node();
	modes();
	snprintf(path, sizeof(path), "/sys/class/dma_heap/%s/uevent",
		 contract_heap_name);
	file_lines("dev.sysfs.uevent", path);
	proc_devices();
}

static void heapfd_file(int heap)
{
	struct stat st;
	char path[64], link[128];
	ssize_t n;

	if (fstat(heap, &st))
		line("heapfd.fstat", "%s", res_errno(errno));
	else
		line("heapfd.fstat", "type=%s mode=0%o size=%lld",
		     file_type(st.st_mode), st.st_mode & 07777,
		     (long long)st.st_size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", heap);
	n = readlink(path, link, sizeof(link) - 1);
	link[n > 0 ? n : 0] = '\0';
	line("heapfd.readlink", "%s", n < 0 ? res_errno(errno) : link);
	line("heapfd.lseek.END", "%s", res(lseek(heap, 0, SEEK_END)));
	line("heapfd.lseek.SET", "%s", res(lseek(heap, 0, SEEK_SET)));
	line("heapfd.lseek.CUR", "%s", res(lseek(heap, 0, SEEK_CUR)));
}

static void heapfd_io(int heap)
{
	char byte = 0;

	line("heapfd.read", "%s", res(read(heap, &byte, 1)));
	line("heapfd.write", "%s", res(write(heap, &byte, 1)));
	line("heapfd.pread", "%s", res(pread(heap, &byte, 1, 0)));
	line("heapfd.ftruncate", "%s", res(ftruncate(heap, 0)));
	line("heapfd.fallocate", "%s", res(fallocate(heap, 0, 0, PAGE)));
	line("heapfd.fsync", "%s", res(fsync(heap)));
	line("heapfd.mmap.private", "%s",
	     try_map(heap, PAGE, PROT_READ, MAP_PRIVATE, 0));
}

static void heapfd_wait(int heap)
{
	struct pollfd polled = {.fd = heap, .events = POLLIN | POLLOUT};
	struct epoll_event event = {.events = EPOLLIN};
	int epoll = epoll_create1(EPOLL_CLOEXEC), r;

	r = poll(&polled, 1, 0);
	line("heapfd.poll", "ret=%d revents=0x%x", r,
	     (unsigned int)polled.revents);
	line("heapfd.epoll_add", "%s",
	     res(epoll_ctl(epoll, EPOLL_CTL_ADD, heap, &event)));
	close(epoll);
	errno = 0;
	r = isatty(heap);
	line("heapfd.isatty", "%d %s", r, res_errno(errno));
}

static void heapfd_copies(int heap)
{
	char path[64];
	int again, fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", heap);
	again = open(path, O_RDWR | O_CLOEXEC);
	line("heapfd.reopen-proc", "%s", res(again));
	fd = heap_alloc_on(again, PAGE, O_RDWR | O_CLOEXEC);
	line("heapfd.reopen-proc.alloc", "%s", res(fd));
	close(fd);
	close(again);
	again = dup(heap);
	fd = heap_alloc_on(again, PAGE, O_RDWR | O_CLOEXEC);
	line("heapfd.dup.alloc", "%s", res(fd));
	close(fd);
	close(again);
}

void walk_heapfd(void)
{
	int heap = heap_open(O_RDWR | O_CLOEXEC);

	if (heap < 0) {
		line("heapfd", "%s", res_errno(errno));
		return;
	}
	heapfd_file(heap);
	heapfd_io(heap);
	heapfd_wait(heap);
	heapfd_copies(heap);
	close(heap);
}
