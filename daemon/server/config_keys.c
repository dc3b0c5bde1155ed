/* SPDX-License-Identifier: MIT */
#include "server/config_keys.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const latency_names[] = {"native", "stalls", "device", NULL};
static const char *const clock_names[] = {"wall", "event", NULL};
static const char *const level_names[] = {"error", "warn", "info", "debug",
					  NULL};
static const char *const debug_names[] = {"off", "on", "auto", NULL};
static const char *const objects_names[] = {"slab", "malloc", NULL};
static const char *const confine_names[] = {"off", "on", "kill", NULL};
static const char *const swap_names[] = {"none", "zram", "disk", NULL};
static const char *const mode_names[] = {"auto",  "plain",   "collapse",
					 "folio", "hugetlb", NULL};
static const char *const recycle_names[] = {"uid", "never", NULL};

#define AT(member) offsetof(struct config, member)
#define MS_MAX     (UINT64_C(24) * 3600 * 1000)
#define TEXT(sec, key, live_, def)                                             \
	{                                                                      \
		.section = #sec, .name = #key, .type = CONFIG_TYPE_TEXT,       \
		.offset = AT(sec.key), .default_text = (def), .live = (live_)  \
	}
#define ENUM(sec, key, live_, table, def)                                      \
	{                                                                      \
		.section = #sec, .name = #key, .type = CONFIG_TYPE_ENUM,       \
		.offset = AT(sec.key), .default_text = (def), .live = (live_), \
		.names = (table)                                               \
	}
#define BOOL(sec, key, live_, def)                                             \
	{                                                                      \
		.section = #sec, .name = #key, .type = CONFIG_TYPE_BOOL,       \
		.offset = AT(sec.key), .default_text = (def), .live = (live_)  \
	}
#define NUMBER(sec, key, member, kind, live_, lo, hi, def)                     \
	{                                                                      \
		.section = #sec, .name = (key), .type = CONFIG_TYPE_##kind,    \
		.offset = AT(sec.member), .default_text = (def),               \
		.live = (live_), .min = (lo), .max = (hi)                      \
	}

const struct config_key config_keys[] = {
	NUMBER(daemon, "socket_mode", socket_mode, OCTAL, false, 0, 0777,
	       "0660"),
	TEXT(daemon, socket_group, false, ""),
	TEXT(daemon, admin_group, true, "dmaheap"),
	ENUM(daemon, latency, true, latency_names, "stalls"),
	ENUM(daemon, clock, false, clock_names, "wall"),
	ENUM(daemon, log_level, true, level_names, "info"),
	ENUM(daemon, debug_objects, false, debug_names, "auto"),
	ENUM(daemon, objects, false, objects_names, "slab"),
	ENUM(daemon, confine, false, confine_names, "on"),
	NUMBER(daemon, "handshake_timeout_ms", handshake_timeout_ms, U64, true,
	       1, MS_MAX, "5000"),
	NUMBER(daemon, "send_timeout_ms", send_timeout_ms, U64, true, 1, MS_MAX,
	       "10000"),
	NUMBER(daemon, "drain_timeout_ms", drain_timeout_ms, U64, true, 0,
	       MS_MAX, "5000"),

	NUMBER(node, "size", size_bytes, SIZE, false, MIB(16), GIB(4096), "1G"),
	TEXT(node, snapshot, false, ""),
	NUMBER(node, "page_size", page_size_bytes, SIZE, false, KIB(4), KIB(64),
	       "4K"),
	TEXT(node, occupants, false, ""),
	ENUM(node, swap, false, swap_names, "none"),
	NUMBER(node, "swap_size", swap_bytes, SIZE, false, 0, GIB(4096), "0"),
	TEXT(node, profile, false, "arm64-phone"),
	NUMBER(node, "min_free_kbytes", min_free_kbytes, U64, false, 0,
	       GIB(4096) / 1024, "0"),
	NUMBER(node, "compaction_proactiveness", compaction_proactiveness, U64,
	       false, 0, 100, "0"),
	NUMBER(node, "watermark_boost_factor", watermark_boost_factor, U64,
	       false, 0, 1000000, "15000"),
	BOOL(node, compact_unevictable_allowed, false, "yes"),
	NUMBER(node, "cpus", cpus, U64, false, 1, 64, "1"),
	NUMBER(node, "pcp_batch", pcp_batch, U64, false, 0, 4096, "0"),
	NUMBER(node, "pcp_high", pcp_high, U64, false, 0, 1 << 20, "0"),
	NUMBER(node, "numa_node", numa_node, U64, false, 0, 1023, "0"),
	NUMBER(node, "seed", seed, U64, false, 0, UINT64_MAX, "1"),

	ENUM(backing, mode, false, mode_names, "auto"),
	NUMBER(backing, "budget", budget_bytes, SIZE_OR_AUTO, false, KIB(4),
	       GIB(4096), "auto"),
	ENUM(backing, recycle, false, recycle_names, "uid"),
	BOOL(backing, manage_thp, false, "no"),
	NUMBER(backing, "workers", workers, U64, false, 1, 16, "2"),
	TEXT(backing, state_file, false, "/run/dmaheap/thp.state"),

	NUMBER(quota, "bytes", bytes, SHARE, true, 0, 0, "75%"),
	NUMBER(quota, "buffers", buffers, U64, true, 0, 1 << 24, "4096"),
	NUMBER(quota, "connections", connections, U64, true, 0, 1 << 20, "64"),
	NUMBER(quota, "requests_per_s", requests_per_s, U64, true, 0,
	       1000000000, "0"),
	{0},
};

