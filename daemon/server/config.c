/* SPDX-License-Identifier: MIT */
#include "server/config.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/parse.h"
#include "server/config_keys.h"

#define HEAP_NAME_CHARS                                                        \
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._,-"

struct config *config_free(struct config *config)
{
	free(config);
	return NULL;
}

/* Return: where the [policy @name] is, or NULL. */
static const struct policy *find_own_policy(const struct config *config,
					    const char *name)
{
	for (uint32_t i = 0; i < config->n_policies; i++)
		if (!strcmp(config->policies[i].name, name))
			return &config->policies[i];
	return NULL;
}

bool config_find_policy(const struct config *config, const char *name,
			struct policy *ret)
{
	const struct policy *own = find_own_policy(config, name);

	if (!own)
		return policy_shipped(ret, name);
	*ret = *own;
	return true;
}

static int set_policy_key(const struct config *c, struct policy *p,
			  const struct conf_entry *entry,
			  struct conf_error *err)
{
	struct policy_error why = {{0}};

	if (!strcmp(entry->key, "policy") &&
	    config_find_policy(c, entry->value, p))
		return 0;
	if (policy_set(p, entry->key, entry->value, &why))
		return conf_entry_error(entry, err, "%s", why.text);
	return 0;
}

/* @is_own: keys of the section that are not the policy's. */
static int set_policy_keys(const struct config *c, struct policy *p,
			   const struct conf_section *section,
			   bool (*is_own)(const char *key),
			   struct conf_error *err)
{
	for (unsigned int rank = 0; rank < POLICY_KEY_RANKS; rank++) {
		for (size_t i = 0; i < section->n_entries; i++) {
			const struct conf_entry *e = &section->entries[i];
			int r;

			if (policy_key_rank(e->key) != rank ||
			    (is_own && is_own(e->key)))
				continue;
			r = set_policy_key(c, p, e, err);
			if (r)
				return r;
		}
	}
	return 0;
}

static int check_name(const struct conf_section *section, const char *name,
		      size_t max_bytes, struct conf_error *err)
{
	size_t n = strlen(name);

	if (n == 0 || n >= max_bytes || strspn(name, HEAP_NAME_CHARS) != n)
		return conf_section_error(section, err,
					  "the name \"%s\" must be 1 to %zu "
					  "letters, digits or one of . _ , -",
					  name, max_bytes - 1);
	return 0;
}

static int load_policy(struct config *c, const struct conf_section *section,
		       struct conf_error *err)
{
	const struct policy *own = find_own_policy(c, section->name);
	size_t i = own ? (size_t)(own - c->policies) : c->n_policies;
	struct policy p = own ? *own : policy_default();
	int r = check_name(section, section->name, POLICY_NAME_BYTES, err);

	if (!r && i == CONFIG_POLICIES_MAX)
		r = conf_section_error(section, err,
				       "at most %u policies are allowed",
				       CONFIG_POLICIES_MAX);
	if (!r)
		r = set_policy_keys(c, &p, section, NULL, err);
	if (r)
		return r;
	memset(p.name, 0, sizeof(p.name));
	snprintf(p.name, sizeof(p.name), "%s", section->name);
	c->policies[i] = p;
	c->n_policies += own ? 0 : 1;
	return 0;
}

static struct config_heap *find_heap(struct config *c, const char *name)
{
	for (uint32_t i = 0; i < c->n_heaps; i++)
		if (!strcmp(c->heaps[i].name, name))
			return &c->heaps[i];
	return NULL;
}

static struct config_heap *add_heap(struct config *c, const char *name)
{
	struct config_heap *h = &c->heaps[c->n_heaps++];

	snprintf(h->name, sizeof(h->name), "%s", name);
	h->enabled = true;
	h->policy = policy_default();
	return h;
}

static bool heap_owns_key(const char *key)
{
	return !strcmp(key, "aliases") || !strcmp(key, "uncached") ||
	       !strcmp(key, "enabled");
}

