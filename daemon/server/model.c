/* SPDX-License-Identifier: MIT */
#include "server/model.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "conf/shipped.h"
#include "mm/cost.h"
#include "mm/snapshot.h"

_printf_(2, 3) static int invalid(struct conf_error *err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	return MODEL_E_INVALID;
}

/* Names the config in messages. */
static const char *config_name(const struct config *c)
{
	return *c->file ? c->file : "built-in defaults";
}

/* Paths in a config are relative to the directory that the file is in. */
static void resolve_path(const struct config *c, const char *path, char *buf,
			 size_t buf_bytes)
{
	const char *slash = strrchr(c->file, '/');

	if (*path == '/' || !slash)
		snprintf(buf, buf_bytes, "%s", path);
	else
		snprintf(buf, buf_bytes, "%.*s/%s", (int)(slash - c->file),
			 c->file, path);
}

/*
 * A path is relative to the config; a name is looked for beside the config
 * first. Return: true if the profile exists; @buf is its path.
 */
static bool find_profile(const struct config *c, char buf[CONF_PATH_BYTES])
{
	char relative[CONFIG_TEXT_BYTES + 32];

	if (strchr(c->node.profile, '/')) {
		resolve_path(c, c->node.profile, buf, CONF_PATH_BYTES);
		return access(buf, R_OK) == 0;
	}
	snprintf(relative, sizeof(relative), "profiles/%s.conf",
		 c->node.profile);
	resolve_path(c, relative, buf, CONF_PATH_BYTES);
	if (*c->file && access(buf, R_OK) == 0)
		return true;
	return conf_find_shipped(buf, "profiles", c->node.profile, ".conf");
}

static int set_cost(struct cost_profile *costs, const struct conf_entry *e,
		    struct conf_error *err)
{
	int r = cost_profile_set(costs, e->key, e->value);

	if (r == -ENOENT)
		return conf_entry_error(e, err, "no such cost");
	else if (r)
		return conf_entry_error(e, err,
					"\"%s\" is not a number of ns with at "
					"most three decimals, up to %u s",
					e->value,
					(unsigned int)(COST_MAX_NS /
						       NSEC_PER_SEC));
	return 0;
}

static int load_costs(const struct config *c, struct cost_profile *ret,
		      struct conf_error *err)
{
	_cleanup_(conf_ini_freep) struct conf_ini *ini = NULL;
	const struct conf_section *section;
	char path[CONF_PATH_BYTES];
	int r;

	*ret = cost_profile_default();
	if (!strcmp(c->node.profile, "built-in"))
		return 0;
	if (!find_profile(c, path)) {
		if (strcmp(c->node.profile, "arm64-phone") != 0)
			return invalid(err,
				       "%s: [node] profile: \"%s\" is neither "
				       "a "
				       "readable file nor a shipped profile",
				       config_name(c), c->node.profile);
		/* The default must not keep a lone binary from starting. */
		log_warn("profile name=arm64-phone result=built-in "
			 "reason=\"no shipped profiles are found\"");
		return 0;
	}
	r = conf_ini_read(&ini, path, 0, err);
	if (r == CONF_E_INVALID)
		return MODEL_E_INVALID;
	else if (r)
		return err_fold(r);
	section = conf_ini_find(ini, "cost", "");
	if (!section)
		return invalid(err, "%s: has no section [cost]", path);
	for (size_t i = 0; i < section->n_entries; i++)
		if (set_cost(ret, &section->entries[i], err))
			return MODEL_E_INVALID;
	return 0;
}

static int fill_params(const struct config *c, struct node_params *p,
		       struct conf_error *err)
{
	static const enum node_swap swaps[] = {
		[CONFIG_SWAP_NONE] = NODE_SWAP_NONE,
		[CONFIG_SWAP_ZRAM] = NODE_SWAP_ZRAM,
		[CONFIG_SWAP_DISK] = NODE_SWAP_DISK,
	};

	*p = (struct node_params){
		.page_size_bytes = (uint32_t)c->node.page_size_bytes,
		.size_bytes = c->node.size_bytes,
		.min_free_bytes = c->node.min_free_kbytes * 1024,
		.swap = swaps[c->node.swap],
		.swap_bytes = c->node.swap_bytes,
		.compaction_proactiveness =
			(unsigned int)c->node.compaction_proactiveness,
		.watermark_boost_factor =
			c->node.watermark_boost_factor
				? (uint32_t)c->node.watermark_boost_factor
				: NODE_NO_BOOST,
		.compact_unevictable_denied =
			!c->node.compact_unevictable_allowed,
		.pcp_batch = (unsigned int)c->node.pcp_batch,
		.pcp_high = (unsigned int)c->node.pcp_high,
		.n_cpus = (unsigned int)c->node.cpus,
		.seed = c->node.seed,
	};
	snprintf(p->occupants, sizeof(p->occupants), "%s", c->node.occupants);
	return load_costs(c, &p->costs, err);
}

