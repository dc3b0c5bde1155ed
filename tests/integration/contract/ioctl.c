/* SPDX-License-Identifier: MIT */
#include "contract.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <termios.h>

#define ARG_BYTES 32768

/* The lowest descriptor from @from on that is open; -1 if none. */
static int next_fd(int from)
{
	for (int fd = from; fd < 1024; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			return fd;
	return -1;
}

static unsigned char *argument(void)
{
	static unsigned char arg[ARG_BYTES];
	struct dma_heap_allocation_data *data = (void *)arg;

	memset(arg, 0xa5, sizeof(arg));
	*data = (struct dma_heap_allocation_data){.len = PAGE,
						  .fd_flags = O_RDWR};
	return arg;
}

static bool is_kept(const unsigned char *arg)
{
	for (size_t i = 24; i < ARG_BYTES; i++)
		if (arg[i] != 0xa5)
			return false;
	return true;
}

static void size(int heap, unsigned int n)
{
	unsigned char *arg = argument();
	const struct dma_heap_allocation_data *data = (const void *)arg;
	unsigned long cmd = _IOC(_IOC_READ | _IOC_WRITE, 'H', 0, n);
	int before = count_fds(), r, err, fd;
	char name[64];

	snprintf(name, sizeof(name), "ioctl.size.%u", n);
	r = ioctl(heap, cmd, arg);
	err = errno;
	if (r < 0) {
		line(name, "%s newfds=%d", res_errno(err),
		     count_fds() - before);
		return;
	}
	/* Every lower number is taken: the new one is the highest. */
	for (fd = -1; next_fd(fd + 1) >= 0;)
		fd = next_fd(fd + 1);
	line(name, "ok newfds=%d fd-reported=%s getfl=0%o beyond24=%s",
	     count_fds() - before, data->fd ? "yes" : "no", fcntl(fd, F_GETFL),
	     is_kept(arg) ? "kept" : "changed");
	close(fd);
}

static void command(int heap, const char *what, unsigned long cmd)
{
	unsigned char *arg = argument();
	int before = count_fds(), r, err, fd, n;
	char name[64];

	snprintf(name, sizeof(name), "ioctl.cmd.%s", what);
	r = ioctl(heap, cmd, arg);
	err = errno;
	n = count_fds() - before;
	for (fd = -1; n > 0 && next_fd(fd + 1) >= 0;)
		fd = next_fd(fd + 1);
	if (fd >= 0)
		close(fd);
	line(name, "%s newfds=%d", r < 0 ? res_errno(err) : "ok", n);
}

#define IOC(dir, magic, nr, size) _IOC(dir, magic, nr, size)
#define RW                        (_IOC_READ | _IOC_WRITE)

void walk_ioctl(void)
{
	static const unsigned int n[] = {0,  4,  7,  8,  12,  15,  16,
					 20, 23, 25, 48, 128, 129, 16383};
	int heap = heap_open(O_RDWR | O_CLOEXEC);

	for (size_t i = 0; i < sizeof(n) / sizeof(n[0]); i++)
		size(heap, n[i]);
	command(heap, "magic-b.nr0.size24", IOC(RW, 'b', 0, 24));
	command(heap, "magic-00.nr0.size24", IOC(RW, 0, 0, 24));
	command(heap, "H.nr1.size24", IOC(RW, 'H', 1, 24));
	command(heap, "H.nr2.size24", IOC(RW, 'H', 2, 24));
	command(heap, "H.nr255.size24", IOC(RW, 'H', 255, 24));
	command(heap, "IOW.H.nr0.size24", IOC(_IOC_WRITE, 'H', 0, 24));
	command(heap, "IOR.H.nr0.size24", IOC(_IOC_READ, 'H', 0, 24));
	command(heap, "IO.H.nr0", IOC(_IOC_NONE, 'H', 0, 0));
	command(heap, "IO.H.nr0.size24", IOC(_IOC_NONE, 'H', 0, 24));
	command(heap, "TCGETS", TCGETS);
	command(heap, "FIONREAD", FIONREAD);
	command(heap, "FIONBIO", FIONBIO);
	command(heap, "FIOCLEX", FIOCLEX);
	command(heap, "FIOASYNC", FIOASYNC);
	command(heap, "cmd0", 0);
	command(heap, "cmd1", 1);
	command(heap, "cmd~0", ~0u);
	command(heap, "DMA_BUF_SYNC-on-heap", DMA_BUF_IOCTL_SYNC);
	command(heap, "SET_NAME_A-on-heap", DMA_BUF_SET_NAME_A);
	command(heap, "EXPORT_SYNC_FILE-on-heap",
		DMA_BUF_IOCTL_EXPORT_SYNC_FILE);
	close(heap);
}

/* Each limit is tried in a child: it cannot be raised again. */
static void limited(int heap, const char *what, int resource, rlim_t value)
{
	char name[64];
	struct rlimit limit = {value, value};

	int pipes[2];
	char text[256];
	ssize_t n;

	/* Standard output may be a file, which RLIMIT_FSIZE bounds. */
	if (pipe2(pipes, O_CLOEXEC))
		return;
	fflush(stdout);
	if (fork() == 0) {
		const char *mapped;
		int fd;

		dup2(pipes[1], STDOUT_FILENO);
		close(pipes[0]);
		close(pipes[1]);
		setrlimit(resource, &limit);
		fd = heap_alloc_on(heap, 65536, O_RDWR | O_CLOEXEC);
		snprintf(name, sizeof(name), "alloc.rlimit.%s", what);
		line(name, "%s", res(fd));
		if (fd >= 0) {
			mapped = try_map(fd, 65536, PROT_READ | PROT_WRITE,
					 MAP_SHARED, 0);
			snprintf(name, sizeof(name), "alloc.rlimit.%s.mmap",
				 what);
			line(name, "%s", mapped);
		}
		fflush(stdout);
		_exit(0);
	}
	close(pipes[1]);
	while ((n = read(pipes[0], text, sizeof(text))) > 0)
		fwrite(text, 1, (size_t)n, stdout);
	close(pipes[0]);
	wait(NULL);
}

static void unprivileged(int heap)
{
	struct stat st;
	int fd;

	fflush(stdout);
	if (fork() == 0) {
		if (setgid(65534) || setuid(65534))
			_exit(0);
		line("unpriv.open", "%s", res(heap_open(O_RDWR)));
		line("unpriv.open.RDONLY", "%s", res(heap_open(O_RDONLY)));
		fd = heap_alloc_on(heap, PAGE, O_RDWR | O_CLOEXEC);
		line("unpriv.alloc-inherited-heapfd", "%s", res(fd));
		line("unpriv.setname", "%s",
		     res(ioctl(fd, DMA_BUF_SET_NAME_B, "nobody")));
		fstat(fd, &st);
		line("unpriv.buf.fstat", "uid=%u gid=%u", st.st_uid, st.st_gid);
		line("unpriv.sysfs", "%s",
		     res(access("/sys/kernel/dmabuf/buffers", R_OK)));
		fflush(stdout);
		_exit(0);
	}
	wait(NULL);
}

void walk_limits(void)
{
	int heap = heap_open(O_RDWR | O_CLOEXEC), fd;
	void *at;

	limited(heap, "NOFILE", RLIMIT_NOFILE, (rlim_t)heap + 1);
	limited(heap, "FSIZE", RLIMIT_FSIZE, PAGE);
	limited(heap, "AS", RLIMIT_AS, UINT64_C(64) << 20);
	limited(heap, "MEMLOCK", RLIMIT_MEMLOCK, 0);
	limited(heap, "DATA", RLIMIT_DATA, UINT64_C(1) << 20);
	unprivileged(heap);
	fd = heap_alloc_on(heap, PAGE, O_RDWR | O_CLOEXEC);
	close(heap);
	at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	line("alloc.heap-closed.access", "%s", touch(at));
	munmap(at, PAGE);
	close(fd);
}
