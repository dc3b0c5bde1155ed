/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/err.h"
#include "lab/output.h"
#include "mm/node.h"

/*
 * One file, nothing fetched: style and drawings are inline. Each table has two
 * drawings over the number of the allocation: its latency on a logarithmic
 * scale, and its composition by bytes.
 */

#define PLOT_WIDTH    720u
#define PLOT_HEIGHT   140u
#define PLOT_BARS_MAX 360u /* more rows share a bar: the slowest is drawn */

/* By order: the larger, the darker. */
static const char *const colours[POLICY_ORDER_COUNT] = {"#f2c14e", "#e9b44c",
							"#d9a441", "#c9943a",
							"#5fa8a0", "#4f9890",
							"#3f8880", "#2f7870",
							"#1f4e79", "#173a5a",
							"#0f263c"};

static void html_escape(struct strbuf *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '<')
			strbuf_append_string(out, "&lt;");
		else if (*text == '>')
			strbuf_append_string(out, "&gt;");
		else if (*text == '&')
			strbuf_append_string(out, "&amp;");
		else
			strbuf_append_char(out, *text);
	}
}

static void html_head(struct strbuf *out)
{
	strbuf_append_string(
		out,
		"<!DOCTYPE html>\n<html lang=\"en\"><head>"
		"<meta charset=\"utf-8\"><title>dmaheap-lab</title>\n<style>\n"
		"body{font:14px/1.45 sans-serif;color:#222;max-width:60em;"
		"margin:2em auto;padding:0 1em}\n"
		"h2{margin:2em 0 .2em}p{margin:.2em 0 .8em}\n"
		"table{border-collapse:collapse;margin:.6em 0}\n"
		"td,th{padding:.15em .8em;text-align:right;border-bottom:1px "
		"solid #ddd;font-variant-numeric:tabular-nums}\n"
		"td:first-child,th:first-child{text-align:left}\n"
		"svg{display:block;margin:.4em 0;background:#fafafa}\n"
		"svg text{font:10px sans-serif;fill:#555}\n"
		".v{color:#555;font-size:12px}\n"
		"</style></head><body>\n<h1>dmaheap-lab</h1>\n"
		"<p>Modelled time of a modelled node: compare figures of one "
		"profile only.</p>\n");
}

/* Height of @ns between 1 us and 10 s on a logarithmic scale, in pixels. */
static unsigned int log_height(uint64_t ns)
{
	/* log2 with 8 fractional bits from the position and the next bits */
	uint64_t us = ns / 1000, mantissa;
	unsigned int exponent, log;

	if (us < 1)
		return 0;
	exponent = 63u - (unsigned int)__builtin_clzll(us);
	mantissa = exponent > 8 ? us >> (exponent - 8) : us << (8 - exponent);
	log = exponent * 256 + (unsigned int)(mantissa & 255);
	return MIN(log * PLOT_HEIGHT / 5953u, PLOT_HEIGHT); /* 5953: 10^7 us */
}

struct bars {
	size_t per_bar;
	size_t n;
	unsigned int width_100; /* of a bar, in hundredths of a pixel */
};

static struct bars bars_of(const struct lab_table *table)
{
	struct bars bars = {.per_bar = table->n_rows / PLOT_BARS_MAX + 1};

	bars.n = (table->n_rows + bars.per_bar - 1) / bars.per_bar;
	bars.width_100 = bars.n ? PLOT_WIDTH * 100 / (unsigned int)bars.n : 0;
	return bars;
}

static const struct lab_row *slowest(const struct lab_table *table,
				     const struct bars *bars, size_t bar)
{
	const struct lab_row *found = &table->rows[bar * bars->per_bar];

	for (size_t i = bar * bars->per_bar;
	     i < MIN((bar + 1) * bars->per_bar, table->n_rows); i++) {
		if (table->rows[i].latency_ns > found->latency_ns)
			found = &table->rows[i];
	}
	return found;
}

static void html_rect(struct strbuf *out, const struct bars *bars, size_t bar,
		      unsigned int y, unsigned int height, const char *colour)
{
	unsigned int x = (unsigned int)bar * bars->width_100;
	unsigned int width = bars->width_100 * 9 / 10;

	strbuf_append(out,
		      "<rect x=\"%u.%02u\" y=\"%u\" width=\"%u.%02u\" "
		      "height=\"%u\" fill=\"%s\"/>",
		      x / 100, x % 100, y, width / 100, width % 100, height,
		      colour);
}

static void html_grid(struct strbuf *out)
{
	static const struct {
		uint64_t ns;
		const char *text;
	} lines[] = {{10000, "10 us"},      {100000, "100 us"},
		     {1000000, "1 ms"},     {10000000, "10 ms"},
		     {100000000, "100 ms"}, {1000000000, "1 s"}};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		unsigned int y = PLOT_HEIGHT - log_height(lines[i].ns);

		strbuf_append(out,
			      "<line x1=\"0\" x2=\"%u\" y1=\"%u\" y2=\"%u\" "
			      "stroke=\"#ccc\"/><text x=\"%u\" y=\"%u\">%s"
			      "</text>",
			      PLOT_WIDTH, y, y, PLOT_WIDTH + 4, y + 3,
			      lines[i].text);
	}
}

static void html_open_plot(struct strbuf *out, const char *title)
{
	strbuf_append(out,
		      "<p class=\"v\">%s</p><svg width=\"%u\" height=\"%u\" "
		      "role=\"img\">",
		      title, PLOT_WIDTH + 50, PLOT_HEIGHT);
}

