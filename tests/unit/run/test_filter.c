/* SPDX-License-Identifier: MIT */
/* The filter's program, executed by a small interpreter of what it uses. */
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/dma-buf.h>
#include <linux/dma-heap.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "run/arch.h"
#include "run/filter.h"
#include "support/test.h"

static struct sock_filter insns[FILTER_MAX_INSNS];
static size_t n_insns;

static uint32_t load(const struct seccomp_data *data, uint32_t offset)
{
	uint32_t word;

	CU_ASSERT(offset % 4 == 0 && offset + 4 <= sizeof(*data));
	memcpy(&word, (const char *)data + offset, sizeof(word));
	return word;
}

/* Return: the action, or 0 (KILL_THREAD) for a program that runs astray. */
static uint32_t run(const struct seccomp_data *data)
{
	uint32_t a = 0;

	for (size_t pc = 0; pc < n_insns; pc++) {
		const struct sock_filter *i = &insns[pc];
		bool taken;

		switch (i->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			a = load(data, i->k);
			continue;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= i->k;
			continue;
		case BPF_RET | BPF_K:
			return i->k;
		case BPF_JMP | BPF_JEQ | BPF_K:
			taken = a == i->k;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			taken = a >= i->k;
			break;
		default:
			CU_FAIL("an instruction that the filter does not use");
			return 0;
		}
		pc += taken ? i->jt : i->jf;
	}
	CU_FAIL("ran past the end");
	return 0;
}

static void build(bool strict, bool watch_exit)
{
	n_insns = filter_build(insns,
			       &(struct filter_options){.strict = strict,
							.watch_exit =
								watch_exit});
}

static bool notifies_arch(uint32_t arch, long nr, unsigned int arg,
			  uint64_t value)
{
	struct seccomp_data data = {.nr = (int)nr, .arch = arch};
	uint32_t action;

	data.args[arg] = value;
	action = run(&data);
	CU_ASSERT(action == SECCOMP_RET_USER_NOTIF ||
		  action == SECCOMP_RET_ALLOW);
	return action == SECCOMP_RET_USER_NOTIF;
}

static bool notifies(long nr, unsigned int arg, uint64_t value)
{
	return notifies_arch(RUN_AUDIT_ARCH, nr, arg, value);
}

static void opens_and_lookups_are_notified(void)
{
	build(false, false);
	CU_ASSERT(notifies(SYS_openat, 0, 0));
	CU_ASSERT(notifies(SYS_openat2, 0, 0));
	CU_ASSERT(notifies(SYS_newfstatat, 3, 0));
	CU_ASSERT(notifies(SYS_statx, 2, AT_SYMLINK_NOFOLLOW));
	CU_ASSERT(notifies(SYS_faccessat, 0, 0));
	CU_ASSERT(notifies(SYS_readlinkat, 0, 0));
#ifdef SYS_open
	CU_ASSERT(notifies(SYS_open, 0, 0));
	CU_ASSERT(notifies(SYS_stat, 0, 0));
#endif
}

static void fstat_is_free_without_strict(void)
{
	build(false, false);
	CU_ASSERT_FALSE(notifies(SYS_newfstatat, 3, AT_EMPTY_PATH));
	CU_ASSERT_FALSE(notifies(SYS_statx, 2, AT_EMPTY_PATH));
	CU_ASSERT_FALSE(notifies(SYS_fstat, 0, 0));
	build(true, false);
	CU_ASSERT(notifies(SYS_newfstatat, 3, AT_EMPTY_PATH));
	CU_ASSERT(notifies(SYS_fstat, 0, 0));
}

