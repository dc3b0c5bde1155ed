/* SPDX-License-Identifier: MIT */
#include "run/filter.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "run/arch.h"
#include "run/util.h"

/*
 * The model: a table of rules. A rule names a call and, where the call is
 * common and only some of its forms matter, a test of one argument's low word:
 * notify when (arg & mask) == value, or != value. Rules of one call stand
 * together; the first that matches notifies.
 */
enum test { ALWAYS, EQUAL, DIFFERS };

struct rule {
	uint32_t nr;
	uint8_t arg;
	uint8_t test; /* enum test */
	uint32_t mask;
	uint32_t value;
};

#define CALL(name)                                                             \
	{                                                                      \
		SYS_##name, 0, ALWAYS, 0, 0                                    \
	}
#define CALL_EQ(name, a, m, v)                                                 \
	{                                                                      \
		SYS_##name, a, EQUAL, m, v                                     \
	}
#define CALL_NE(name, a, m, v)                                                 \
	{                                                                      \
		SYS_##name, a, DIFFERS, m, v                                   \
	}

static const struct rule base_rules[] = {
	CALL(openat),
	CALL(openat2),
#ifdef SYS_open
	CALL(open),
	CALL(creat),
	CALL(stat),
	CALL(lstat),
	CALL(access),
	CALL(readlink),
#endif
	/* With AT_EMPTY_PATH it is glibc's fstat(). */
	CALL_NE(newfstatat, 3, AT_EMPTY_PATH, AT_EMPTY_PATH),
	CALL_NE(statx, 2, AT_EMPTY_PATH, AT_EMPTY_PATH),
	CALL(faccessat),
#ifdef SYS_faccessat2
	CALL(faccessat2),
#endif
	CALL(readlinkat),
	CALL(getxattr),
	CALL(lgetxattr),
	CALL(listxattr),
	CALL(llistxattr),
	/*
	 * Number 0 of any magic is a heap's ALLOC; 'H' is a heap's own magic,
	 * 'b' a buffer's, '>' a sync file's.
	 */
	CALL_EQ(ioctl, 1, 0xff, 0),
	CALL_EQ(ioctl, 1, 0xff00, 'b' << 8),
	CALL_EQ(ioctl, 1, 0xff00, 'H' << 8),
	CALL_EQ(ioctl, 1, 0xff00, '>' << 8),
	/* Calls that nobody makes in a loop, and a dma-buf refuses. */
	CALL(copy_file_range),
	CALL(fsetxattr),
	CALL(mincore),
	CALL(readahead),
	CALL(sync_file_range),
	CALL(truncate),
	CALL(vmsplice),
};

static const struct rule strict_rules[] = {
	CALL(ioctl),
	CALL(lseek),
	CALL(read),
	CALL(write),
	CALL(readv),
	CALL(writev),
	CALL(pread64),
	CALL(pwrite64),
	CALL(preadv),
	CALL(pwritev),
	CALL(preadv2),
	CALL(pwritev2),
	CALL(ftruncate),
	CALL(fallocate),
	CALL(fsync),
	CALL(fdatasync),
	CALL(sendfile),
	CALL(splice),
	CALL(fstat),
	CALL(newfstatat),
	CALL(statx),
	/* Anonymous memory is not worth a notification. */
	CALL_EQ(mmap, 3, MAP_ANONYMOUS, 0),
	CALL(mremap),
	CALL(process_vm_readv),
	CALL(process_vm_writev),
	/* Futexes shared between processes only. */
	CALL_EQ(futex, 1, FUTEX_PRIVATE_FLAG, 0),
	CALL_EQ(fcntl, 1, ~0u, F_GETFL),
	CALL_EQ(fcntl, 1, ~0u, F_SETFL),
	CALL_EQ(fcntl, 1, ~0u, F_SETLEASE),
	CALL_EQ(fcntl, 1, ~0u, F_ADD_SEALS),
	CALL_EQ(fcntl, 1, ~0u, F_GET_SEALS),
	/* Advice that a dma-buf's mapping refuses. */
	CALL_EQ(madvise, 2, ~0u, MADV_DONTNEED),
	CALL_EQ(madvise, 2, ~0u, MADV_FREE),
	CALL_EQ(madvise, 2, ~0u, MADV_REMOVE),
	CALL_EQ(madvise, 2, ~0u, MADV_DOFORK),
	CALL_EQ(madvise, 2, ~0u, MADV_DODUMP),
	CALL_EQ(madvise, 2, ~0u, MADV_WIPEONFORK),
	CALL_EQ(madvise, 2, ~0u, MADV_COLD),
	CALL_EQ(madvise, 2, ~0u, MADV_PAGEOUT),
	CALL_EQ(madvise, 2, ~0u, MADV_POPULATE_READ),
	CALL_EQ(madvise, 2, ~0u, MADV_POPULATE_WRITE),
	CALL_EQ(madvise, 2, ~0u, RUN_MADV_COLLAPSE),
};

