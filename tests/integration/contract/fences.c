/* SPDX-License-Identifier: MIT */
#include "contract.h"

#include <linux/sync_file.h>
#include <sys/epoll.h>
#include <sys/select.h>

static void poll_as(int fd, const char *what, short events)
{
	struct pollfd polled = {.fd = fd, .events = events};
	char name[64];
	int r = poll(&polled, 1, 0);

	snprintf(name, sizeof(name), "poll.%s", what);
	line(name, "ret=%d revents=0x%x", r, (unsigned int)polled.revents);
}

static void select_and_epoll(int fd)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLOUT};
	struct timeval now = {0, 0};
	fd_set r, w, e;
	int epoll, n;

	FD_ZERO(&r);
	FD_ZERO(&w);
	FD_ZERO(&e);
	FD_SET(fd, &r);
	FD_SET(fd, &w);
	FD_SET(fd, &e);
	n = select(fd + 1, &r, &w, &e, &now);
	line("poll.select", "ret=%d r=%d w=%d e=%d", n, FD_ISSET(fd, &r),
	     FD_ISSET(fd, &w), FD_ISSET(fd, &e));
	epoll = epoll_create1(EPOLL_CLOEXEC);
	line("poll.epoll_ctl.add", "%s",
	     res(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event)));
	event.events = 0;
	n = epoll_wait(epoll, &event, 1, 0);
	line("poll.epoll_wait", "ret=%d events=0x%x", n, event.events);
	close(epoll);
}

void walk_poll(void)
{
	int fd = buf_alloc(PAGE, O_RDWR | O_CLOEXEC);

	poll_as(fd, "IN|OUT", POLLIN | POLLOUT);
	poll_as(fd, "ERR", POLLERR);
	poll_as(fd, "0", 0);
	poll_as(fd, "HUP", POLLHUP);
	poll_as(fd, "RDNORM", POLLRDNORM);
	poll_as(fd, "WRNORM", POLLWRNORM);
	poll_as(fd, "all",
		(short)(POLLIN | POLLOUT | POLLPRI | POLLERR | POLLHUP |
			POLLRDNORM | POLLWRNORM));
	select_and_epoll(fd);
	close(fd);
}

static void info(const char *name, int fence)
{
	struct sync_fence_info fences[4] = {0};
	struct sync_file_info arg = {.num_fences = 4,
				     .sync_fence_info =
					     (uint64_t)(uintptr_t)fences};

	if (ioctl(fence, SYNC_IOC_FILE_INFO, &arg)) {
		line(name, "%s", res_errno(errno));
		return;
	}
	line(name,
	     "ok status=%d num_fences=%u name='%s' fence0: obj='%s' drv='%s' "
	     "status=%d",
	     arg.status, arg.num_fences, arg.name[0] ? "(set)" : "",
	     fences[0].obj_name, fences[0].driver_name, fences[0].status);
}

static void exported(const char *name, uint32_t flags, int fence)
{
	struct pollfd polled = {.fd = fence, .events = POLLIN};
	char path[64], link[64], full[64];
	ssize_t n;
	int r;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fence);
	n = readlink(path, link, sizeof(link) - 1);
	link[n > 0 ? n : 0] = '\0';
	r = poll(&polled, 1, 0);
	line(name, "ok flags-field=0x%x getfd=%d link='%s' poll=%d/0x%x", flags,
	     fcntl(fence, F_GETFD), link, r, (unsigned int)polled.revents);
	if (flags != DMA_BUF_SYNC_RW) {
		snprintf(full, sizeof(full), "%s.info", name);
		info(full, fence);
	}
}

static int import_fence(int fd, uint32_t flags, int fence)
{
	struct dma_buf_import_sync_file arg = {.flags = flags, .fd = fence};

	return ioctl(fd, DMA_BUF_IOCTL_IMPORT_SYNC_FILE, &arg);
}

static void imports(int fd, int fence)
{
	static const uint32_t flags[] = {0, 1, 2, 3, 4, 5, 7, 0x80000001};
	char name[64];

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		snprintf(name, sizeof(name), "import_sync.flags.0x%x",
			 flags[i]);
		line(name, "%s", res(import_fence(fd, flags[i], fence)));
	}
}

static void exports(int fd)
{
	static const uint32_t flags[] = {0, 1, 2, 3, 4, 5, 7, 8, 0x80000001};
	char name[64];

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		struct dma_buf_export_sync_file arg = {.flags = flags[i],
						       .fd = -7};

		snprintf(name, sizeof(name), "export_sync.flags.0x%x",
			 flags[i]);
		if (ioctl(fd, DMA_BUF_IOCTL_EXPORT_SYNC_FILE, &arg)) {
			line(name, "%s fd-field=%d", res_errno(errno), arg.fd);
			continue;
		}
		exported(name, arg.flags, arg.fd);
		snprintf(name, sizeof(name), "import_sync.own.0x%x", flags[i]);
		line(name, "%s", res(import_fence(fd, flags[i], arg.fd)));
		if (flags[i] == 1)
			imports(fd, arg.fd);
		close(arg.fd);
	}
}

/*
 * Fences that are pending take a kernel driver to make (sw_sync): nothing here
 * can, so those lines are not walked.
 */
void walk_fences(void)
{
	int fd = buf_alloc(PAGE, O_RDWR | O_CLOEXEC);
	struct pollfd polled = {.fd = fd, .events = POLLIN | POLLOUT};
	uint64_t arg = 1;
	int r;

	exports(fd);
	line("import_sync.fd.dmabuf", "%s", res(import_fence(fd, 1, fd)));
	line("export_sync.arg.NULL", "%s",
	     res(ioctl(fd, DMA_BUF_IOCTL_EXPORT_SYNC_FILE, NULL)));
	line("export_sync.cmd.IOW", "%s",
	     res(ioctl(fd, _IOW('b', 2, uint64_t), &arg)));
	line("import_sync.cmd.IOWR", "%s",
	     res(ioctl(fd, _IOWR('b', 3, uint64_t), &arg)));
	r = poll(&polled, 1, 0);
	line("poll.after-signaled-imports", "ret=%d revents=0x%x", r,
	     (unsigned int)polled.revents);
	close(fd);
}