/* Words separated by blanks only: "linux,cma" is one name. */
static int set_aliases(struct config_heap *h, const struct conf_entry *entry,
		       struct conf_error *err)
{
	const char *s = entry->value;
	size_t used = 0;

	memset(h->aliases, 0, sizeof(h->aliases));
	while (*(s += strspn(s, " \t"))) {
		size_t n = strcspn(s, " \t");

		if (n >= HEAP_NAME_BYTES || strspn(s, HEAP_NAME_CHARS) < n)
			return conf_entry_error(entry, err,
						"the alias \"%.*s\" must be 1 "
						"to %u letters, "
						"digits or one of . _ , -",
						(int)n, s, HEAP_NAME_BYTES - 1);
		if (used + n + 2 > sizeof(h->aliases))
			return conf_entry_error(entry, err,
						"all aliases together may have "
						"%zu characters",
						sizeof(h->aliases) - 1);
		if (used)
			h->aliases[used++] = ' ';
		memcpy(h->aliases + used, s, n);
		used += n;
		s += n;
	}
	return 0;
}

static int set_heap_key(struct config_heap *h, const struct conf_entry *entry,
			struct conf_error *err)
{
	if (!strcmp(entry->key, "aliases"))
		return set_aliases(h, entry, err);
	if (!strcmp(entry->key, "uncached"))
		return conf_entry_bool(entry, &h->uncached, err);
	return conf_entry_bool(entry, &h->enabled, err);
}

static int load_heap(struct config *c, const struct conf_section *section,
		     struct conf_error *err)
{
	struct config_heap *h = find_heap(c, section->name);
	int r = check_name(section, section->name, HEAP_NAME_BYTES, err);

	if (!r && !h && c->n_heaps == CONFIG_HEAPS_MAX)
		r = conf_section_error(section, err,
				       "at most %u heaps are allowed",
				       CONFIG_HEAPS_MAX);
	if (r)
		return r;
	if (!h)
		h = add_heap(c, section->name);
	for (size_t i = 0; i < section->n_entries; i++) {
		if (!heap_owns_key(section->entries[i].key))
			continue;
		r = set_heap_key(h, &section->entries[i], err);
		if (r)
			return r;
	}
	return set_policy_keys(c, &h->policy, section, heap_owns_key, err);
}

/* Return: true if @word is among the blank-separated @words. */
static bool has_word(const char *words, const char *word, size_t n)
{
	while (*(words += strspn(words, " "))) {
		size_t m = strcspn(words, " ");

		if (m == n && !memcmp(words, word, n))
			return true;
		words += m;
	}
	return false;
}

/* Return: a heap before @h of the same name or alias as @word, or NULL. */
static const struct config_heap *find_clash(const struct config *c,
					    const struct config_heap *h,
					    const char *word, size_t n)
{
	for (const struct config_heap *o = c->heaps; o < h; o++)
		if (o->enabled && (has_word(o->name, word, n) ||
				   has_word(o->aliases, word, n)))
			return o;
	return NULL;
}

static int check_heap_names(const struct config *c, struct conf_error *err)
{
	const char *file = *c->file ? c->file : "built-in defaults";
	uint32_t n_enabled = 0;

	for (uint32_t i = 0; i < c->n_heaps; i++) {
		const struct config_heap *h = &c->heaps[i], *clash;
		char words[HEAP_NAME_BYTES + HEAP_ALIASES_BYTES];
		const char *s = words;

		if (!h->enabled)
			continue;
		n_enabled++;
		snprintf(words, sizeof(words), "%s %s", h->name, h->aliases);
		while (*(s += strspn(s, " "))) {
			size_t n = strcspn(s, " ");

			clash = find_clash(c, h, s, n);
			if (clash) {
				snprintf(err->text, sizeof(err->text),
					 "%s: [heap %s]: the name \"%.*s\" is "
					 "already [heap %.31s]'s",
					 file, h->name, (int)n, s, clash->name);
				return CONF_E_INVALID;
			}
			s += n;
		}
	}
	if (!n_enabled) {
		snprintf(err->text, sizeof(err->text),
			 "%s: [heap]: at least one heap must be enabled", file);
		return CONF_E_INVALID;
	}
	return 0;
}

