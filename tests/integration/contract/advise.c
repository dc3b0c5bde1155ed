/* SPDX-License-Identifier: MIT */
#include "contract.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>

#define SIZE (4 * PAGE)

static char *map(int fd)
{
	return mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

static void locks(int fd)
{
	char *at = map(fd);

	line("msync.ASYNC", "%s", res(msync(at, SIZE, MS_ASYNC)));
	line("msync.INVALIDATE", "%s", res(msync(at, SIZE, MS_INVALIDATE)));
	line("mlock", "%s", res(mlock(at, SIZE)));
	line("mlock2.ONFAULT", "%s", res(mlock2(at, SIZE, MLOCK_ONFAULT)));
	line("munlock", "%s", res(munlock(at, SIZE)));
	munmap(at, SIZE);
}

static void advices(int fd)
{
	static const struct {
		const char *name;
		int advice;
	} advice[] = {
		{"NORMAL", MADV_NORMAL},
		{"RANDOM", MADV_RANDOM},
		{"SEQUENTIAL", MADV_SEQUENTIAL},
		{"WILLNEED", MADV_WILLNEED},
		{"FREE", MADV_FREE},
		{"REMOVE", MADV_REMOVE},
		{"DONTFORK", MADV_DONTFORK},
		{"DOFORK", MADV_DOFORK},
		{"MERGEABLE", MADV_MERGEABLE},
		{"UNMERGEABLE", MADV_UNMERGEABLE},
		{"HUGEPAGE", MADV_HUGEPAGE},
		{"NOHUGEPAGE", MADV_NOHUGEPAGE},
		{"DONTDUMP", MADV_DONTDUMP},
		{"DODUMP", MADV_DODUMP},
		{"WIPEONFORK", MADV_WIPEONFORK},
		{"KEEPONFORK", MADV_KEEPONFORK},
		{"COLD", MADV_COLD},
		{"PAGEOUT", MADV_PAGEOUT},
		{"POPULATE_WRITE", MADV_POPULATE_WRITE},
		{"COLLAPSE", 25},
		{"999", 999},
	};
	char name[64], value;

	for (size_t i = 0; i < sizeof(advice) / sizeof(advice[0]); i++) {
		char *at = map(fd);
		const char *r;
		bool reads;

		at[0] = 42;
		r = res(madvise(at, SIZE, advice[i].advice));
		reads = touch_reads(at, &value);
		snprintf(name, sizeof(name), "madvise.%s", advice[i].name);
		line(name, "%s, then read %s (%s)", r, reads ? "ok" : "fault",
		     reads && value == 42 ? "kept" : "lost");
		munmap(at, SIZE);
	}
}

static const char *moved(void *at)
{
	return at == MAP_FAILED ? res_errno(errno) : "ok";
}

static void remaps(int fd)
{
	char *at = map(fd), *to, value = 0;
	bool reads;

	line("mremap.shrink", "%s", moved(mremap(at, SIZE, 2 * PAGE, 0)));
	line("mremap.grow-back", "%s",
	     moved(mremap(at, 2 * PAGE, SIZE, MREMAP_MAYMOVE)));
	munmap(at, SIZE);
	at = map(fd);
	mremap(at, SIZE, 2 * PAGE, 0);
	line("mremap.grow-back.inplace", "%s",
	     moved(mremap(at, 2 * PAGE, SIZE, 0)));
	munmap(at, SIZE);
	at = map(fd);
	line("mremap.grow-beyond", "%s",
	     moved(mremap(at, SIZE, 2 * SIZE, MREMAP_MAYMOVE)));
	munmap(at, SIZE);
	at = map(fd);
	line("mremap.dup-oldsize0", "%s",
	     moved(mremap(at, 0, SIZE, MREMAP_MAYMOVE)));
	line("mremap.DONTUNMAP", "%s",
	     moved(mremap(at, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_DONTUNMAP)));
	at[0] = 9;
	to = mmap(NULL, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	to = mremap(at, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, to);
	reads = to != MAP_FAILED && touch_reads(to, &value);
	line("mremap.move-fixed.access", "read %s value-kept=%d",
	     reads ? "ok" : "fault", value == 9);
	munmap(to, SIZE);
}

static void holes(int fd)
{
	char *at = map(fd);

	line("munmap.middle", "%s", res(munmap(at + PAGE, PAGE)));
	line("munmap.middle.hole", "%s", touch(at + PAGE));
	line("munmap.middle.after", "%s", touch(at + 2 * PAGE));
	munmap(at, SIZE);
	at = map(fd);
	line("remap_file_pages", "%s",
	     res(remap_file_pages(at, PAGE, 0, 1, 0)));
	munmap(at, SIZE);
	at = mmap(NULL, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	line("mmap.MAP_FIXED", "%s",
	     mmap(at, SIZE, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) == at
		     ? "ok"
		     : res_errno(errno));
	munmap(at, SIZE);
}

void walk_advise(void)
{
	int fd = buf_alloc(SIZE, O_RDWR | O_CLOEXEC);

	locks(fd);
	advices(fd);
	remaps(fd);
	holes(fd);
	close(fd);
}

static void through_pipe(char *at)
{
	int pipes[2];
	struct iovec iov = {at, 5};
	ssize_t n;

	if (pipe2(pipes, O_CLOEXEC | O_NONBLOCK))
		return;
	n = write(pipes[1], at, 5);
	line("kernel.write-from-mapping", "%s %zd", res(n), n);
	if (write(pipes[1], "hello", 5) != 5 || read(pipes[0], at + 64, 5) < 0)
		return;
	n = read(pipes[0], at, 5);
	line("kernel.read-into-mapping", "%s %zd", res(n), n);
	line("kernel.read-into-mapping.data", "%.5s", at);
	line("kernel.vmsplice", "%s", res(vmsplice(pipes[1], &iov, 1, 0)));
	close(pipes[0]);
	close(pipes[1]);
}

static void by_address(char *at)
{
	char byte = 0;
	struct iovec local = {&byte, 1}, remote = {at, 1};
	int mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);

	line("kernel.process_vm_readv.self", "%s",
	     res(process_vm_readv(getpid(), &local, 1, &remote, 1, 0)));
	line("kernel.process_vm_writev.self", "%s",
	     res(process_vm_writev(getpid(), &local, 1, &remote, 1, 0)));
	line("kernel.proc-mem.pwrite", "%s",
	     res(pwrite(mem, &byte, 1, (off_t)(uintptr_t)at)));
	close(mem);
}

static long futex(void *at, int op, int value)
{
	const struct timespec soon = {0, 1000000};

	return syscall(SYS_futex, at, op, value, &soon, NULL, 0);
}

void walk_kernel(void)
{
	int fd = buf_alloc(SIZE, O_RDWR | O_CLOEXEC);
	char *at = map(fd);

	through_pipe(at);
	by_address(at);
	memset(at, 0, PAGE);
	line("kernel.futex.shared-wake", "%s", res(futex(at, FUTEX_WAKE, 1)));
	line("kernel.futex.private-wake", "%s",
	     res(futex(at, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1)));
	line("kernel.futex.shared-wait", "%s", res(futex(at, FUTEX_WAIT, 0)));
	munmap(at, SIZE);
	close(fd);
}
