/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Snapshot: the state of a real machine's memory node, read from the text of
 * /proc/buddyinfo and, where given, pagetypeinfo, zoneinfo, meminfo and vmstat.
 *
 * Units:     *_pages count frames of the machine's page size; *_kb as in
 *            meminfo.
 * Ownership: snapshot_parse() gives the caller the only reference.
 * Threads:   immutable once parsed.
 *
 * The texts are untrusted: everything out of place is refused with the file's
 * name, the line and the reason.
 */

#include "base/base.h"

#define SNAPSHOT_ZONES_MAX 4u
#define SNAPSHOT_ORDERS    11u
#define SNAPSHOT_TYPES     3u /* unmovable, movable, reclaimable */
#define SNAPSHOT_UNKNOWN   UINT64_MAX

/* Memory that is taken before the buddy allocator exists. */
#define SNAPSHOT_STRUCT_PAGE_BYTES 64u
#define SNAPSHOT_SWIOTLB_BYTES     MIB(64)

/* Outcome of snapshot_parse(). */
enum {
	SNAPSHOT_E_OK_,
	SNAPSHOT_E_INVALID, /* snapshot_error says what and where */
};

/* NUL-terminated; NULL: not given. buddyinfo is needed. */
struct snapshot_texts {
	const char *buddyinfo;
	const char *pagetypeinfo;
	const char *zoneinfo;
	const char *meminfo;
	const char *vmstat;
};

/* What the texts may leave open. All zero means: nothing known. */
struct snapshot_options {
	bool numa_node_given;   /* else the texts may have one node only */
	unsigned int numa_node; /* which "Node N" lines are read */
	uint64_t size_bytes; /* of the node, without zone sizes in the texts */
	uint32_t page_size_bytes; /* 0: 4096 */
};

struct snapshot_error {
	char file[32];     /* "buddyinfo", ... */
	unsigned int line; /* 0: the file as a whole */
	char text[256];
};

struct snapshot_zone {
	char name[16];
	uint64_t span_pages;    /* a multiple of the pageblock */
	uint64_t managed_pages; /* of them, ever in the buddy */
	uint64_t hole_pages;    /* spanned above them, but not present */
	uint64_t pcp_pages; /* on per-CPU lists in all, or SNAPSHOT_UNKNOWN */
	uint64_t free[SNAPSHOT_TYPES][SNAPSHOT_ORDERS];
	uint64_t pageblocks[SNAPSHOT_TYPES];
	bool has_types; /* pagetypeinfo was given */
};

struct snapshot {
	unsigned int n_zones;
	struct snapshot_zone zone[SNAPSHOT_ZONES_MAX];
	uint32_t page_size_bytes;
	/* from meminfo, in pages, else SNAPSHOT_UNKNOWN */
	uint64_t total_pages;
	uint64_t file_pages;   /* page cache, clean, inactive */
	uint64_t active_pages; /* page cache, active */
	uint64_t dirty_pages;  /* page cache, dirty */
	uint64_t anon_pages;   /* AnonPages and shared memory, not mlocked */
	uint64_t mlocked_pages;
	uint64_t slab_pages; /* SReclaimable */
	bool has_compacted;  /* vmstat: compaction ran for requests before */
};

/**
 * snapshot_parse() - read a snapshot from texts
 * @ret:        receives the snapshot on success; untouched on failure
 * @texts:      the files' contents
 * @options:    what they leave open; NULL: nothing
 * @err:        receives the reason on SNAPSHOT_E_INVALID
 *
 * Return: 0, SNAPSHOT_E_INVALID, or -ENOMEM.
 */
int snapshot_parse(struct snapshot **ret, const struct snapshot_texts *texts,
		   const struct snapshot_options *options,
		   struct snapshot_error *err) _must_check_;

/* Return: NULL, always. @snapshot may be NULL. */
struct snapshot *snapshot_free(struct snapshot *snapshot);
DEFINE_CLEANUP(struct snapshot *, snapshot_free);