static int set_override_key(struct config_override *o,
			    const struct conf_entry *entry,
			    struct conf_error *err)
{
	static const char *const names[] = {
		[QUOTA_BYTES] = "bytes",
		[QUOTA_BUFFERS] = "buffers",
		[QUOTA_CONNECTIONS] = "connections",
		[QUOTA_REQUESTS_PER_S] = "requests_per_s",
	};
	uint64_t *const values[] = {
		[QUOTA_BUFFERS] = &o->buffers,
		[QUOTA_CONNECTIONS] = &o->connections,
		[QUOTA_REQUESTS_PER_S] = &o->requests_per_s,
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(names); i++) {
		const struct config_key *key;

		if (strcmp(entry->key, names[i]) != 0)
			continue;
		o->set |= 1u << i;
		if (i == QUOTA_BYTES)
			return config_parse_share(entry, &o->bytes, err);
		key = config_key_find("quota", names[i]);
		return conf_entry_u64(entry, key->min, key->max, values[i],
				      err);
	}
	return conf_entry_error(entry, err,
				"unknown key, allowed are bytes, buffers, "
				"connections, requests_per_s");
}

/* Return: the overrides of @uid, or where they would be added. */
static uint32_t find_override(const struct config *c, uint64_t uid)
{
	uint32_t i = 0;

	while (i < c->n_overrides && c->overrides[i].uid != uid)
		i++;
	return i;
}

static int load_override(struct config *c, const struct conf_section *section,
			 struct conf_error *err)
{
	struct config_override *o;
	uint64_t uid;
	uint32_t at;
	int r;

	if (strncmp(section->name, "uid ", 4) != 0 ||
	    parse_u64(section->name + 4, &uid) || uid >= UINT32_MAX)
		return conf_section_error(section, err,
					  "[quota] or [quota uid N] with a "
					  "numeric uid is allowed");
	at = find_override(c, uid);
	if (at == QUOTA_OVERRIDES_MAX)
		return conf_section_error(section, err,
					  "at most %u uids are allowed",
					  QUOTA_OVERRIDES_MAX);
	o = &c->overrides[at];
	o->uid = (uint32_t)uid;
	for (size_t i = 0; i < section->n_entries; i++) {
		r = set_override_key(o, &section->entries[i], err);
		if (r)
			return r;
	}
	c->n_overrides = MAX(c->n_overrides, at + 1);
	return 0;
}

static int load_keys(struct config *c, const struct conf_section *section,
		     struct conf_error *err)
{
	for (size_t i = 0; i < section->n_entries; i++) {
		const struct conf_entry *e = &section->entries[i];
		const struct config_key *key =
			config_key_find(section->kind, e->key);
		int r;

		if (!key)
			return conf_entry_error(e, err,
						"unknown key in [%s]; see "
						"dmaheapd.conf for all of them",
						section->kind);
		r = config_key_set(key, c, e, err);
		if (r)
			return r;
	}
	return 0;
}

/* Page sizes the model knows; conf_entry_size() checked only the range. */
static int check_page_size(const struct config *c,
			   const struct conf_section *section,
			   struct conf_error *err)
{
	const struct conf_entry *e = conf_section_find(section, "page_size");
	uint64_t p = c->node.page_size_bytes;

	if (!e || p == KIB(4) || p == KIB(16) || p == KIB(64))
		return 0;
	return conf_entry_error(e, err, "\"%s\": 4K, 16K or 64K is allowed",
				e->value);
}

static int load_section(struct config *c, const struct conf_section *section,
			struct conf_error *err)
{
	int r;

	if (!strcmp(section->kind, "policy") || !strcmp(section->kind, "heap"))
		return 0; /* in passes of their own */
	if (!strcmp(section->kind, "quota") && *section->name)
		return load_override(c, section, err);
	if (!config_section_exists(section->kind) || *section->name)
		return conf_section_error(section, err,
					  "unknown section; allowed are "
					  "[daemon], [node], [backing], "
					  "[quota], [quota uid N], [heap NAME] "
					  "and [policy NAME]");
	r = load_keys(c, section, err);
	if (!r && !strcmp(section->kind, "node"))
		r = check_page_size(c, section, err);
	return r;
}

