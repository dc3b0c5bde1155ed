/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * kvalloc: pages of the node for metadata; one contiguous block if that is to
 * be had cheaply, else single pages. Counterpart: kvmalloc() of mm/util.c, and
 * for sizes of at most half a page the size classes of kmalloc().
 *
 * Nothing is stored in the pages: they are only taken from the node, so that
 * metadata competes with buffers as in a kernel.
 *
 * Units:     *_bytes, *_pages.
 * Ownership: every kv_block goes back by kvalloc_release() before
 *            kvalloc_fini(), which asserts it.
 * Threads:   not locked; the node's thread.
 */

#include "base/base.h"

struct node;
struct node_request;

#define KVALLOC_CLASSES 16u /* powers of two from 8 bytes up */

enum {
	KVALLOC_E_OK_,
	KVALLOC_E_NO_MEMORY,
};

enum kvalloc_mode {
	KVALLOC_CONTIGUOUS_FIRST, /* kvmalloc(): the block only if it is free */
	KVALLOC_CONTIGUOUS_ONLY,  /* kmalloc(): reclaim, compaction, OOM */
};

/* Pages of one size class: as many as its objects fill when packed. */
struct kvalloc_class {
	uint64_t n_objects;
	uint32_t n_pages;
	uint32_t capacity;
	uint32_t *pfns;
};

struct kvalloc {
	struct node *node;
	enum kvalloc_mode mode;
	uint32_t page_size_bytes;
	uint64_t n_pages; /* taken from the node now */
	uint64_t n_contiguous;
	uint64_t n_fallback;
	uint64_t n_failed;
	uint64_t contiguous_stall_ns; /* of the calls that these count */
	uint64_t fallback_stall_ns;
	uint64_t failed_stall_ns;
	struct kvalloc_class classes[KVALLOC_CLASSES];
};

/* A charge: zeroed means none. */
struct kv_block {
	uint64_t size_bytes;
	uint32_t n_pages; /* of its own; 0 for an object of a class */
	uint32_t order;   /* of the contiguous block, when pfns is NULL */
	uint32_t pfn;     /* of the contiguous block */
	uint32_t *pfns;   /* single pages, n_pages of them */
};

void kvalloc_init(struct kvalloc *kv, struct node *node,
		  enum kvalloc_mode mode);
void kvalloc_fini(struct kvalloc *kv);

/**
 * kvalloc() - charge @size_bytes to the node
 * @req: the request whose time this is
 * @ret: receives the charge on success; untouched on failure
 *
 * Return: 0, KVALLOC_E_NO_MEMORY (the node has not enough), or -ENOMEM.
 */
int kvalloc(struct kvalloc *kv, struct node_request *req, uint64_t size_bytes,
	    struct kv_block *ret) _must_check_;

/* Gives the charge back and zeroes *@block. @req may be NULL. */
void kvalloc_release(struct kvalloc *kv, struct node_request *req,
		     struct kv_block *block);

/* Return: true if the counts agree with the classes. */
bool kvalloc_check(const struct kvalloc *kv);