static void html_latency(const struct lab_table *table, struct strbuf *out)
{
	struct bars bars = bars_of(table);

	html_open_plot(out, "latency of each allocation (logarithmic), its "
			    "stalled part dark");
	html_grid(out);
	for (size_t i = 0; i < bars.n; i++) {
		const struct lab_row *row = slowest(table, &bars, i);
		unsigned int height = log_height(row->latency_ns);
		bool stalled = row->stall_ns > row->latency_ns / 2;

		html_rect(out, &bars, i, PLOT_HEIGHT - height, height,
			  row->failed ? "#000"
			  : stalled   ? "#a33"
				      : "#69c");
	}
	strbuf_append_string(out, "</svg>\n");
}

static void html_composition(const struct lab_table *table, struct strbuf *out)
{
	struct bars bars = bars_of(table);

	html_open_plot(out, "composition by bytes, large orders below");
	for (size_t i = 0; i < bars.n; i++) {
		const struct lab_row *row = slowest(table, &bars, i);
		uint64_t total = 0, below = 0;

		for (unsigned int o = 0; o < POLICY_ORDER_COUNT; o++)
			total += (uint64_t)row->composition[o] << o;
		for (unsigned int o = POLICY_ORDER_COUNT; o-- > 0 && total;) {
			uint64_t pages = (uint64_t)row->composition[o] << o;
			unsigned int from =
				(unsigned int)(below * PLOT_HEIGHT / total);
			unsigned int to = (unsigned int)((below + pages) *
							 PLOT_HEIGHT / total);

			if (to > from)
				html_rect(out, &bars, i, PLOT_HEIGHT - to,
					  to - from, colours[o]);
			below += pages;
		}
	}
	strbuf_append_string(out, "</svg>\n");
}

static void html_legend(const struct lab_table *table, struct strbuf *out)
{
	unsigned int orders[POLICY_ORDER_COUNT];
	unsigned int n = lab_table_orders(table, orders);

	strbuf_append_string(out, "<p class=\"v\">");
	for (unsigned int i = 0; i < n; i++)
		strbuf_append(out,
			      "<span style=\"background:%s\">&emsp;</span> "
			      "order %u&emsp;",
			      colours[orders[i]], orders[i]);
	strbuf_append_string(out, "</p>\n");
}

static int html_summaries(const struct lab_table *table, struct strbuf *out)
{
	strbuf_append_string(
		out, "<table><tr><th>set</th><th>n</th><th>failed</th><th>min "
		     "us</th><th>median us</th><th>p90 us</th><th>max us</th>"
		     "<th>stalled us</th></tr>\n");
	for (uint32_t set = 1; set <= lab_table_n_sets(table); set++) {
		struct lab_summary sum;
		int r = lab_summarise(table, set, &sum);

		if (r)
			return err_trace(r);
		strbuf_append(out,
			      "<tr><td>%" PRIu32 "</td><td>%" PRIu64
			      "</td><td>%" PRIu64 "</td><td>%" PRIu64
			      "</td><td>%" PRIu64 "</td><td>%" PRIu64
			      "</td><td>%" PRIu64 "</td><td>%" PRIu64
			      "</td></tr>\n",
			      set, sum.n, sum.n_failed, ns_to_us(sum.min_ns),
			      ns_to_us(sum.median_ns), ns_to_us(sum.p90_ns),
			      ns_to_us(sum.max_ns), ns_to_us(sum.stall_ns));
	}
	strbuf_append_string(out, "</table>\n");
	return 0;
}

static void html_vmstat(const struct lab_table *table, struct strbuf *out)
{
	strbuf_append_string(out, "<p class=\"v\">vmstat:");
	for (unsigned int i = 0; i < node_vmstat_count(); i++) {
		if (table->vmstat[i])
			strbuf_append(out, " %s&nbsp;%" PRId64,
				      node_vmstat_name(i),
				      (int64_t)table->vmstat[i]);
	}
	strbuf_append_string(out, "</p>\n");
}

static int html_table(const struct lab_table *table, struct strbuf *out)
{
	strbuf_append_string(out, "<h2>");
	html_escape(out, table->scenario);
	strbuf_append_string(out, ": ");
	html_escape(out, table->condition);
	if (table->number)
		strbuf_append(out, " (table %" PRIu32 ")", table->number);
	strbuf_append_string(out, ", policy ");
	html_escape(out, table->policy);
	strbuf_append_string(out, "</h2>\n<p class=\"v\">");
	html_escape(out, table->policy_name);
	strbuf_append(out, ", seed %" PRIu64 ", profile ", table->seed);
	html_escape(out, table->profile);
	if (*table->snapshot) {
		strbuf_append_string(out, ", snapshot ");
		html_escape(out, table->snapshot);
	}
	strbuf_append(out,
		      ", dmaheap %s; node %" PRIu64 " MiB, %" PRIu64
		      " MiB free at the first allocation</p>\n",
		      DMAHEAP_VERSION, table->node_bytes >> 20,
		      table->free_before_bytes >> 20);
	html_latency(table, out);
	html_composition(table, out);
	html_legend(table, out);
	html_vmstat(table, out);
	return html_summaries(table, out);
}

int output_html(const struct lab_results *results, struct strbuf *out)
{
	html_head(out);
	for (size_t i = 0; i < results->n_tables; i++) {
		int r = html_table(&results->tables[i], out);

		if (r)
			return err_trace(r);
	}
	strbuf_append_string(out, "</body></html>\n");
	return strbuf_failed(out) ? err_raise(-ENOMEM) : 0;
}
