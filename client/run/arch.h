/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What differs between the architectures that dmaheap-run serves, and constants
 * of newer kernels than the headers of Debian 12.
 *
 * Ownership: nothing.
 * Threads:   constants only.
 */

#include <linux/audit.h>
#include <linux/ioctl.h>
#include <linux/seccomp.h>
#include <stdint.h>

#if defined(__x86_64__) && !defined(__ILP32__)
#define RUN_AUDIT_ARCH AUDIT_ARCH_X86_64
#define RUN_X32_BIT    0x40000000u /* in the call's number */
#define RUN_ARCH_NAME  "x86-64"
#elif defined(__aarch64__) && !defined(__AARCH64EB__)
#define RUN_AUDIT_ARCH AUDIT_ARCH_AARCH64
#define RUN_ARCH_NAME  "arm64"
#else
#error "dmaheap-run serves x86-64 and little-endian arm64"
#endif

#define RUN_MADV_COLLAPSE 25 /* since Linux 6.1 */

/* Since Linux 6.6; older kernels answer EINVAL and only wake more slowly. */
#ifndef SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP
#define SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP (1ul << 0)
#define SECCOMP_IOCTL_NOTIF_SET_FLAGS      _IOW('!', 4, uint64_t)
#endif
