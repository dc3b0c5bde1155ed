/* SPDX-License-Identifier: MIT */
#include "lab/trace.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"

int trace_error(const struct trace_event *event, struct conf_error *err,
		const char *format, ...)
{
	va_list args;
	int n;

	n = snprintf(err->text, sizeof(err->text), "%s:%u: %s%s", event->file,
		     event->line, event->name, *event->name ? ": " : "");
	va_start(args, format);
	if (n >= 0 && n < (int)sizeof(err->text))
		(void)vsnprintf(err->text + n, sizeof(err->text) - (size_t)n,
				format, args);
	va_end(args);
	return CONF_E_INVALID;
}

/* Return: the next line that says something, or NULL at the end. */
static char *next_line(struct trace_reader *reader)
{
	while (*reader->next) {
		char *line = reader->next;
		size_t len = strcspn(line, "\n");

		reader->next = line + len + (line[len] == '\n');
		reader->line++;
		line[len] = '\0';
		if (len && line[len - 1] == '\r')
			line[len - 1] = '\0';
		if (*line && *line != '#')
			return line;
	}
	return NULL;
}

static int split_keys(struct trace_event *event, char *text,
		      struct conf_error *err)
{
	char *save = NULL;

	for (char *word = strtok_r(text, " ", &save); word;
	     word = strtok_r(NULL, " ", &save)) {
		char *equals = strchr(word, '=');

		if (!equals || equals == word)
			return trace_error(event, err,
					   "\"%.64s\" is not KEY=VALUE", word);
		*equals = '\0';
		if (trace_find(event, word))
			return trace_error(event, err,
					   "the key %.64s is there twice",
					   word);
		if (event->n_keys == TRACE_KEYS_MAX)
			return trace_error(event, err, "more than %u keys",
					   TRACE_KEYS_MAX);
		event->keys[event->n_keys++] = (struct conf_entry){
			.file = event->file,
			.line = event->line,
			.key = word,
			.value = equals + 1,
		};
	}
	return 0;
}

int trace_open(struct trace_reader *ret, const char *file, char *text,
	       struct conf_error *err)
{
	struct trace_event none = {.name = "", .file = file, .line = 1};
	char *line;

	*ret = (struct trace_reader){.file = file, .next = text};
	line = next_line(ret);
	if (!line || strcmp(line, "dmaheap-trace 1") != 0)
		return trace_error(&none, err,
				   "not a trace: the first line is not "
				   "\"dmaheap-trace 1\"");
	return 0;
}

/* Cuts the first word off. Return: what follows it. */
static char *cut_word(char *text)
{
	char *end = text + strcspn(text, " ");

	if (*end)
		*end++ = '\0';
	return end;
}

int trace_read_node(struct trace_reader *reader, struct trace_event *ret,
		    struct conf_error *err)
{
	char *line = next_line(reader), *rest;

	*ret = (struct trace_event){.name = "",
				    .file = reader->file,
				    .line = reader->line};
	if (!line)
		return trace_error(ret, err, "ends before the line \"node\"");
	rest = cut_word(line);
	if (strcmp(line, "node") != 0)
		return trace_error(ret, err,
				   "the second line must begin with \"node\"");
	ret->name = line;
	return split_keys(ret, rest, err);
}

int trace_read(struct trace_reader *reader, struct trace_event *ret,
	       struct conf_error *err)
{
	char *line = next_line(reader), *name, *rest;

	if (!line)
		return TRACE_E_END;
	*ret = (struct trace_event){.name = "",
				    .file = reader->file,
				    .line = reader->line};
	name = cut_word(line);
	if (parse_u64(line, &ret->time_ns) ||
	    ret->time_ns > (UINT64_C(1) << 62))
		return trace_error(ret, err, "\"%.32s\" is not a time in ns",
				   line);
	if (ret->time_ns < reader->last_ns)
		return trace_error(ret, err,
				   "the time falls: an earlier line has %llu",
				   (unsigned long long)reader->last_ns);
	reader->last_ns = ret->time_ns;
	rest = cut_word(name);
	if (!*name)
		return trace_error(ret, err, "no event after the time");
	ret->name = name;
	return split_keys(ret, rest, err);
}

const struct conf_entry *trace_find(const struct trace_event *event,
				    const char *key)
{
	for (size_t i = 0; i < event->n_keys; i++) {
		if (!strcmp(event->keys[i].key, key))
			return &event->keys[i];
	}
	return NULL;
}

int trace_need(const struct trace_event *event, const char *key,
	       const struct conf_entry **ret, struct conf_error *err)
{
	*ret = trace_find(event, key);
	return *ret ? 0 : trace_error(event, err, "needs the key %s", key);
}

int trace_need_u64(const struct trace_event *event, const char *key,
		   uint64_t max, uint64_t *ret, struct conf_error *err)
{
	const struct conf_entry *entry;
	int r = trace_need(event, key, &entry, err);

	return r ? r : conf_entry_u64(entry, 0, max, ret, err);
}

int trace_only(const struct trace_event *event, const char *const *allowed,
	       struct conf_error *err)
{
	for (size_t i = 0; i < event->n_keys; i++) {
		bool known = false;

		for (size_t n = 0; allowed[n] && !known; n++)
			known = !strcmp(event->keys[i].key, allowed[n]);
		if (!known)
			return trace_error(event, err, "no such key: %.64s",
					   event->keys[i].key);
	}
	return 0;
}
