/* SPDX-License-Identifier: MIT */
/* Programs that look closely at single calls. */
#include "scenario.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <linux/sync_file.h>
#include <poll.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static struct dma_heap_allocation_data *argument(int prot)
{
	struct dma_heap_allocation_data *data =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	EXPECT(data != MAP_FAILED);
	data->len = 65536;
	data->fd_flags = O_RDWR | O_CLOEXEC;
	EXPECT(mprotect(data, 4096, prot) == 0);
	return data;
}

/* Open descriptors of the parent, which is the supervisor. */
static int count_parents_fds(void)
{
	char path[64];
	int n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)getppid());
	dir = opendir(path);
	EXPECT(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* Replies into memory that cannot take them: EFAULT, nothing else. */
int scenario_bad_pointers(int argc, char **argv)
{
	const char *volatile nowhere = NULL; /* hidden from the compiler */
	int heap = heap_open(), before = count_fds(), file;
	int parents = count_parents_fds();
	struct dma_heap_allocation_data *data;

	(void)argc;
	(void)argv;
	for (int i = 0; i < 100; i++) {
		data = argument(PROT_READ);
		EXPECT(ioctl(heap, DMA_HEAP_IOCTL_ALLOC, data) < 0);
		EXPECT(errno == EFAULT);
		EXPECT(data->fd == 0 && data->len == 65536);
		EXPECT(mprotect(data, 4096, PROT_NONE) == 0);
		EXPECT(ioctl(heap, DMA_HEAP_IOCTL_ALLOC, data) < 0);
		EXPECT(errno == EFAULT);
		EXPECT(mprotect(data, 4096, PROT_READ) == 0);
		EXPECT(data->fd == 0 && data->len == 65536);
		munmap(data, 4096);
		EXPECT(ioctl(heap, DMA_HEAP_IOCTL_ALLOC, data) < 0);
		EXPECT(errno == EFAULT);
	}
	/* Half of it at the end of readable memory. */
	data = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	EXPECT(mprotect((char *)data + 4096, 4096, PROT_NONE) == 0);
	data->len = 65536;
	data->fd_flags = O_RDWR;
	memcpy((char *)data + 4096 - 16, data, 16);
	EXPECT(ioctl(heap, DMA_HEAP_IOCTL_ALLOC, (char *)data + 4096 - 16) < 0);
	EXPECT(errno == EFAULT);
	/* A read-only file mapping must keep the file's content. */
	file = memfd_create("args", 0);
	EXPECT(pwrite(file, data, sizeof(*data), 0) == sizeof(*data));
	data = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, file, 0);
	EXPECT(ioctl(heap, DMA_HEAP_IOCTL_ALLOC, data) < 0);
	EXPECT(errno == EFAULT && data->fd == 0);
	close(file);
	EXPECT(ioctl(heap, DMA_HEAP_IOCTL_ALLOC, NULL) < 0 && errno == EFAULT);
	EXPECT(open(nowhere, O_RDONLY) < 0 && errno == EFAULT);
	EXPECT(stat("/dev/dma_heap/system", (void *)8) < 0 && errno == EFAULT);
	EXPECT(count_fds() == before);
	/* Fewer, if it was still closing what it started us with. */
	EXPECT(count_parents_fds() <= parents);
	return 0;
}

static bool is_heap(int fd)
{
	int buffer = heap_alloc(fd, 4096);

	if (buffer < 0)
		return false;
	close(buffer);
	close(fd);
	return true;
}

