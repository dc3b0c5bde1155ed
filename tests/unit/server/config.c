/* SPDX-License-Identifier: MIT */
#include "server/config.h"

#include <string.h>

#include "support/test.h"

static struct conf_error err;

static struct config *load(const char *text)
{
	struct config *c = NULL;

	memset(&err, 0, sizeof(err));
	if (config_load_text("t.conf", text, strlen(text), &c, &err))
		return NULL;
	return c;
}

static void refused(const char *text, const char *message)
{
	struct config *c = load(text);

	CU_ASSERT_PTR_NULL(c);
	if (strncmp(err.text, message, strlen(message)) != 0) {
		CU_FAIL("another message");
		fprintf(stderr, "got:  %s\nwant: %s\n", err.text, message);
	}
	config_free(c);
}

static void the_shipped_file_holds_the_defaults(void)
{
	struct config *defaults = NULL, *shipped = NULL;
	struct strbuf a = STRBUF_INIT, b = STRBUF_INIT;

	T_REQUIRE(config_load(NULL, NULL, &defaults, &err) == 0);
	T_REQUIRE(config_load(SHIPPED_CONFIG, NULL, &shipped, &err) == 0);
	config_render(defaults, &a);
	config_render(shipped, &b);
	CU_ASSERT_FALSE(strbuf_failed(&a) || strbuf_failed(&b));
	CU_ASSERT_STRING_EQUAL(strbuf_string(&a), strbuf_string(&b));
	strbuf_fini(&a);
	strbuf_fini(&b);
	config_free(defaults);
	config_free(shipped);
}

