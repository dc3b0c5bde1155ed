/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Contract: walks what programs may expect of a dma-buf heap and its buffers,
 * and prints one line a check, "name: result", in the words of
 * tests/data/dma-heap-behaviour-6.1.txt, for a comparison line by line.
 *
 * It judges nothing: compare.py does. A number that varies is printed as #N.
 *
 * Units:     *_bytes.
 * Ownership: each check closes what it opened.
 * Threads:   one.
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/dma-buf.h>
#include <linux/dma-heap.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#define PAGE 4096

/* What is walked: the heap's node, or NULL when only the library is there. */
extern const char *contract_heap;
extern const char *contract_heap_name;

void line(const char *name, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* "ok" for r >= 0, else the errno's name. */
const char *res(long r);
const char *res_errno(int err);

int heap_open(int flags);
int heap_alloc_on(int heap, uint64_t len_bytes, uint32_t fd_flags);

/* A buffer by whichever way there is. Return: the fd, or -1 and errno. */
int buf_alloc(uint64_t len_bytes, uint32_t fd_flags);
int buf_sync(int fd, uint64_t flags);
int buf_set_name(int fd, const char *name);

/* Open descriptors below 1024; no directory is opened to count them. */
int count_fds(void);

/* Reads, writes a byte: "read ok, write SIGSEGV/2". */
const char *touch(void *at);
bool touch_reads(void *at, char *ret_value);

/* "ok" or errno of mapping; unmapped again. */
const char *try_map(int fd, size_t len_bytes, int prot, int flags, off_t off);

/* The lines of a file under @name, name+ ...; numbers after keys as #N. */
void file_lines(const char *name, const char *path);

const char *file_type(mode_t mode);

/* The sections, in the order of the file. */
void walk_dev(void);
void walk_heapfd(void);
void walk_alloc(void);
void walk_ioctl(void);
void walk_limits(void);
void walk_buf(void);
void walk_proc(void);
void walk_mmap(void);
void walk_advise(void);
void walk_kernel(void);
void walk_sync(void);
void walk_names(void);
void walk_poll(void);
void walk_fences(void);
void walk_life(void);
void walk_memory(void);
void walk_sysfs(void);