/* All the ways to write the path. Argument: a directory to play in. */
int scenario_paths(int argc, char **argv)
{
	char text[PATH_MAX], path[PATH_MAX];
	struct stat st;
	int dir;

	EXPECT(argc == 2 && chdir(argv[1]) == 0);
	EXPECT(is_heap(open("/dev/../dev/./dma_heap//system", O_RDWR)));
	dir = open("/dev", O_RDONLY | O_DIRECTORY);
	EXPECT(is_heap(openat(dir, "dma_heap/system", O_RDWR)));
	EXPECT(fstatat(dir, "dma_heap/system", &st, 0) == 0);
	EXPECT(S_ISCHR(st.st_mode));
	EXPECT(faccessat(dir, "dma_heap", R_OK, 0) == 0);
	EXPECT(chdir("/dev") == 0);
	EXPECT(is_heap(open("dma_heap/system", O_RDWR)));
	EXPECT(chdir(argv[1]) == 0);
	close(dir);

	dir = open("/dev/dma_heap", O_RDONLY | O_DIRECTORY);
	EXPECT(is_heap(openat(dir, "system", O_RDWR)));
	EXPECT(is_heap(openat(dir, "./system", O_RDWR)));
	EXPECT(is_heap(openat(dir, "../dma_heap/system", O_RDWR)));
	EXPECT(openat(dir, "nothing", O_RDWR) < 0 && errno == ENOENT);
	EXPECT(fstatat(dir, "system", &st, AT_SYMLINK_NOFOLLOW) == 0);
	EXPECT(S_ISCHR(st.st_mode));
	EXPECT(fchdir(dir) == 0);
	EXPECT(is_heap(open("system", O_RDWR)));
	EXPECT(chdir(argv[1]) == 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d/system", dir);
	EXPECT(is_heap(open(path, O_RDWR)));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", dir);
	EXPECT(readlink(path, text, sizeof(text)) == 13);
	EXPECT(memcmp(text, "/dev/dma_heap", 13) == 0);
	close(dir);

	/* Links to the heap, to the directory, and to what leads there. */
	EXPECT(symlink("/dev/dma_heap/system", "to_the_dma_heap") == 0);
	EXPECT(is_heap(open("to_the_dma_heap", O_RDWR)));
	EXPECT(open("to_the_dma_heap", O_RDWR | O_NOFOLLOW) < 0);
	EXPECT(errno == ELOOP);
	EXPECT(symlink("/dev/dma_heap", "heaps") == 0);
	EXPECT(is_heap(open("heaps/system", O_RDWR)));
	EXPECT(symlink("/dev", "device") == 0);
	EXPECT(is_heap(open("device/dma_heap/system", O_RDWR)));
	EXPECT(symlink("/dev/dma_heap/system", "camera") == 0);
	EXPECT(is_heap(open("camera", O_RDWR)));
	EXPECT(stat("camera", &st) == 0 && S_ISCHR(st.st_mode));
	EXPECT(lstat("camera", &st) == 0 && S_ISLNK(st.st_mode));

	EXPECT(readlink("/dev/dma_heap/system", text, sizeof(text)) < 0);
	EXPECT(errno == EINVAL);
	EXPECT(realpath("/dev/dma_heap/../dma_heap/system", text) != NULL);
	EXPECT(strcmp(text, "/dev/dma_heap/system") == 0);
	EXPECT(access("/dev/dma_heap/system", X_OK) < 0 && errno == EACCES);

	/* What only looks like it is the host's. */
	EXPECT(open("system", O_RDWR) < 0 && errno == ENOENT);
	EXPECT(mkdir("dma_heap", 0700) == 0);
	dir = open("dma_heap/system", O_CREAT | O_RDWR, 0600);
	EXPECT(dir >= 0 && heap_alloc(dir, 4096) < 0 && errno == ENOTTY);
	close(dir);
	EXPECT(open("/dev/dma_heap_other", O_RDWR) < 0 && errno == ENOENT);
	return 0;
}

int scenario_openat2(int argc, char **argv)
{
	struct open_how how = {.flags = O_RDWR | O_CLOEXEC};
	int dir = open("/dev/dma_heap", O_PATH | O_DIRECTORY);
	long fd;

	(void)argc;
	(void)argv;
	EXPECT(dir >= 0);
	fd = syscall(SYS_openat2, AT_FDCWD, "/dev/dma_heap/system", &how,
		     sizeof(how));
	EXPECT(fd >= 0 && is_heap((int)fd));
	how.resolve = RESOLVE_BENEATH;
	fd = syscall(SYS_openat2, dir, "system", &how, sizeof(how));
	EXPECT(fd >= 0 && is_heap((int)fd));
	EXPECT(syscall(SYS_openat2, AT_FDCWD, "/dev/dma_heap/system", NULL,
		       sizeof(how)) < 0);
	EXPECT(errno == EFAULT);
	how.flags = UINT64_C(1) << 40;
	EXPECT(syscall(SYS_openat2, AT_FDCWD, "/dev/dma_heap/system", &how,
		       sizeof(how)) < 0);
	EXPECT(errno == EINVAL);
	return 0;
}

static int list(DIR *dir, char names[][NAME_MAX + 1], int capacity)
{
	struct dirent *entry;
	int n = 0;

	while ((entry = readdir(dir)) && n < capacity)
		if (entry->d_name[0] != '.') {
			EXPECT(entry->d_type == DT_CHR);
			strcpy(names[n++], entry->d_name);
		}
	return n;
}

/* Two streams at once, each with the whole list; and the fds in /proc. */
int scenario_directory(int argc, char **argv)
{
	DIR *one = opendir("/dev/dma_heap"), *two = opendir("/dev/dma_heap/");
	char a[32][NAME_MAX + 1], b[32][NAME_MAX + 1];
	struct dirent *entry;
	int n, fds = 0;
	DIR *proc;

	(void)argc;
	(void)argv;
	EXPECT(one && two);
	EXPECT(readdir(one));
	n = list(two, b, 32);
	EXPECT(n >= 2);
	rewinddir(one);
	EXPECT(list(one, a, 32) == n);
	for (int i = 0; i < n; i++)
		EXPECT(strcmp(a[i], b[i]) == 0);
	closedir(one);
	closedir(two);
	proc = opendir("/proc/self/fd");
	EXPECT(proc);
	while ((entry = readdir(proc)))
		fds += entry->d_name[0] != '.';
	EXPECT(fds == count_fds());
	closedir(proc);
	printf("%d\n", fds);
	return 0;
}

union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(2 * sizeof(int))];
};

