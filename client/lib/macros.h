/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The few words that the library's files share; it sees no header of the
 * daemon.
 *
 * Ownership: _cleanup_(fn) calls fn(&variable) when it goes out of scope.
 * Threads:   macros only.
 */

#define _public_       __attribute__((visibility("default")))
#define _must_check_   __attribute__((warn_unused_result))
#define _printf_(f, a) __attribute__((format(printf, f, a)))
#define _cleanup_(fn)  __attribute__((cleanup(fn)))

#define NSEC_PER_SEC  1000000000ull
#define NSEC_PER_MSEC 1000000ull