static void ioctls_are_told_by_number_and_magic(void)
{
	build(false, false);
	CU_ASSERT(notifies(SYS_ioctl, 1, DMA_HEAP_IOCTL_ALLOC));
	CU_ASSERT(notifies(SYS_ioctl, 1, 0));
	CU_ASSERT(notifies(SYS_ioctl, 1, DMA_BUF_SET_NAME_A));
	CU_ASSERT(notifies(SYS_ioctl, 1, _IO('H', 77)));
	CU_ASSERT_FALSE(notifies(SYS_ioctl, 1, TCGETS));
	CU_ASSERT_FALSE(notifies(SYS_ioctl, 1, FIONREAD));
	/* The kernel ignores the upper half of the command. */
	CU_ASSERT(
		notifies(SYS_ioctl, 1,
			 UINT64_C(0xabcdef0000000000) | DMA_HEAP_IOCTL_ALLOC));
	build(true, false);
	CU_ASSERT(notifies(SYS_ioctl, 1, TCGETS));
}

static void everyday_calls_are_free_without_strict(void)
{
	static const long calls[] = {
		SYS_read,      SYS_write,   SYS_close,   SYS_mmap,
		SYS_munmap,    SYS_lseek,   SYS_futex,   SYS_fcntl,
		SYS_clone,     SYS_execve,  SYS_sendmsg, SYS_recvmsg,
		SYS_madvise,   SYS_getpid,  SYS_exit,    SYS_ftruncate,
		SYS_fallocate, SYS_pread64,
	};

	build(false, false);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		CU_ASSERT_FALSE(notifies(calls[i], 0, 0));
}

static void strict_notifies_only_where_a_dma_buf_differs(void)
{
	build(true, false);
	CU_ASSERT(notifies(SYS_read, 0, 0));
	CU_ASSERT(notifies(SYS_mmap, 3, MAP_SHARED));
	CU_ASSERT_FALSE(notifies(SYS_mmap, 3, MAP_PRIVATE | MAP_ANONYMOUS));
	CU_ASSERT(notifies(SYS_madvise, 2, MADV_DONTNEED));
	CU_ASSERT_FALSE(notifies(SYS_madvise, 2, MADV_WILLNEED));
	CU_ASSERT(notifies(SYS_fcntl, 1, F_GETFL));
	CU_ASSERT_FALSE(notifies(SYS_fcntl, 1, F_DUPFD));
	CU_ASSERT(notifies(SYS_futex, 1, 0));
	CU_ASSERT_FALSE(notifies(SYS_futex, 1, 128));
	/* The program's process needs these before anybody serves it. */
	CU_ASSERT_FALSE(notifies(SYS_sendmsg, 0, 0));
	CU_ASSERT_FALSE(notifies(SYS_close, 0, 0));
}

static void exits_are_notified_when_asked(void)
{
	build(false, false);
	CU_ASSERT_FALSE(notifies(SYS_exit_group, 0, 0));
	build(false, true);
	CU_ASSERT(notifies(SYS_exit_group, 0, 0));
	CU_ASSERT(notifies(SYS_exit, 0, 0));
}

static void other_architectures_are_always_notified(void)
{
	build(false, false);
	CU_ASSERT(notifies_arch(AUDIT_ARCH_I386, SYS_read, 0, 0));
	CU_ASSERT(notifies_arch(AUDIT_ARCH_ARM, SYS_read, 0, 0));
#ifdef RUN_X32_BIT
	CU_ASSERT(notifies((long)(RUN_X32_BIT | SYS_read), 0, 0));
	CU_ASSERT_FALSE(notifies(-1, 0, 0));
#endif
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"opens and lookups are notified",
		 opens_and_lookups_are_notified},
		{"fstat is free without strict", fstat_is_free_without_strict},
		{"ioctls are told by number and magic",
		 ioctls_are_told_by_number_and_magic},
		{"everyday calls are free without strict",
		 everyday_calls_are_free_without_strict},
		{"strict notifies only where a dma-buf differs",
		 strict_notifies_only_where_a_dma_buf_differs},
		{"exits are notified when asked",
		 exits_are_notified_when_asked},
		{"other architectures are always notified",
		 other_architectures_are_always_notified},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "filter", .pTests = tests},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