/* The file, if there is one, and then each setting of the command line. */
struct sources {
	struct conf_ini *ini[1 + CONFIG_SETTINGS_MAX];
	size_t n;
};

static void sources_finip(struct sources *sources)
{
	for (size_t i = 0; i < sources->n; i++)
		conf_ini_free(sources->ini[i]);
}

/* What comes later counts: each function changes what is there already. */
static int
load_all(struct config *c, const struct sources *sources, const char *kind,
	 int (*fn)(struct config *c, const struct conf_section *section,
		   struct conf_error *err),
	 struct conf_error *err)
{
	for (size_t i = 0; i < sources->n; i++) {
		const struct conf_ini *ini = sources->ini[i];

		for (size_t k = 0; k < ini->n_sections; k++) {
			const struct conf_section *s = &ini->sections[k];
			int r = !kind || !strcmp(s->kind, kind) ? fn(c, s, err)
								: 0;

			if (r)
				return r;
		}
	}
	return 0;
}

static int load_sources(struct config *c, const struct sources *sources,
			struct conf_error *err)
{
	int r = load_all(c, sources, NULL, load_section, err);

	if (!r)
		r = load_all(c, sources, "policy", load_policy, err);
	if (!r)
		r = load_all(c, sources, "heap", load_heap, err);
	if (!r)
		r = check_heap_names(c, err);
	return r;
}

static void set_defaults(struct config *c)
{
	struct config_heap *h;

	for (const struct config_key *k = config_keys; k->name; k++) {
		struct conf_error err;
		struct conf_entry entry = {
			.file = "built-in defaults",
			.key = k->name,
			.value = k->default_text,
		};
		int r = config_key_set(k, c, &entry, &err);

		assert(!r);
		(void)r;
	}
	h = add_heap(c, "system");
	snprintf(h->aliases, sizeof(h->aliases), "linux,cma reserved");
	h = add_heap(c, "system-uncached");
	h->uncached = true;
}

/* @file: NULL: the sources are settings only. */
static int load(const char *file, const struct sources *sources,
		struct config **ret, struct conf_error *err)
{
	_cleanup_(config_freep) struct config *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return err_raise(-ENOMEM);
	set_defaults(c);
	snprintf(c->file, sizeof(c->file), "%s", file ? file : "");
	r = load_sources(c, sources, err);
	if (r)
		return r;
	*ret = TAKE_PTR(c);
	return 0;
}

static int add_setting(struct sources *sources, const char *setting,
		       struct conf_error *err)
{
	_cleanup_(strbuf_finip) struct strbuf name = STRBUF_INIT;
	int r;

	strbuf_append(&name, "--set %s", setting);
	if (strbuf_failed(&name))
		return err_raise(-ENOMEM);
	r = conf_ini_parse_setting(&sources->ini[sources->n],
				   strbuf_string(&name), setting, err);
	sources->n += r ? 0 : 1;
	return r;
}

static int read_sources(const char *path,
			const struct config_settings *settings,
			struct sources *sources, struct conf_error *err)
{
	int r = 0;

	if (path) {
		r = conf_ini_read(&sources->ini[0], path, 0, err);
		sources->n = r ? 0 : 1;
	}
	for (size_t i = 0; !r && settings && i < settings->n; i++)
		r = add_setting(sources, settings->texts[i], err);
	return r;
}

int config_load(const char *path, const struct config_settings *settings,
		struct config **ret, struct conf_error *err)
{
	_cleanup_(sources_finip) struct sources sources = {.n = 0};
	int r = read_sources(path, settings, &sources, err);

	if (r == CONF_E_INVALID)
		return CONF_E_INVALID;
	else if (r)
		return err_fold(r);
	return load(path, &sources, ret, err);
}

