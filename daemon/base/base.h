/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The words that every file of the daemon may use.
 *
 * Units:     KIB, MIB, GIB are bytes.
 * Ownership: _cleanup_(fn) calls fn(&variable) when the variable goes out of
 *            scope; TAKE_PTR() and TAKE_FD() pass ownership on.
 * Threads:   macros and inline functions without state.
 */

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define _must_check_   __attribute__((warn_unused_result))
#define _printf_(f, a) __attribute__((format(printf, f, a)))
#define _cleanup_(fn)  __attribute__((cleanup(fn)))
#define _unused_       __attribute__((unused))
#define _public_       __attribute__((visibility("default")))

/* For the one branch that a hot path never takes. */
#define unlikely(cond) __builtin_expect(!!(cond), 0)

#define KIB(n) ((uint64_t)(n) << 10)
#define MIB(n) ((uint64_t)(n) << 20)
#define GIB(n) ((uint64_t)(n) << 30)

#define NSEC_PER_USEC UINT64_C(1000)
#define NSEC_PER_MSEC UINT64_C(1000000)
#define NSEC_PER_SEC  UINT64_C(1000000000)

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define container_of(ptr, type, member)                                        \
	((type *)(void *)((char *)(ptr)-offsetof(type, member)))

#define MIN(a, b)                                                              \
	({                                                                     \
		__typeof__(a) min_a_ = (a);                                    \
		__typeof__(b) min_b_ = (b);                                    \
		min_a_ < min_b_ ? min_a_ : min_b_;                             \
	})
#define MAX(a, b)                                                              \
	({                                                                     \
		__typeof__(a) max_a_ = (a);                                    \
		__typeof__(b) max_b_ = (b);                                    \
		max_a_ > max_b_ ? max_a_ : max_b_;                             \
	})

/* The value of @p, which is NULL afterwards. */
#define TAKE_PTR(p)                                                            \
	({                                                                     \
		__typeof__(p) take_p_ = (p);                                   \
		(p) = NULL;                                                    \
		take_p_;                                                       \
	})

/* The value of @fd, which is -1 afterwards. */
#define TAKE_FD(fd)                                                            \
	({                                                                     \
		int take_fd_ = (fd);                                           \
		(fd) = -1;                                                     \
		take_fd_;                                                      \
	})

/* Defines fnp() for _cleanup_() from a destructor that returns NULL. */
#define DEFINE_CLEANUP(type, fn)                                               \
	static inline void fn##p(type *p)                                      \
	{                                                                      \
		*p = fn(*p);                                                   \
	}                                                                      \
	_Static_assert(1, "")

/* @align is a power of two; the sum may not wrap. */
static inline uint64_t align_up(uint64_t value, uint64_t align)
{
	return (value + align - 1) & ~(align - 1);
}

static inline uint64_t align_down(uint64_t value, uint64_t align)
{
	return value & ~(align - 1);
}

static inline bool is_power_of_2(uint64_t value)
{
	return value && !(value & (value - 1));
}
