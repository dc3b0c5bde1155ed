/* SPDX-License-Identifier: MIT */
/* A configuration file of dmaheapd, and with it the INI reader. */
#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"
#include "fuzz.h"
#include "server/config.h"

/* Comments aside: a policy's says that its keys were set one by one. */
static bool is_same(const char *a, const char *b)
{
	while (*a && *b) {
		size_t n = strcspn(a, "\n"), m = strcspn(b, "\n");

		if (*a != '#' && (n != m || memcmp(a, b, n) != 0))
			return false;
		a += n + (a[n] == '\n');
		b += m + (b[m] == '\n');
	}
	return *a == *b;
}

/* What was accepted can be written and read again, and is the same then. */
static void check_again(const struct config *config)
{
	struct strbuf text = STRBUF_INIT, more = STRBUF_INIT;
	struct config *again = NULL;
	struct conf_error error;
	int r;

	config_render(config, &text);
	FUZZ_REQUIRE(!strbuf_failed(&text));
	/* A value that begins like a comment reads as one after "= ". */
	if (strstr(strbuf_string(&text), "= #") ||
	    strstr(strbuf_string(&text), "= ;")) {
		strbuf_fini(&text);
		return;
	}
	r = config_load_text("again", strbuf_string(&text), text.len, &again,
			     &error);
	if (r)
		fprintf(stderr, "%s\n", error.text);
	FUZZ_REQUIRE(r == 0);
	config_render(again, &more);
	FUZZ_REQUIRE(is_same(strbuf_string(&text), strbuf_string(&more)));
	config_free(again);
	strbuf_fini(&text);
	strbuf_fini(&more);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	struct conf_error error = {0};
	struct quota_rules rules;
	struct config *config;
	int r;

	r = config_load_text("f.conf", (const char *)data, n_bytes, &config,
			     &error);
	FUZZ_REQUIRE(r == 0 || r == CONF_E_INVALID);
	if (r) {
		FUZZ_REQUIRE(!strncmp(error.text, "f.conf", 6));
		FUZZ_REQUIRE(strnlen(error.text, sizeof(error.text)) <
			     sizeof(error.text));
		return 0;
	}
	config_quota_rules(config, UINT64_C(1) << 30, &rules);
	check_again(config);
	config_free(config);
	return 0;
}