int config_load_text(const char *file, const char *text, size_t len,
		     struct config **ret, struct conf_error *err)
{
	_cleanup_(sources_finip) struct sources sources = {.n = 0};
	int r = conf_ini_parse(&sources.ini[0], file, text, len, 0, err);

	if (r == CONF_E_INVALID)
		return CONF_E_INVALID;
	else if (r)
		return err_fold(r);
	sources.n = 1;
	return load(file, &sources, ret, err);
}

static uint64_t resolve_share(const struct config_share *s, uint64_t whole)
{
	return s->is_percent ? whole / 100 * s->value : s->value;
}

void config_quota_rules(const struct config *config, uint64_t node_bytes,
			struct quota_rules *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->limits = (struct quota_limits){
		.bytes = resolve_share(&config->quota.bytes, node_bytes),
		.buffers = config->quota.buffers,
		.connections = config->quota.connections,
		.requests_per_s = config->quota.requests_per_s,
	};
	ret->n_overrides = config->n_overrides;
	for (uint32_t i = 0; i < config->n_overrides; i++) {
		const struct config_override *o = &config->overrides[i];

		ret->overrides[i] = (struct quota_override){
			.uid = o->uid,
			.set = o->set,
			.limits =
				{
					.bytes = resolve_share(&o->bytes,
							       node_bytes),
					.buffers = o->buffers,
					.connections = o->connections,
					.requests_per_s = o->requests_per_s,
				},
		};
	}
}

static void list_key(struct strbuf *out, bool *any, const char *section,
		     const char *key)
{
	strbuf_append(out, "%s[%s] %s", *any ? ", " : "", section, key);
	*any = true;
}

bool config_needs_restart(const struct config *running,
			  const struct config *wanted, struct strbuf *out)
{
	bool any = false;
	bool same_heaps = running->n_heaps == wanted->n_heaps;

	for (const struct config_key *k = config_keys; k->name; k++)
		if (!k->live && !config_key_equal(k, running, wanted))
			list_key(out, &any, k->section, k->name);
	for (uint32_t i = 0; same_heaps && i < running->n_heaps; i++) {
		const struct config_heap *a = &running->heaps[i];
		const struct config_heap *b = &wanted->heaps[i];

		same_heaps = !strcmp(a->name, b->name) &&
			     !strcmp(a->aliases, b->aliases) &&
			     a->enabled == b->enabled &&
			     a->uncached == b->uncached;
	}
	if (!same_heaps)
		list_key(out, &any, "heap",
			 "names, aliases, uncached, enabled");
	return any;
}

void config_apply_live(struct config *running, const struct config *wanted)
{
	for (const struct config_key *k = config_keys; k->name; k++)
		if (k->live)
			config_key_copy(k, running, wanted);
	memcpy(running->overrides, wanted->overrides,
	       sizeof(running->overrides));
	running->n_overrides = wanted->n_overrides;
	memcpy(running->policies, wanted->policies, sizeof(running->policies));
	running->n_policies = wanted->n_policies;
	for (uint32_t i = 0; i < wanted->n_heaps; i++) {
		struct config_heap *h =
			find_heap(running, wanted->heaps[i].name);

		if (h)
			h->policy = wanted->heaps[i].policy;
	}
}

void config_render(const struct config *config, struct strbuf *out)
{
	const char *section = "";

	for (const struct config_key *k = config_keys; k->name; k++) {
		if (strcmp(section, k->section) != 0) {
			strbuf_append(out, "%s[%s]\n", *section ? "\n" : "",
				      k->section);
			section = k->section;
		}
		config_key_render(k, config, out);
	}
	for (uint32_t i = 0; i < config->n_heaps; i++) {
		const struct config_heap *h = &config->heaps[i];

		strbuf_append(out,
			      "\n[heap %s]\n# policy %s\naliases = %s\n"
			      "uncached = %s\nenabled = %s\n",
			      h->name, h->policy.name, h->aliases,
			      h->uncached ? "yes" : "no",
			      h->enabled ? "yes" : "no");
		policy_render(&h->policy, out);
	}
}