const struct config_key *config_key_find(const char *section, const char *name)
{
	for (const struct config_key *k = config_keys; k->name; k++)
		if (!strcmp(k->section, section) && !strcmp(k->name, name))
			return k;
	return NULL;
}

bool config_section_exists(const char *section)
{
	for (const struct config_key *k = config_keys; k->name; k++)
		if (!strcmp(k->section, section))
			return true;
	return false;
}

static void *field(const struct config_key *key, struct config *c)
{
	return (char *)c + key->offset;
}

static const void *const_field(const struct config_key *key,
			       const struct config *c)
{
	return (const char *)c + key->offset;
}

static size_t field_bytes(const struct config_key *key)
{
	switch (key->type) {
	case CONFIG_TYPE_BOOL:
		return sizeof(bool);
	case CONFIG_TYPE_ENUM:
		return sizeof(unsigned int);
	case CONFIG_TYPE_TEXT:
		return CONFIG_TEXT_BYTES;
	case CONFIG_TYPE_SHARE:
		return sizeof(struct config_share);
	default:
		return sizeof(uint64_t);
	}
}

int config_parse_share(const struct conf_entry *entry, struct config_share *ret,
		       struct conf_error *err)
{
	struct config_share s = {0};

	if (conf_parse_percent_or_size(entry->value, &s.value, &s.is_percent))
		return conf_entry_error(entry, err,
					"\"%s\" is neither a size such as 256M "
					"nor a percentage such as 75%%",
					entry->value);
	*ret = s;
	return 0;
}

static int parse_octal(const struct config_key *key,
		       const struct conf_entry *entry, uint64_t *ret,
		       struct conf_error *err)
{
	char *end;
	unsigned long value = strtoul(entry->value, &end, 8);

	if (entry->value[0] < '0' || entry->value[0] > '7' || *end ||
	    value < key->min || value > key->max)
		return conf_entry_error(entry, err,
					"\"%s\" is not an octal mode of 0 to "
					"%#o",
					entry->value, (unsigned int)key->max);
	*ret = value;
	return 0;
}

static int parse_text(const struct conf_entry *entry, char *ret,
		      struct conf_error *err)
{
	size_t n = strlen(entry->value);

	if (n >= CONFIG_TEXT_BYTES)
		return conf_entry_error(entry, err,
					"%zu characters, at most %u are "
					"allowed",
					n, CONFIG_TEXT_BYTES - 1);
	memset(ret, 0, CONFIG_TEXT_BYTES);
	memcpy(ret, entry->value, n);
	return 0;
}