static const struct rule exit_rules[] = {
	CALL(exit_group),
	CALL(exit),
};

/* The program as it grows. */
struct program {
	struct sock_filter *insns;
	size_t n;
};

static void emit(struct program *p, uint16_t code, uint32_t k, uint8_t jt,
		 uint8_t jf)
{
	assert(p->n < FILTER_MAX_INSNS);
	p->insns[p->n++] = (struct sock_filter){code, jt, jf, k};
}

static void emit_load(struct program *p, size_t offset)
{
	emit(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void emit_return(struct program *p, uint32_t action)
{
	emit(p, BPF_RET | BPF_K, action, 0, 0);
}

/* The low word of an argument; both architectures are little-endian. */
static size_t arg_offset(unsigned int arg)
{
	return offsetof(struct seccomp_data, args) + arg * sizeof(uint64_t);
}

/* The accumulator holds the call's number before and after. */
static void emit_rule(struct program *p, const struct rule *rule)
{
	if (rule->test == ALWAYS) {
		emit(p, BPF_JMP | BPF_JEQ | BPF_K, rule->nr, 0, 1);
		emit_return(p, SECCOMP_RET_USER_NOTIF);
		return;
	}
	emit(p, BPF_JMP | BPF_JEQ | BPF_K, rule->nr, 0, 5);
	emit_load(p, arg_offset(rule->arg));
	emit(p, BPF_ALU | BPF_AND | BPF_K, rule->mask, 0, 0);
	if (rule->test == EQUAL)
		emit(p, BPF_JMP | BPF_JEQ | BPF_K, rule->value, 0, 1);
	else
		emit(p, BPF_JMP | BPF_JEQ | BPF_K, rule->value, 1, 0);
	emit_return(p, SECCOMP_RET_USER_NOTIF);
	emit_load(p, offsetof(struct seccomp_data, nr));
}

static void emit_rules(struct program *p, const struct rule *rules, size_t n)
{
	for (size_t i = 0; i < n; i++)
		emit_rule(p, &rules[i]);
}

size_t filter_build(struct sock_filter insns[FILTER_MAX_INSNS],
		    const struct filter_options *options)
{
	struct program p = {.insns = insns};

	emit_load(&p, offsetof(struct seccomp_data, arch));
	emit(&p, BPF_JMP | BPF_JEQ | BPF_K, RUN_AUDIT_ARCH, 1, 0);
	emit_return(&p, SECCOMP_RET_USER_NOTIF);
	emit_load(&p, offsetof(struct seccomp_data, nr));
#ifdef RUN_X32_BIT
	/* -1 has the bit as well: the number of a call that a tracer skips. */
	emit(&p, BPF_JMP | BPF_JEQ | BPF_K, UINT32_MAX, 2, 0);
	emit(&p, BPF_JMP | BPF_JGE | BPF_K, RUN_X32_BIT, 0, 1);
	emit_return(&p, SECCOMP_RET_USER_NOTIF);
#endif
	emit_rules(&p, base_rules, ARRAY_SIZE(base_rules));
	if (options->strict)
		emit_rules(&p, strict_rules, ARRAY_SIZE(strict_rules));
	if (options->watch_exit)
		emit_rules(&p, exit_rules, ARRAY_SIZE(exit_rules));
	emit_return(&p, SECCOMP_RET_ALLOW);
	return p.n;
}

int filter_install(const struct filter_options *options)
{
	struct sock_filter insns[FILTER_MAX_INSNS];
	struct sock_fprog prog = {.filter = insns};
	long fd;

	prog.len = (unsigned short)filter_build(insns, options);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		     SECCOMP_FILTER_FLAG_NEW_LISTENER |
			     SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
		     &prog);
	return fd < 0 ? -errno : (int)fd;
}
