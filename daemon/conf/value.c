/* SPDX-License-Identifier: MIT */
#include "conf/ini.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "base/strbuf.h"

int conf_parse_percent_or_size(const char *text, uint64_t *ret_value,
			       bool *ret_percent)
{
	bool is_percent = *text && text[strlen(text) - 1] == '%';
	char number[32];
	uint64_t value;
	int r;

	if (!is_percent) {
		r = parse_size(text, &value);
	} else if (strlen(text) > sizeof(number)) {
		r = -ERANGE;
	} else {
		memcpy(number, text, strlen(text) - 1);
		number[strlen(text) - 1] = '\0';
		r = parse_u64(number, &value);
		if (r == 0 && value > 100)
			r = -ERANGE;
	}
	if (r)
		return r;
	*ret_value = value;
	*ret_percent = is_percent;
	return 0;
}

const char *conf_format_size(char *buf, size_t size, uint64_t bytes)
{
	static const char units[] = "\0KMGT";
	size_t unit = 0;

	while (bytes && bytes % 1024 == 0 && unit < sizeof(units) - 2) {
		bytes /= 1024;
		unit++;
	}
	(void)snprintf(buf, size, "%" PRIu64 "%.1s", bytes, &units[unit]);
	return buf;
}

_printf_(3, 0) static void format_error(struct conf_error *err,
					const char *prefix, const char *format,
					va_list args)
{
	size_t len = MIN(strlen(prefix), sizeof(err->text) - 1);

	memcpy(err->text, prefix, len);
	(void)vsnprintf(err->text + len, sizeof(err->text) - len, format, args);
}

const char *conf_format_place(char *buf, size_t size, const char *file,
			      unsigned int line)
{
	if (line)
		(void)snprintf(buf, size, "%s:%u", file, line);
	else
		(void)snprintf(buf, size, "%s", file);
	return buf;
}

int conf_entry_error(const struct conf_entry *entry, struct conf_error *err,
		     const char *format, ...)
{
	char place[320], prefix[400];
	va_list args;

	(void)snprintf(prefix, sizeof(prefix), "%s: %s: ",
		       conf_format_place(place, sizeof(place), entry->file,
					 entry->line),
		       entry->key);
	va_start(args, format);
	format_error(err, prefix, format, args);
	va_end(args);
	return CONF_E_INVALID;
}

int conf_section_error(const struct conf_section *section,
		       struct conf_error *err, const char *format, ...)
{
	char place[320], prefix[400];
	va_list args;

	(void)snprintf(prefix, sizeof(prefix), "%s: [%s%s%s]: ",
		       conf_format_place(place, sizeof(place), section->file,
					 section->line),
		       section->kind, *section->name ? " " : "", section->name);
	va_start(args, format);
	format_error(err, prefix, format, args);
	va_end(args);
	return CONF_E_INVALID;
}

int conf_entry_size(const struct conf_entry *entry, uint64_t min_bytes,
		    uint64_t max_bytes, uint64_t *ret, struct conf_error *err)
{
	char min[24], max[24];
	uint64_t value;
	int r = parse_size(entry->value, &value);

	if (r == -EINVAL)
		return conf_entry_error(entry, err,
					"\"%.64s\" is no size; write a number "
					"with K, M, G or T, as in 64M",
					entry->value);
	if (r == 0 && value >= min_bytes && value <= max_bytes) {
		*ret = value;
		return 0;
	}
	return conf_entry_error(entry, err,
				"%.64s is out of range; allowed are %s to %s",
				entry->value,
				conf_format_size(min, sizeof(min), min_bytes),
				conf_format_size(max, sizeof(max), max_bytes));
}

int conf_entry_u64(const struct conf_entry *entry, uint64_t min, uint64_t max,
		   uint64_t *ret, struct conf_error *err)
{
	uint64_t value;
	int r = parse_u64(entry->value, &value);

	if (r == 0 && value >= min && value <= max) {
		*ret = value;
		return 0;
	}
	return conf_entry_error(entry, err,
				"\"%.64s\" is %s; allowed are whole numbers "
				"from %" PRIu64 " to %" PRIu64,
				entry->value,
				r == -EINVAL ? "no number" : "out of range",
				min, max);
}

int conf_entry_bool(const struct conf_entry *entry, bool *ret,
		    struct conf_error *err)
{
	if (parse_bool(entry->value, ret) == 0)
		return 0;
	return conf_entry_error(entry, err,
				"\"%.64s\" is neither on nor off; allowed are "
				"on, yes, true, 1, off, no, false, 0",
				entry->value);
}

int conf_entry_enum(const struct conf_entry *entry, const char *const *names,
		    size_t n, unsigned int *ret, struct conf_error *err)
{
	_cleanup_(strbuf_finip) struct strbuf all = STRBUF_INIT;

	for (size_t i = 0; i < n; i++) {
		if (!strcmp(entry->value, names[i])) {
			*ret = (unsigned int)i;
			return 0;
		}
		strbuf_append(&all, "%s%s", i ? ", " : "", names[i]);
	}
	return conf_entry_error(entry, err,
				"\"%.64s\" is unknown; allowed are %s",
				entry->value, strbuf_string(&all));
}

int conf_entry_percent_or_size(const struct conf_entry *entry,
			       uint64_t whole_bytes, uint64_t *ret,
			       struct conf_error *err)
{
	bool is_percent = false;
	uint64_t value;
	int r = conf_parse_percent_or_size(entry->value, &value, &is_percent);

	if (r)
		return conf_entry_error(entry, err,
					"\"%.64s\" is %s; allowed are a size "
					"as 64M or a share from 0%% to 100%%",
					entry->value,
					r == -ERANGE ? "out of range"
						     : "neither");
	if (is_percent)
		value = whole_bytes / 100 * value +
			whole_bytes % 100 * value / 100;
	*ret = value;
	return 0;
}
