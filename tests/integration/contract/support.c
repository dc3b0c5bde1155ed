/* SPDX-License-Identifier: MIT */
#include "contract.h"

#include <setjmp.h>
#include <stdarg.h>

void line(const char *name, const char *fmt, ...)
{
	va_list ap;

	printf("%s: ", name);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
}

const char *res_errno(int err)
{
	const char *name = strerrorname_np(err);

	return name ? name : "unknown errno";
}

const char *res(long r)
{
	return r >= 0 ? "ok" : res_errno(errno);
}

int heap_open(int flags)
{
	return open(contract_heap, flags, 0600);
}

int heap_alloc_on(int heap, uint64_t len_bytes, uint32_t fd_flags)
{
	struct dma_heap_allocation_data data = {.len = len_bytes,
						.fd_flags = fd_flags};

	return ioctl(heap, DMA_HEAP_IOCTL_ALLOC, &data) < 0 ? -1 : (int)data.fd;
}

int count_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static sigjmp_buf fault_jump;
static volatile sig_atomic_t fault_signal, fault_code;

static void on_fault(int sig, siginfo_t *info, void *context)
{
	(void)context;
	fault_signal = sig;
	fault_code = info->si_code;
	siglongjmp(fault_jump, 1);
}

static void catch_faults(bool on)
{
	struct sigaction action = {.sa_sigaction = on_fault,
				   .sa_flags = SA_SIGINFO};

	if (!on)
		action = (struct sigaction){.sa_handler = SIG_DFL};
	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
}

/* Return: "ok" or the signal and its code. */
static const char *access_once(volatile char *at, bool write, char *ret_value)
{
	static char text[2][32];
	char *to = text[write];

	catch_faults(true);
	if (sigsetjmp(fault_jump, 1) == 0) {
		if (write)
			*at = (char)(*ret_value + 1);
		else
			*ret_value = *at;
		snprintf(to, sizeof(text[0]), "ok");
	} else {
		snprintf(to, sizeof(text[0]), "SIG%s/%d",
			 sigabbrev_np(fault_signal), (int)fault_code);
	}
	catch_faults(false);
	return to;
}

const char *touch(void *at)
{
	static char text[80];
	char value = 0;
	const char *reading = access_once(at, false, &value);
	const char *writing = access_once(at, true, &value);

	snprintf(text, sizeof(text), "read %s, write %s", reading, writing);
	return text;
}

bool touch_reads(void *at, char *ret_value)
{
	return strcmp(access_once(at, false, ret_value), "ok") == 0;
}

const char *try_map(int fd, size_t len_bytes, int prot, int flags, off_t off)
{
	void *at = mmap(NULL, len_bytes, prot, flags, fd, off);

	if (at == MAP_FAILED)
		return res_errno(errno);
	munmap(at, len_bytes);
	return "ok";
}

/* What varies from run to run stands as #N. */
static bool varies(const char *text)
{
	static const char *const keys[] = {"mnt_id:", "ino:", "MAJOR="};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (strncmp(text, keys[i], strlen(keys[i])) == 0)
			return true;
	return false;
}

void file_lines(const char *name, const char *path)
{
	char more[128], text[256];
	FILE *file = fopen(path, "re");
	bool first = true;

	if (!file) {
		line(name, "%s", res_errno(errno));
		return;
	}
	snprintf(more, sizeof(more), "%s+", name);
	while (fgets(text, sizeof(text), file)) {
		text[strcspn(text, "\n")] = '\0';
		if (varies(text))
			strcpy(text + strcspn(text, "0123456789"), "#N");
		line(first ? name : more, "%s", text);
		first = false;
	}
	fclose(file);
}

const char *file_type(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFDIR:
		return "dir";
	case S_IFCHR:
		return "chr";
	case S_IFREG:
		return "reg";
	case S_IFIFO:
		return "fifo";
	case S_IFSOCK:
		return "sock";
	case 0:
		return "none";
	default:
		return "other";
	}
}
