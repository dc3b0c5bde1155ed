/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Configuration of dmaheapd: one plain struct, filled from a table of keys that
 * holds each key's default, so that the shipped configs/dmaheapd.conf, the
 * built-in defaults and this table cannot differ (a test compares them).
 *
 * Units:     *_bytes, *_ms; a share is a size or a percentage.
 * Ownership: struct config is plain and large: keep it on the heap.
 * Threads:   no state, except that libinih allows one parse at a time.
 */

#include "base/base.h"
#include "base/strbuf.h"
#include "conf/ini.h"
#include "heap/policy.h"
#include "heap/system_heap.h"
#include "server/quota.h"

#define CONFIG_HEAPS_MAX    16u /* DMAHEAP_STATS_HEAPS_MAX */
#define CONFIG_POLICIES_MAX 16u
#define CONFIG_TEXT_BYTES   256u
#define CONFIG_SETTINGS_MAX 16u

/* Values of [daemon] latency. */
enum config_latency {
	CONFIG_LATENCY_NATIVE, /* reply at once */
	CONFIG_LATENCY_STALLS, /* wait out reclaim and compaction, too */
	CONFIG_LATENCY_DEVICE, /* pad to the modelled device's latency */
};

/* Values of [daemon] clock. */
enum config_clock {
	CONFIG_CLOCK_WALL,
	CONFIG_CLOCK_EVENT, /* a fixed slice per request: repeatable */
};

/* Values of [backing] mode, in the order of enum dmaheap_backing. */
enum config_backing {
	CONFIG_BACKING_AUTO,
	CONFIG_BACKING_PLAIN,
	CONFIG_BACKING_COLLAPSE,
	CONFIG_BACKING_FOLIO,
	CONFIG_BACKING_HUGETLB,
};

/* Values of [node] swap. */
enum config_swap {
	CONFIG_SWAP_NONE,
	CONFIG_SWAP_ZRAM,
	CONFIG_SWAP_DISK,
};

struct config_share {
	uint64_t value;
	bool is_percent;
};

struct config_daemon {
	char socket_group[CONFIG_TEXT_BYTES]; /* "": the process's own */
	char admin_group[CONFIG_TEXT_BYTES];
	uint64_t socket_mode;
	uint64_t handshake_timeout_ms;
	uint64_t send_timeout_ms;
	uint64_t drain_timeout_ms;
	unsigned int latency; /* enum config_latency */
	unsigned int clock;   /* enum config_clock */
	unsigned int log_level;
	unsigned int confine;       /* enum confine_mode */
	unsigned int debug_objects; /* 0 off, 1 on, 2 auto: as built */
	unsigned int objects;       /* 0 slab caches, 1 malloc */
};

struct config_node {
	char snapshot[CONFIG_TEXT_BYTES]; /* directory, or "" */
	char occupants[CONFIG_TEXT_BYTES];
	char profile[CONFIG_TEXT_BYTES];
	uint64_t size_bytes;
	uint64_t page_size_bytes;
	uint64_t min_free_kbytes; /* 0: computed as the kernel does */
	uint64_t swap_bytes;
	uint64_t compaction_proactiveness;
	uint64_t watermark_boost_factor; /* 0: none */
	uint64_t cpus;
	uint64_t pcp_batch; /* 0: computed */
	uint64_t pcp_high;  /* 0: computed */
	uint64_t numa_node;
	uint64_t seed;
	unsigned int swap; /* enum config_swap */
	bool compact_unevictable_allowed;
};

struct config_backing_section {
	uint64_t workers;
	uint64_t budget_bytes; /* 0: auto */
	char state_file[CONFIG_TEXT_BYTES];
	unsigned int mode;    /* enum config_backing */
	unsigned int recycle; /* 0 uid, 1 never */
	bool manage_thp;
};

struct config_heap {
	char name[HEAP_NAME_BYTES];
	char aliases[HEAP_ALIASES_BYTES]; /* separated by single spaces */
	bool enabled;
	bool uncached;
	struct policy policy;
};

struct config_override {
	uint32_t uid;
	uint32_t set; /* bits as in struct quota_override */
	struct config_share bytes;
	uint64_t buffers, connections, requests_per_s;
};

struct config {
	char file[CONFIG_TEXT_BYTES]; /* "" for the built-in defaults */
	struct config_daemon daemon;
	struct config_node node;
	struct config_backing_section backing;
	struct {
		struct config_share bytes;
		uint64_t buffers, connections, requests_per_s;
	} quota;
	uint32_t n_overrides;
	struct config_override overrides[QUOTA_OVERRIDES_MAX];
	uint32_t n_policies;
	struct policy policies[CONFIG_POLICIES_MAX]; /* of [policy NAME] */
	uint32_t n_heaps;
	struct config_heap heaps[CONFIG_HEAPS_MAX];
};

/* Keys of the command line: "[section] key = value" each; borrowed. */
struct config_settings {
	const char *texts[CONFIG_SETTINGS_MAX];
	size_t n;
};

/**
 * config_load() - defaults, what a file changes of them, then single keys
 * @path:     NULL: no file
 * @settings: count as if they came after the file's keys; NULL: none
 * @ret:      receives the configuration (config_free()); untouched on failure
 * @err:      filled with CONF_E_INVALID: "file:line: key: what is wrong, what
 *            is allowed", or "--set SETTING: key: ..."
 *
 * Return: 0, CONF_E_INVALID, -ENOMEM.
 */
int config_load(const char *path, const struct config_settings *settings,
		struct config **ret, struct conf_error *err) _must_check_;

/* The same from a text of @len bytes named @file. */
int config_load_text(const char *file, const char *text, size_t len,
		     struct config **ret, struct conf_error *err) _must_check_;

/* Return: NULL, always. @config may be NULL. */
struct config *config_free(struct config *config);
DEFINE_CLEANUP(struct config *, config_free);

/* A policy by name: the config's own first, then the shipped ones. */
bool config_find_policy(const struct config *config, const char *name,
			struct policy *ret);

/* The quota rules, percentages being of a node of @node_bytes. */
void config_quota_rules(const struct config *config, uint64_t node_bytes,
			struct quota_rules *ret);

/**
 * config_needs_restart() - list what differs and cannot change at run time
 * @out: receives the keys, "[section] key", separated by ", "
 *
 * Return: true if there is any.
 */
bool config_needs_restart(const struct config *running,
			  const struct config *wanted, struct strbuf *out);

/*
 * Takes over into @running what may change at run time from @wanted: limits,
 * policies, latency, times, log level. Nothing here can fail.
 */
void config_apply_live(struct config *running, const struct config *wanted);

/* Appends every key of the table with its value in @config, as a file. */
void config_render(const struct config *config, struct strbuf *out);

/* Return: the name of a value of latency, clock, backing mode, or swap. */
const char *config_latency_name(unsigned int latency);
const char *config_clock_name(unsigned int clock);
const char *config_backing_name(unsigned int mode);