static void send_fds(int socket, const int fds[2])
{
	union control control;
	struct iovec iov = {(char[]){"x"}, 1};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	struct cmsghdr *cmsg;

	memset(&control, 0, sizeof(control));
	cmsg = CMSG_FIRSTHDR(&msg);
	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(2 * sizeof(int));
	memcpy(CMSG_DATA(cmsg), fds, 2 * sizeof(int));
	EXPECT(sendmsg(socket, &msg, 0) == 1);
}

static void receive_fds(int socket, int fds[2])
{
	union control control;
	char byte;
	struct iovec iov = {&byte, 1};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};

	EXPECT(recvmsg(socket, &msg, MSG_CMSG_CLOEXEC) == 1);
	EXPECT(CMSG_FIRSTHDR(&msg));
	memcpy(fds, CMSG_DATA(CMSG_FIRSTHDR(&msg)), 2 * sizeof(int));
}

static void use_both(int heap, int buffer)
{
	char path[64], text[64];
	ssize_t n;

	EXPECT(ioctl(buffer, DMA_BUF_IOCTL_SYNC,
		     &(struct dma_buf_sync){DMA_BUF_SYNC_RW}) == 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", buffer);
	n = readlink(path, text, sizeof(text) - 1);
	EXPECT(n > 0);
	text[n] = '\0';
	EXPECT(strcmp(text, "/dmabuf:shared") == 0);
	EXPECT(open(path, O_RDWR) < 0 && errno == ENXIO);
	EXPECT(is_heap(heap));
}

/* Heap and buffer, recognised after dup, fork, a socket and exec. */
int scenario_identity(int argc, char **argv)
{
	int heap, buffer, sockets[2], fds[2], status;

	if (argc == 3) {
		use_both(atoi(argv[1]), atoi(argv[2]));
		return 0;
	}
	heap = heap_open();
	buffer = heap_alloc(heap, 65536);
	EXPECT(buffer >= 0);
	EXPECT(ioctl(buffer, DMA_BUF_SET_NAME_B, "shared") == 0);
	use_both(dup(heap), dup(buffer));
	EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
	if (fork() == 0) {
		char a[16], b[16];

		receive_fds(sockets[1], fds);
		use_both(fds[0], fds[1]);
		snprintf(a, sizeof(a), "%d", dup(heap));
		snprintf(b, sizeof(b), "%d", dup(buffer));
		execl("/proc/self/exe", "self", "identity", a, b, (char *)NULL);
		_exit(126);
	}
	send_fds(sockets[0], (int[]){heap, buffer});
	EXPECT(wait(&status) > 0 && status == 0);
	return 0;
}

/* A filter of its own works; a listener of its own is EBUSY. */
int scenario_own_filter(int argc, char **argv)
{
	struct sock_filter insns[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_uname, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EXDEV),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {.len = 4, .filter = insns};
	char names[512];

	(void)argc;
	(void)argv;
	EXPECT(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		       SECCOMP_FILTER_FLAG_NEW_LISTENER, &prog) < 0);
	EXPECT(errno == EBUSY);
	EXPECT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	EXPECT(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) == 0);
	EXPECT(syscall(SYS_uname, names) < 0 && errno == EXDEV);
	EXPECT(is_heap(heap_open()));
	return 0;
}

/* Makes one 32-bit system call. */
int scenario_foreign_call(int argc, char **argv)
{
	(void)argc;
	(void)argv;
#ifdef __x86_64__
	long r;

	/* getpid() of i386 */
	__asm__ volatile("int $0x80" : "=a"(r) : "a"(20L) : "memory");
	printf("served: %ld\n", r);
	return 1;
#else
	return 77;
#endif
}

