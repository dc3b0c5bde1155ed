/* SPDX-License-Identifier: MIT */
/*
 * A program without a C library: system calls by hand, as Go and some Rust
 * programs make them. Nothing that is preloaded could see it.
 *
 * Exit status 0 when every step worked, else the number of the step.
 */
typedef unsigned long u64;
typedef unsigned int u32;

#if defined(__x86_64__)
enum {
	NR_CLOSE = 3,
	NR_MMAP = 9,
	NR_IOCTL = 16,
	NR_EXIT = 231,
	NR_OPENAT = 257
};

static long call6(long nr, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8),
			   "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}

__asm__(".globl _start\n_start:\n\txor %ebp, %ebp\n\tand $-16, %rsp\n"
	"\tcall start_in_c\n");
#elif defined(__aarch64__)
enum {
	NR_IOCTL = 29,
	NR_OPENAT = 56,
	NR_CLOSE = 57,
	NR_EXIT = 94,
	NR_MMAP = 222
};

static long call6(long nr, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
}

__asm__(".globl _start\n_start:\n\tbl start_in_c\n");
#endif

struct alloc {
	u64 len;
	u32 fd;
	u32 fd_flags;
	u64 heap_flags;
};

static _Noreturn void leave(long status)
{
	for (;;)
		call6(NR_EXIT, status, 0, 0, 0, 0, 0);
}

#define STEP(number, condition)                                                \
	do {                                                                   \
		if (!(condition))                                              \
			leave(number);                                         \
	} while (0)

_Noreturn void start_in_c(void);

_Noreturn __attribute__((used)) void start_in_c(void)
{
	struct alloc alloc = {65536, 0, 02000002, 0};
	u64 sync = 3;
	long heap, at, r;

	heap = call6(NR_OPENAT, -100, (long)"/dev/dma_heap/system", 2, 0, 0, 0);
	STEP(1, heap >= 0);
	r = call6(NR_IOCTL, heap, 0xc0184800, (long)&alloc, 0, 0, 0);
	STEP(2, r == 0);
	STEP(3, (long)alloc.fd > heap);
	at = call6(NR_MMAP, 0, 65536, 3, 1, alloc.fd, 0);
	STEP(4, at > 0);
	for (u64 i = 0; i < 65536; i++)
		STEP(5, ((volatile char *)at)[i] == 0);
	((volatile char *)at)[65535] = 1;
	STEP(6,
	     call6(NR_IOCTL, alloc.fd, 0x40086200, (long)&sync, 0, 0, 0) == 0);
	alloc = (struct alloc){0, 0, 2, 0};
	r = call6(NR_IOCTL, heap, 0xc0184800, (long)&alloc, 0, 0, 0);
	STEP(7, r == -22);
	r = call6(NR_IOCTL, heap, 0xc0184800, 0, 0, 0, 0);
	STEP(8, r == -14);
	leave(0);
}