static size_t count_names(const char *const *names)
{
	size_t n = 0;

	while (names[n])
		n++;
	return n;
}

int config_key_set(const struct config_key *key, struct config *config,
		   const struct conf_entry *entry, struct conf_error *err)
{
	void *f = field(key, config);

	switch (key->type) {
	case CONFIG_TYPE_BOOL:
		return conf_entry_bool(entry, f, err);
	case CONFIG_TYPE_U64:
		return conf_entry_u64(entry, key->min, key->max, f, err);
	case CONFIG_TYPE_SIZE_OR_AUTO:
		if (!strcmp(entry->value, "auto")) {
			*(uint64_t *)f = 0;
			return 0;
		}
		return conf_entry_size(entry, key->min, key->max, f, err);
	case CONFIG_TYPE_SIZE:
		return conf_entry_size(entry, key->min, key->max, f, err);
	case CONFIG_TYPE_SHARE:
		return config_parse_share(entry, f, err);
	case CONFIG_TYPE_OCTAL:
		return parse_octal(key, entry, f, err);
	case CONFIG_TYPE_ENUM:
		return conf_entry_enum(entry, key->names,
				       count_names(key->names), f, err);
	case CONFIG_TYPE_TEXT:
		return parse_text(entry, f, err);
	}
	assert(false && "unknown type of config key");
	return CONF_E_INVALID;
}

bool config_key_equal(const struct config_key *key, const struct config *a,
		      const struct config *b)
{
	const struct config_share *x = const_field(key, a);
	const struct config_share *y = const_field(key, b);

	if (key->type == CONFIG_TYPE_SHARE)
		return x->value == y->value && x->is_percent == y->is_percent;
	return !memcmp(const_field(key, a), const_field(key, b),
		       field_bytes(key));
}

void config_key_copy(const struct config_key *key, struct config *to,
		     const struct config *from)
{
	memcpy(field(key, to), const_field(key, from), field_bytes(key));
}

static void render_value(const struct config_key *key,
			 const struct config *config, struct strbuf *out)
{
	const void *f = const_field(key, config);
	const struct config_share *share = f;
	char size[32];
	uint64_t u = 0;

	if (field_bytes(key) == sizeof(u))
		memcpy(&u, f, sizeof(u));
	switch (key->type) {
	case CONFIG_TYPE_BOOL:
		strbuf_append(out, "%s", *(const bool *)f ? "yes" : "no");
		break;
	case CONFIG_TYPE_U64:
		strbuf_append(out, "%" PRIu64, u);
		break;
	case CONFIG_TYPE_SIZE_OR_AUTO:
	case CONFIG_TYPE_SIZE:
		strbuf_append(out, "%s",
			      u == 0 && key->type == CONFIG_TYPE_SIZE_OR_AUTO
				      ? "auto"
				      : conf_format_size(size, sizeof(size),
							 u));
		break;
	case CONFIG_TYPE_SHARE:
		if (share->is_percent)
			strbuf_append(out, "%" PRIu64 "%%", share->value);
		else
			strbuf_append(out, "%s",
				      conf_format_size(size, sizeof(size),
						       share->value));
		break;
	case CONFIG_TYPE_OCTAL:
		strbuf_append(out, "%04o", (unsigned int)u);
		break;
	case CONFIG_TYPE_ENUM:
		strbuf_append(out, "%s", key->names[*(const unsigned int *)f]);
		break;
	case CONFIG_TYPE_TEXT:
		strbuf_append(out, "%s", (const char *)f);
		break;
	}
}

void config_key_render(const struct config_key *key,
		       const struct config *config, struct strbuf *out)
{
	strbuf_append(out, "%s = ", key->name);
	render_value(key, config, out);
	strbuf_append(out, "\n");
}

const char *config_latency_name(unsigned int latency)
{
	return latency_names[latency];
}

const char *config_clock_name(unsigned int clock)
{
	return clock_names[clock];
}

const char *config_backing_name(unsigned int mode)
{
	return mode_names[mode];
}
