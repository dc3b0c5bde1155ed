/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Node: the emulated /dev/dma_heap: which heaps there are, and the objects that
 * stand for them inside the program.
 *
 * - The directory is a private one on a tmpfs, which holds one character
 *   device 0:0 a heap: anybody may make those, nobody can open them, and
 *   readdir() shows them as what a heap is.
 * - An open heap is a description of its own of one empty, sealed memfd per
 *   heap. Device and inode of that memfd recognise it wherever the fd went:
 *   dup, fork, exec, SCM_RIGHTS, reopening through /proc.
 * - A buffer is a memfd of the daemon, recognised by its name in /proc; device
 *   and inode tell one from another.
 * - A sync file is a reading end of the run's one pipe, which always has bytes
 *   to read: it polls readable.
 *
 * Ownership: node_new() gives the caller the only reference; node_free()
 *            removes the directory. Pointers to heaps live as long as the node.
 * Threads:   immutable after node_new(): any thread may look.
 */

#include <dmaheap/protocol.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

#include "run/workdir.h"

#define NODE_PATH          "/dev/dma_heap"
#define NODE_MAJOR         251u /* a number of the range for local use */
#define NODE_HEAPS_MAX     64u
#define NODE_BUFFER_PREFIX "/memfd:dmaheap:"

struct node_heap {
	char name[DMAHEAP_NAME_MAX_BYTES];
	unsigned int minor;
	int memfd;
	dev_t dev;
	ino_t ino;
	dev_t entry_dev; /* of the directory's entry */
	ino_t entry_ino;
};

struct node;

/**
 * node_new() - build the directory and the heaps' objects
 * @ret:     receives the node; untouched on failure
 * @workdir: borrowed; the directory is made in it
 * @names:   heap names and aliases, in the order of their minor numbers
 * @ret_why: receives a sentence on failure
 *
 * Return: 0, -EINVAL (a name that no directory entry can have, or too many),
 * or the errno of what failed.
 */
int node_new(struct node **ret, const struct workdir *workdir,
	     char (*names)[DMAHEAP_NAME_MAX_BYTES], size_t n_names,
	     char ret_why[256]);

/* Return: NULL, always. @node may be NULL; nobody may still use it. */
struct node *node_free(struct node *node);

/* Removes the directory alone: threads that still look find it missing. */
void node_remove_directory(const struct node *node);

const struct node_heap *node_find(const struct node *node, const char *name,
				  size_t length);

/* The heap with that minor number; NULL when there is none. */
const struct node_heap *node_heap_at(const struct node *node,
				     unsigned int minor);

/* Where the private directory is, for openat() and to recognise it. */
const char *node_directory(const struct node *node);

/* A new description of the heap. Return: an fd or a negated errno. */
int node_open_heap(const struct node_heap *heap, int flags);

/* A new description of the directory. Return: an fd or a negated errno. */
int node_open_directory(const struct node *node, int flags);

/* A new sync file that polls readable. Return: an fd or a negated errno. */
int node_open_sync_file(const struct node *node);

enum node_kind {
	NODE_OTHER,     /* none of ours */
	NODE_HEAP,      /* heap is set */
	NODE_HEAP_PATH, /* O_PATH of a heap; heap is set */
	NODE_DIRECTORY,
	NODE_BUFFER,
	NODE_BUFFER_PATH, /* O_PATH of a buffer */
	NODE_SYNC_FILE,
	NODE_FOREIGN_SYNC_FILE, /* one of the kernel's own */
};

struct node_object {
	enum node_kind kind;
	const struct node_heap *heap;
	struct stat st; /* of heaps and buffers */
	char link[128]; /* what /proc calls it, cut; "": closed */
};

/**
 * node_identify() - what a process has open at a number
 *
 * One readlink() for what is none of ours. A closed fd is NODE_OTHER.
 */
void node_identify(const struct node *node, pid_t tid, int fd,
		   struct node_object *ret);

/* What stat() says of the heap, and of the directory. */
void node_stat_heap(const struct node *node, const struct node_heap *heap,
		    struct stat *ret);
void node_stat_directory(const struct node *node, struct stat *ret);

/* Whether a thread's user may open the heaps: their owner and root may. */
bool node_may_use(const struct node *node, pid_t tid);