static int parse_texts(const struct config *c, const struct conf_texts *t,
		       const char *where, struct snapshot **ret,
		       struct conf_error *err)
{
	struct snapshot_error why = {0};
	int r = snapshot_parse(ret,
			       &(struct snapshot_texts){
				       .buddyinfo = t->buddyinfo,
				       .pagetypeinfo = t->pagetypeinfo,
				       .zoneinfo = t->zoneinfo,
				       .meminfo = t->meminfo,
				       .vmstat = t->vmstat,
			       },
			       &(struct snapshot_options){
				       .numa_node =
					       (unsigned int)c->node.numa_node,
				       .size_bytes = c->node.size_bytes,
				       .page_size_bytes =
					       (uint32_t)
						       c->node.page_size_bytes,
			       },
			       &why);

	if (r == SNAPSHOT_E_INVALID)
		return invalid(err, "%s/%s:%u: %s", where, why.file, why.line,
			       why.text);
	else if (r)
		return err_fold(r);
	return 0;
}

/* As find_profile(), but a name without a slash may be a path as well. */
static bool find_snapshot(const struct config *c, char buf[CONF_PATH_BYTES])
{
	resolve_path(c, c->node.snapshot, buf, CONF_PATH_BYTES);
	if (strchr(c->node.snapshot, '/') || access(buf, R_OK) == 0)
		return true;
	return conf_find_shipped(buf, "snapshots", c->node.snapshot, "");
}

static int load_snapshot(const struct config *c, const struct conf_texts *texts,
			 const char *where, struct snapshot **ret,
			 struct conf_error *err)
{
	_cleanup_(conf_texts_finip) struct conf_texts own = CONF_TEXTS_INIT;
	char dir[CONF_PATH_BYTES];
	int r;

	if (texts)
		return parse_texts(c, texts, where, ret, err);
	if (!*c->node.snapshot)
		return 0;
	if (!find_snapshot(c, dir))
		return invalid(err,
			       "[node] snapshot: \"%s\" is neither a directory "
			       "nor a shipped snapshot",
			       c->node.snapshot);
	r = conf_read_snapshot_dir(dir, &own, err);
	if (r == CONF_E_INVALID)
		return MODEL_E_INVALID;
	else if (r)
		return err_fold(r);
	return parse_texts(c, &own, dir, ret, err);
}

int model_node_new(struct node **ret, const struct config *config,
		   const struct conf_texts *texts, const char *where,
		   struct conf_error *err)
{
	_cleanup_(snapshot_freep) struct snapshot *snapshot = NULL;
	struct node_params params;
	struct node_error why = {{0}};
	int r;

	r = fill_params(config, &params, err);
	if (!r)
		r = load_snapshot(config, texts, where, &snapshot, err);
	if (r)
		return r;
	params.snapshot = snapshot;
	r = node_new(ret, &params, &why);
	if (r == NODE_E_INVALID)
		return invalid(err, "%s: [node]: %s", config_name(config),
			       why.text);
	else if (r)
		return err_fold(r);
	return 0;
}

int model_heaps_new(struct heap_set **ret, struct node *node,
		    const struct config *config, const struct heap_set_ops *ops,
		    void *ctx, struct conf_error *err)
{
	_cleanup_(heap_set_freep) struct heap_set *set = NULL;
	int r = heap_set_new(&set, node, ops, ctx);

	if (r)
		return err_fold(r);
	for (uint32_t i = 0; i < config->n_heaps; i++) {
		const struct config_heap *h = &config->heaps[i];
		struct heap *heap;

		if (!h->enabled)
			continue;
		r = heap_new(&heap, set,
			     &(struct heap_params){
				     .name = h->name,
				     .aliases = h->aliases,
				     .policy = &h->policy,
				     .flags = h->uncached ? HEAP_FLAG_UNCACHED
							  : 0,
			     });
		if (r == HEAP_E_EXISTS || r == HEAP_E_BAD_NAME)
			return invalid(err,
				       "%s: [heap %s]: a name or alias is not "
				       "allowed or there twice",
				       config_name(config), h->name);
		else if (r)
			return err_fold(r);
	}
	*ret = TAKE_PTR(set);
	return 0;
}

uint32_t model_orders(struct heap_set *heaps)
{
	uint32_t orders = 0;
	const struct heap *h;

	for (unsigned int i = 0; (h = heap_set_get(heaps, i)); i++)
		for (unsigned int n = 0; n < POLICY_ORDER_COUNT; n++)
			if (policy_has_order(heap_policy(h), n))
				orders |= 1u << n;
	return orders;
}

uint64_t model_node_bytes(const struct node *node)
{
	struct node_zone_stats z;
	uint64_t pages = 0;

	for (unsigned int i = 0; i < node_n_zones(node); i++) {
		node_zone_stats(node, i, &z);
		pages += z.size_pages;
	}
	return pages * node_params(node)->page_size_bytes;
}