int scenario_strict(int argc, char **argv)
{
	int heap = heap_open(), fd = heap_alloc(heap, 16384), file;
	char text[8] = "";
	struct stat st;

	(void)argc;
	(void)argv;
	EXPECT(fd >= 0);
	EXPECT(read(fd, text, 1) < 0 && errno == EINVAL);
	EXPECT(write(fd, text, 1) < 0 && errno == EINVAL);
	EXPECT(pread(fd, text, 1, 0) < 0 && errno == ESPIPE);
	EXPECT(lseek(fd, 0, SEEK_CUR) < 0 && errno == EINVAL);
	EXPECT(lseek(fd, 0, SEEK_END) == 16384);
	EXPECT(ftruncate(fd, 16384) < 0 && errno == EINVAL);
	EXPECT(fallocate(fd, 0, 0, 4096) < 0 && errno == ENODEV);
	EXPECT(mmap(NULL, 20480, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED);
	EXPECT(errno == EINVAL);
	EXPECT(fcntl(fd, F_GETFL) == O_RDWR);
	EXPECT(fstat(heap, &st) == 0 && S_ISCHR(st.st_mode));
	EXPECT(lseek(heap, 0, SEEK_SET) < 0 && errno == ESPIPE);
	/* And an ordinary file stays one. */
	file = memfd_create("plain", 0);
	EXPECT(write(file, "hello", 5) == 5);
	EXPECT(lseek(file, 1, SEEK_SET) == 1);
	EXPECT(read(file, text, 4) == 4 && strcmp(text, "ello") == 0);
	EXPECT(ftruncate(file, 2) == 0);
	EXPECT(fstat(file, &st) == 0 && st.st_size == 2);
	return 0;
}

int scenario_sync_files(int argc, char **argv)
{
	int heap = heap_open(), fd = heap_alloc(heap, 4096), epoll;
	struct dma_buf_export_sync_file out = {.flags = DMA_BUF_SYNC_RW};
	struct dma_buf_import_sync_file in = {.flags = DMA_BUF_SYNC_RW};
	struct sync_merge_data merge = {.name = "merged"};
	struct epoll_event event = {.events = EPOLLIN};
	struct pollfd polled;

	(void)argc;
	(void)argv;
	EXPECT(ioctl(fd, DMA_BUF_IOCTL_EXPORT_SYNC_FILE, &out) == 0);
	EXPECT(fcntl(out.fd, F_GETFD) == FD_CLOEXEC);
	polled = (struct pollfd){.fd = out.fd, .events = POLLIN};
	EXPECT(poll(&polled, 1, 0) == 1 && polled.revents == POLLIN);
	epoll = epoll_create1(0);
	EXPECT(epoll_ctl(epoll, EPOLL_CTL_ADD, out.fd, &event) == 0);
	EXPECT(epoll_wait(epoll, &event, 1, 0) == 1);
	in.fd = dup(out.fd);
	EXPECT(ioctl(fd, DMA_BUF_IOCTL_IMPORT_SYNC_FILE, &in) == 0);
	in.fd = fd;
	EXPECT(ioctl(fd, DMA_BUF_IOCTL_IMPORT_SYNC_FILE, &in) < 0);
	EXPECT(errno == EINVAL);
	in.fd = -1;
	EXPECT(ioctl(fd, DMA_BUF_IOCTL_IMPORT_SYNC_FILE, &in) < 0);
	EXPECT(errno == EINVAL);
	merge.fd2 = out.fd;
	EXPECT(ioctl(out.fd, SYNC_IOC_MERGE, &merge) == 0);
	polled.fd = merge.fence;
	EXPECT(poll(&polled, 1, 0) == 1);
	return 0;
}

static void file_has(const char *path, const char *wanted)
{
	char text[16384];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	EXPECT(fd >= 0);
	n = read(fd, text, sizeof(text) - 1);
	EXPECT(n > 0);
	text[n] = '\0';
	EXPECT(strstr(text, wanted));
	close(fd);
}

/* The files of /proc and /sys that tell of heaps and buffers. */
int scenario_mirror(int argc, char **argv)
{
	int heap = heap_open(), fd = heap_alloc(heap, 16384);
	char path[128];
	struct stat st;

	(void)argc;
	(void)argv;
	EXPECT(fd >= 0 && fstat(fd, &st) == 0);
	EXPECT(ioctl(fd, DMA_BUF_SET_NAME_B, "mirrored") == 0);
	file_has("/proc/devices", " dma_heap\n");
	file_has("/sys/kernel/debug/dma_buf/bufinfo", "\tmirrored\n");
	file_has("/sys/class/dma_heap/system/uevent",
		 "DEVNAME=dma_heap/system");
	snprintf(path, sizeof(path), "/sys/kernel/dmabuf/buffers/%lu/size",
		 (unsigned long)st.st_ino);
	file_has(path, "16384\n");
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	file_has(path, "name:\tmirrored\n");
	EXPECT(open("/sys/kernel/debug/dma_buf/bufinfo", O_RDWR) < 0);
	EXPECT(errno == EACCES);
	close(fd);
	snprintf(path, sizeof(path), "/sys/kernel/dmabuf/buffers/%lu",
		 (unsigned long)st.st_ino);
	EXPECT(access(path, F_OK) < 0 && errno == ENOENT);
	return 0;
}