static void the_shipped_file_names_every_key(void)
{
	struct conf_ini *ini = NULL;
	struct config *defaults = NULL;
	struct strbuf all = STRBUF_INIT;
	char *line, *save = NULL, section[32] = "";

	T_REQUIRE(conf_ini_read(&ini, SHIPPED_CONFIG, 0, &err) == 0);
	T_REQUIRE(config_load(NULL, NULL, &defaults, &err) == 0);
	config_render(defaults, &all);
	/* The heaps' policies are there as comments. */
	*strstr(all.s, "\n[heap") = '\0';
	for (line = strtok_r(all.s, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		char key[64] = "";

		if (sscanf(line, "[%31[^]]]", section) == 1)
			continue;
		T_REQUIRE(sscanf(line, "%63s =", key) == 1);
		if (!conf_section_find(conf_ini_find(ini, section, ""), key)) {
			CU_FAIL("a key is missing");
			fprintf(stderr, "missing: [%s] %s\n", section, key);
		}
	}
	strbuf_fini(&all);
	config_free(defaults);
	conf_ini_free(ini);
}

static void values_reach_their_fields(void)
{
	struct config *c = load("[daemon]\nsocket_mode = 0600\n"
				"latency = device\n"
				"[node]\nsize = 64M\nswap = zram\n"
				"[quota]\nbytes = 50%\nbuffers = 7\n"
				"[quota uid 1000]\nbytes = 1M\n"
				"requests_per_s = 9\n"
				"[backing]\nmode = plain\nbudget = 1G\n");
	struct quota_rules rules;

	T_REQUIRE(c != NULL);
	CU_ASSERT_EQUAL(c->daemon.socket_mode, 0600);
	CU_ASSERT_EQUAL(c->daemon.latency, CONFIG_LATENCY_DEVICE);
	CU_ASSERT_EQUAL(c->node.size_bytes, MIB(64));
	CU_ASSERT_EQUAL(c->node.swap, CONFIG_SWAP_ZRAM);
	CU_ASSERT_EQUAL(c->backing.mode, CONFIG_BACKING_PLAIN);
	CU_ASSERT_EQUAL(c->backing.budget_bytes, GIB(1));
	config_quota_rules(c, MIB(200), &rules);
	CU_ASSERT_EQUAL(rules.limits.bytes, MIB(100));
	CU_ASSERT_EQUAL(rules.limits.buffers, 7);
	T_REQUIRE(rules.n_overrides == 1);
	CU_ASSERT_EQUAL(rules.overrides[0].uid, 1000);
	CU_ASSERT_EQUAL(rules.overrides[0].limits.bytes, MIB(1));
	CU_ASSERT_EQUAL(rules.overrides[0].set,
			1u << QUOTA_BYTES | 1u << QUOTA_REQUESTS_PER_S);
	config_free(c);
}

static void a_heap_may_use_a_policy_that_stands_after_it(void)
{
	struct config *c = load("[heap cam]\npool.8.limit = 1M\npolicy = mine\n"
				"[policy mine]\norders = 8 0\n");
	const struct config_heap *h;

	T_REQUIRE(c != NULL);
	T_REQUIRE(c->n_heaps == 3);
	h = &c->heaps[2];
	CU_ASSERT_STRING_EQUAL(h->name, "cam");
	CU_ASSERT_EQUAL(h->policy.n_steps, 2);
	CU_ASSERT_EQUAL(h->policy.order[0], 8);
	CU_ASSERT_EQUAL(h->policy.order[1], 0);
	CU_ASSERT_EQUAL(h->policy.pool_limit_bytes[8], MIB(1));
	config_free(c);
}

static void aliases_are_separated_by_blanks_only(void)
{
	struct config *c = load("[heap system]\naliases =  a,b \t c\n");

	T_REQUIRE(c != NULL);
	CU_ASSERT_STRING_EQUAL(c->heaps[0].aliases, "a,b c");
	config_free(c);
}

static void errors_name_file_line_and_key(void)
{
	refused("[daemon]\nfoo = 1\n", "t.conf:2: foo: unknown key");
	refused("[deamon]\nfoo = 1\n", "t.conf:1: [deamon]: unknown section");
	refused("[node]\nsize = 12X\n", "t.conf:2: size: ");
	refused("[node]\npage_size = 8K\n", "t.conf:2: page_size: ");
	refused("[daemon]\nsocket_mode = 0999\n", "t.conf:2: socket_mode: ");
	refused("[daemon]\nlatency = slow\n", "t.conf:2: latency: ");
	refused("[quota]\nbytes = 101%\n", "t.conf:2: bytes: ");
	refused("[quota uid x]\n", "t.conf:1: [quota uid x]: ");
	refused("[quota uid 1]\nbits = 1\n", "t.conf:2: bits: unknown key");
	refused("[heap system]\norders = 4 8 0\n", "t.conf:2: orders: ");
	refused("[heap system]\norders = 8 4\n", "t.conf:2: orders: ");
	refused("[heap system]\ngfp.4 = FOO\n", "t.conf:2: gfp.4: ");
	refused("[heap system]\ncolour = 4\n", "t.conf:2: colour: ");
	refused("[heap system]\npolicy = none-such\n", "t.conf:2: policy: ");
	refused("[heap a/b]\n", "t.conf:1: [heap a/b]: ");
	refused("[policy p]\norders = 8 9 0\n", "t.conf:2: orders: ");
}

static void two_heaps_may_not_share_a_name(void)
{
	refused("[heap cam]\naliases = x reserved\n",
		"t.conf: [heap cam]: the name \"reserved\" is already "
		"[heap system]'s");
	refused("[heap system]\nenabled = no\n[heap system-uncached]\n"
		"enabled = no\n",
		"t.conf: [heap]: at least one heap");
}

static void a_reload_changes_what_may_change_and_names_the_rest(void)
{
	struct config *running = load("");
	struct config *wanted = load("[daemon]\nlatency = native\n"
				     "[node]\nsize = 64M\n"
				     "[heap system]\norders = 8 0\n"
				     "[quota uid 5]\nbuffers = 1\n");
	struct strbuf keys = STRBUF_INIT;

	T_REQUIRE(running && wanted);
	CU_ASSERT_TRUE(config_needs_restart(running, wanted, &keys));
	CU_ASSERT_STRING_EQUAL(strbuf_string(&keys), "[node] size");
	config_apply_live(running, wanted);
	CU_ASSERT_EQUAL(running->daemon.latency, CONFIG_LATENCY_NATIVE);
	CU_ASSERT_EQUAL(running->node.size_bytes, GIB(1));
	CU_ASSERT_EQUAL(running->heaps[0].policy.n_steps, 2);
	CU_ASSERT_EQUAL(running->n_overrides, 1);
	strbuf_fini(&keys);
	config_free(running);
	config_free(wanted);
}

static void a_changed_set_of_heaps_needs_a_restart(void)
{
	struct config *running = load("");
	struct config *wanted = load("[heap cam]\nuncached = yes\n");
	struct strbuf keys = STRBUF_INIT;

	T_REQUIRE(running && wanted);
	CU_ASSERT_TRUE(config_needs_restart(running, wanted, &keys));
	CU_ASSERT_PTR_NOT_NULL(strstr(strbuf_string(&keys), "[heap]"));
	strbuf_fini(&keys);
	config_free(running);
	config_free(wanted);
}

static struct config *load_with(const char *path, const char *a, const char *b)
{
	const struct config_settings settings = {{a, b}, b ? 2 : 1};
	struct config *c = NULL;

	memset(&err, 0, sizeof(err));
	return config_load(path, &settings, &c, &err) ? NULL : c;
}

static void a_setting_counts_instead_of_the_files_key(void)
{
	struct config *c = load_with(SHIPPED_CONFIG, "[node] size = 64M",
				     "[heap system]policy=800 # as in a file");

	T_REQUIRE(c != NULL);
	CU_ASSERT_STRING_EQUAL(c->file, SHIPPED_CONFIG);
	CU_ASSERT_EQUAL(c->node.size_bytes, MIB(64));
	CU_ASSERT_EQUAL(c->n_heaps, 2);
	CU_ASSERT_STRING_EQUAL(c->heaps[0].policy.name, "800");
	CU_ASSERT_STRING_EQUAL(c->heaps[0].aliases, "linux,cma reserved");
	CU_ASSERT_STRING_EQUAL(c->heaps[1].policy.name, "840-high");
	config_free(c);
}

/* One key of a policy or a uid leaves the others as they are. */
static void a_later_setting_adds_to_an_earlier_one(void)
{
	struct config *c = load_with(NULL, "[policy mine] orders = 8 0",
				     "[policy mine] pool.8.limit = 1M");

	T_REQUIRE(c != NULL);
	T_REQUIRE(c->n_policies == 1);
	CU_ASSERT_EQUAL(c->policies[0].n_steps, 2);
	CU_ASSERT_EQUAL(c->policies[0].pool_limit_bytes[8], MIB(1));
	config_free(c);
	c = load_with(NULL, "[quota uid 5] buffers = 1",
		      "[quota uid 5] connections = 2");
	T_REQUIRE(c != NULL);
	T_REQUIRE(c->n_overrides == 1);
	CU_ASSERT_EQUAL(c->overrides[0].buffers, 1);
	CU_ASSERT_EQUAL(c->overrides[0].connections, 2);
	config_free(c);
}

static void a_bad_setting_is_named(void)
{
	static const struct {
		const char *setting, *says;
	} bad[] = {
		{"[node] size = 12X", "--set [node] size = 12X: size: \"12X\""},
		{"[node] sise = 1G", "--set [node] sise = 1G: sise: unknown"},
		{"[nod] size = 1G", "--set [nod] size = 1G: [nod]: unknown"},
		{"[node] size", "--set [node] size: not of the form"},
		{"[node]", "--set [node]: not of the form"},
		{"node.size=1G", "--set node.size=1G: not of the form"},
		{"[node] seed = 1\ncpus = 2", "--set [node] seed = 1\ncpus"},
		{"[node] [quota] bytes = 1M", "--set [node] [quota] bytes"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		CU_ASSERT_PTR_NULL(load_with(NULL, bad[i].setting, NULL));
		if (strncmp(err.text, bad[i].says, strlen(bad[i].says)) != 0) {
			CU_FAIL("another message");
			fprintf(stderr, "got:  %s\nwant: %s\n", err.text,
				bad[i].says);
		}
	}
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"the shipped file holds the defaults",
		 the_shipped_file_holds_the_defaults},
		{"the shipped file names every key",
		 the_shipped_file_names_every_key},
		{"values reach their fields", values_reach_their_fields},
		{"a heap may use a policy that stands after it",
		 a_heap_may_use_a_policy_that_stands_after_it},
		{"aliases are separated by blanks only",
		 aliases_are_separated_by_blanks_only},
		{"errors name file, line and key",
		 errors_name_file_line_and_key},
		{"two heaps may not share a name",
		 two_heaps_may_not_share_a_name},
		{"a reload changes what may change and names the rest",
		 a_reload_changes_what_may_change_and_names_the_rest},
		{"a changed set of heaps needs a restart",
		 a_changed_set_of_heaps_needs_a_restart},
		{"a setting counts instead of the file's key",
		 a_setting_counts_instead_of_the_files_key},
		{"a later setting adds to an earlier one",
		 a_later_setting_adds_to_an_earlier_one},
		{"a bad setting is named", a_bad_setting_is_named},
		CU_TEST_INFO_NULL,
	};
	CU_SuiteInfo suites[] = {
		{.pName = "config", .pTests = tests},
		CU_SUITE_INFO_NULL,
	};

	return t_main(argc, argv, suites);
}
