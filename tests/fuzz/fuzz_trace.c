/* SPDX-License-Identifier: MIT */
/* A trace, read to its end or its first error. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "lab/trace.h"

static int read_all(char *text, struct conf_error *error)
{
	static const char *const allowed[] = {"id", "heap", "size", NULL};
	struct trace_reader reader;
	struct trace_event event;
	uint64_t last_ns = 0, value;
	const struct conf_entry *entry;
	int r;

	r = trace_open(&reader, "f", text, error);
	if (r == 0)
		r = trace_read_node(&reader, &event, error);
	while (r == 0) {
		r = trace_read(&reader, &event, error);
		if (r)
			break;
		FUZZ_REQUIRE(event.time_ns >= last_ns);
		FUZZ_REQUIRE(event.n_keys <= TRACE_KEYS_MAX);
		FUZZ_REQUIRE(event.name[0]);
		last_ns = event.time_ns;
		r = trace_need(&event, "id", &entry, error);
		FUZZ_REQUIRE((r == 0) == (trace_find(&event, "id") != NULL));
		if (r == 0)
			r = trace_need_u64(&event, "id", 1000, &value, error);
		else
			r = 0;
		if (r == 0)
			r = trace_only(&event, allowed, error);
		r = 0; /* read on: the reader is what is looked at */
	}
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	char *text = malloc(n_bytes + 1);
	struct conf_error error = {0};
	int r;

	FUZZ_REQUIRE(text);
	memcpy(text, data, n_bytes);
	text[n_bytes] = '\0';
	r = read_all(text, &error);
	FUZZ_REQUIRE(r == TRACE_E_END || r == CONF_E_INVALID);
	if (r == CONF_E_INVALID)
		FUZZ_REQUIRE(!strncmp(error.text, "f:", 2));
	free(text);
	return 0;
}
