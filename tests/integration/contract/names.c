/* SPDX-License-Identifier: MIT */
#include "contract.h"

static void sync_flags(int fd)
{
	static const uint64_t flags[] = {
		0x0, 0x1, 0x2, 0x3,  0x4,        0x5,         0x6,        0x8,
		0x9, 0xb, 0xf, 0x10, 0x80000003, 0x100000003, UINT64_MAX,
	};
	char name[64];

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		snprintf(name, sizeof(name), "sync.flags.0x%llx",
			 (unsigned long long)flags[i]);
		line(name, "%s", res(buf_sync(fd, flags[i])));
	}
	buf_sync(fd, DMA_BUF_SYNC_START | DMA_BUF_SYNC_READ);
	line("sync.start.twice.2", "%s",
	     res(buf_sync(fd, DMA_BUF_SYNC_START | DMA_BUF_SYNC_READ)));
	line("sync.end.other-direction", "%s",
	     res(buf_sync(fd, DMA_BUF_SYNC_END | DMA_BUF_SYNC_WRITE)));
}

void walk_sync(void)
{
	int fd = buf_alloc(PAGE, O_RDWR | O_CLOEXEC), other;
	struct dma_buf_sync arg[2] = {{DMA_BUF_SYNC_RW}};

	sync_flags(fd);
	other = buf_alloc(PAGE, O_RDONLY | O_CLOEXEC);
	line("sync.write.on-rdonly-fd", "%s",
	     res(buf_sync(other, DMA_BUF_SYNC_WRITE)));
	close(other);
	if (contract_heap) {
		line("sync.arg.NULL", "%s",
		     res(ioctl(fd, DMA_BUF_IOCTL_SYNC, NULL)));
		line("sync.cmd.size4", "%s",
		     res(ioctl(fd, _IOC(_IOC_WRITE, 'b', 0, 4), arg)));
		line("sync.cmd.size16", "%s",
		     res(ioctl(fd, _IOC(_IOC_WRITE, 'b', 0, 16), arg)));
		line("sync.cmd.IOWR", "%s",
		     res(ioctl(fd, _IOWR('b', 0, uint64_t), arg)));
		line("sync.cmd.IOR", "%s",
		     res(ioctl(fd, _IOR('b', 0, uint64_t), arg)));
		other = open("/dev/null", O_RDWR | O_CLOEXEC);
		line("sync.on-devnull", "%s",
		     res(ioctl(other, DMA_BUF_IOCTL_SYNC, arg)));
		close(other);
	}
	close(fd);
}

/* What readlink and fdinfo show of the name. */
static void shown(const char *name, int fd)
{
	char path[64], link[128], text[128], info[128] = "(no name line)";
	ssize_t n;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, link, sizeof(link) - 1);
	link[n > 0 ? n : 0] = '\0';
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	file = fopen(path, "re");
	while (file && fgets(text, sizeof(text), file)) {
		text[strcspn(text, "\n")] = '\0';
		if (strncmp(text, "name:", 5) == 0)
			snprintf(info, sizeof(info), "%s", text);
	}
	if (file)
		fclose(file);
	line(name, "readlink='%s' fdinfo='%s'", link, info);
}

static void set_and_show(int fd, char form, const char *what, const char *value)
{
	unsigned long cmd =
		form == 'A' ? DMA_BUF_SET_NAME_A : DMA_BUF_SET_NAME_B;
	char name[64];

	snprintf(name, sizeof(name), "name.%c.%s", form, what);
	line(name, "%s", res(ioctl(fd, cmd, value)));
	snprintf(name, sizeof(name), "name.%c.%s.shown", form, what);
	shown(name, fd);
}

static void form(int fd, char which)
{
	static const char as[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"; /* 33 */
	unsigned long cmd =
		which == 'A' ? DMA_BUF_SET_NAME_A : DMA_BUF_SET_NAME_B;
	char name[64];

	set_and_show(fd, which, "abc", "abc");
	set_and_show(fd, which, "len31", as + 2);
	set_and_show(fd, which, "len32", as + 1);
	set_and_show(fd, which, "len33", as);
	snprintf(name, sizeof(name), "name.%c.NULL", which);
	line(name, "%s", res(ioctl(fd, cmd, NULL)));
	snprintf(name, sizeof(name), "name.%c.bad-pointer", which);
	line(name, "%s", res(ioctl(fd, cmd, 8L)));
	set_and_show(fd, which, "empty", "");
	snprintf(name, sizeof(name), "name.%c.newline", which);
	line(name, "%s", res(ioctl(fd, cmd, "a\nb")));
	set_and_show(fd, which, "odd-characters", "a b:c/d");
}

static void commands(int fd)
{
	line("name.cmd.size1", "%s",
	     res(ioctl(fd, _IOC(_IOC_WRITE, 'b', 1, 1), "x")));
	line("name.cmd.size32", "%s",
	     res(ioctl(fd, _IOC(_IOC_WRITE, 'b', 1, 32), "x")));
	line("name.cmd.IOWR", "%s",
	     res(ioctl(fd, _IOWR('b', 1, uint64_t), "x")));
	line("name.cmd.IOR", "%s", res(ioctl(fd, _IOR('b', 1, uint64_t), "x")));
	ioctl(fd, DMA_BUF_SET_NAME_A, "orig");
	shown("name.final", fd);
}

void walk_names(void)
{
	int fd = buf_alloc(PAGE, O_RDWR | O_CLOEXEC), copy;

	shown("name.initial", fd);
	form(fd, 'A');
	form(fd, 'B');
	commands(fd);
	copy = dup(fd);
	ioctl(copy, DMA_BUF_SET_NAME_B, "viadup");
	shown("name.shared-with-dup", fd);
	close(copy);
	close(fd);
	line("name.while-closed-fd", "%s",
	     res(ioctl(fd, DMA_BUF_SET_NAME_B, "x")));
	fd = buf_alloc(PAGE, O_RDONLY | O_CLOEXEC);
	line("name.on-rdonly-fd", "%s",
	     res(ioctl(fd, DMA_BUF_SET_NAME_B, "x")));
	close(fd);
}
