/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>

#include "base/slab_class.h"
#include "lab/experiment_threadcache.h"

/* tests/data/binder-thread-cache.tsv */
#define SOURCE_CLASS_ACTIVE  220u
#define SOURCE_QUIET_ACTIVE  194u
#define SOURCE_QUIET_TOTAL   403u
#define SOURCE_SLABS         31u
#define SOURCE_PER_SLAB      13u
#define SOURCE_CLASS_OBJECTS 624u
#define SOURCE_OWN_OBJECTS   728u

static const char *const kind_names[] = {
	[THREADCACHE_CLASS] = "512-byte class",
	[THREADCACHE_OWN] = "own cache",
	[THREADCACHE_ALIGNED] = "own cache, cache line",
};

static struct report_context counted(const struct threadcache_result *r)
{
	return (struct report_context){
		.policy = "none",
		.seed = r->params.seed,
		.profile = "none",
		.kind = "counted in base/slab",
	};
}

static struct report_context measured(const struct threadcache_result *r)
{
	return (struct report_context){
		.policy = "none",
		.seed = r->params.seed,
		.profile = "this host",
		.kind = "measured",
	};
}

static bool both_ran(const struct threadcache_result *r)
{
	for (unsigned int i = 0; i < 4; i++)
		if (r->neighbour_ns[i / 2][i % 2] <= 0)
			return false;
	return true;
}

static void report_trace(const struct threadcache_result *r,
			 struct report *report)
{
	static const char *const sources[] = {
		[THREADCACHE_CLASS] = "220 x 512 = 112640 bytes (shared)",
		[THREADCACHE_OWN] = "194 of 403 in 31 slabs of 13: 126976",
		[THREADCACHE_ALIGNED] = "asked for, not measured",
	};
	const struct report_context context = counted(r);
	char title[128];

	(void)snprintf(title, sizeof(title),
		       "The quiet run: %u objects of 304 bytes come, %u stay",
		       r->params.n_peak, r->params.n_quiet);
	report_table(report, title, &context,
		     "cache|slot bytes|per slab|slabs|active|num_objs|bytes|"
		     "slabs after shrink|at best|source");
	for (unsigned int k = 0; k < THREADCACHE_KINDS; k++) {
		const struct threadcache_cache *c = &r->cache[k];

		report_row(report,
			   "%s|%zu|%u|%" PRIu64 "|%" PRIu64 "|%" PRIu64
			   "|%" PRIu64 "|%" PRIu64 "|%" PRIu64 "|%s",
			   kind_names[k], c->stride_bytes, c->per_slab,
			   c->peak_slabs, c->quiet_active, c->quiet_total,
			   c->quiet_bytes, c->shrunk_slabs, c->best_slabs,
			   sources[k]);
	}
	report_note(report,
		    "num_objs counts the room in whole slabs, used or not: it "
		    "rises with the objects per slab (source: %u = 39 x 16 "
		    "in the class, %u = 56 x 13 in the cache).",
		    SOURCE_CLASS_OBJECTS, SOURCE_OWN_OBJECTS);
}

static void report_pinned(const struct threadcache_result *r,
			  struct report *report)
{
	const struct threadcache_cache *c = &r->cache[THREADCACHE_OWN];
	const struct report_context context = counted(r);

	report_table(report, "Own cache after the shrink: what holds its slabs",
		     &context, "objects in the slab|slabs held by so many");
	for (unsigned int n = 1; n <= c->per_slab; n++)
		if (c->occupancy[n])
			report_row(report, "%u|%" PRIu64, n, c->occupancy[n]);
}

static void report_many(const struct threadcache_result *r,
			struct report *report)
{
	const struct report_context context = counted(r);

	report_table(report,
		     "Internal fragmentation: 5000 objects of 300 bytes",
		     &context,
		     "cache|slot bytes|slabs|bytes|not used by objects|source");
	for (unsigned int k = 0; k < 2; k++) {
		const struct threadcache_cache *c = &r->many[k];
		uint64_t used = c->quiet_active * c->asked_bytes;

		report_row(report,
			   "%s|%zu|%" PRIu64 "|%" PRIu64 "|%" PRIu64 "|%s",
			   kind_names[k], c->stride_bytes, c->peak_slabs,
			   c->quiet_bytes, c->quiet_bytes - used,
			   k == THREADCACHE_CLASS ? "1 MB wasted" : "");
	}
}

static void report_neighbours(const struct threadcache_result *r,
			      struct report *report)
{
	static const char *const names[] = {"default alignment, a shared line",
					    "aligned to the cache line"};
	const struct report_context context = measured(r);

	if (!both_ran(r)) {
		report_note(report, "Two threads on neighbouring objects: not "
				    "measured, two CPUs were not to be had at "
				    "once.");
		return;
	}
	report_table(report,
		     "Two threads, each writing its own of two neighbours "
		     "(median of the rounds in which both ran)",
		     &context,
		     "objects|ns per write|ns per atomic write|source");
	report_row(report, "one thread alone|%.2f|%.2f|", r->alone_ns[0],
		   r->alone_ns[1]);
	for (unsigned int i = 0; i < 2; i++)
		report_row(report, "%s|%.2f|%.2f|%s", names[i],
			   r->neighbour_ns[i][0], r->neighbour_ns[i][1],
			   i ? "" : "the question was asked, not measured");
}

static void report_times(const struct threadcache_result *r,
			 struct report *report)
{
	static const char *const names[] = {
		[THREADCACHE_GLIBC] = "glibc malloc",
		[THREADCACHE_SIZE_CLASS] = "512-byte class",
		[THREADCACHE_SLAB] = "own cache",
		[THREADCACHE_SLAB_FRONT] = "own cache, through a front",
	};
	const struct report_context context = measured(r);

	report_table(report,
		     "Speed: alloc and free of one object, least of "
		     "interleaved rounds",
		     &context, "from|ns per pair|source");
	for (unsigned int k = 0; k < THREADCACHE_SOURCES; k++)
		report_row(report, "%s|%.1f|%s", names[k], r->pair_ns[k],
			   k ? "" : "throughput tables differ by 6 % at most");
	report_neighbours(r, report);
}

static void report_daemon(const struct threadcache_result *r,
			  struct report *report)
{
	struct report_context context = measured(r);

	context.policy = "840-high";
	report_table(report,
		     "The daemon: alloc and close of 64 KiB, one client",
		     &context,
		     "its objects from|requests per second|daemon's CPU us per "
		     "request|source");
	if (r->daemon[0].per_s < 0) {
		report_note(report, "Not measured: %s", r->daemon_why_not);
		return;
	}
	report_row(report,
		   "slab caches|%.0f|%.2f|throughput the same within "
		   "6 %%",
		   r->daemon[0].per_s, r->daemon[0].cpu_us);
	report_row(report, "malloc|%.0f|%.2f|", r->daemon[1].per_s,
		   r->daemon[1].cpu_us);
}

static void conclude_memory(const struct threadcache_result *r,
			    struct report *report)
{
	const struct threadcache_cache *own = &r->cache[THREADCACHE_OWN];
	const struct threadcache_cache *class = &r->cache[THREADCACHE_CLASS];
	uint64_t shrunk = own->shrunk_slabs * own->slab_bytes;
	uint64_t plain = SOURCE_CLASS_ACTIVE * slab_class_bytes(304);

	report_conclude(report,
			"Memory: in the quiet run the own cache holds %" PRIu64
			" bytes, %s the %" PRIu64
			" of the source's %u slots of the "
			"class and %s the %" PRIu64
			" that the class's slabs hold "
			"under the same trace; a shrink leaves %" PRIu64
			" bytes (%" PRIu64 " of %" PRIu64 " slabs, %" PRIu64
			" if objects could move).",
			own->quiet_bytes,
			own->quiet_bytes > plain ? "more than"
						 : "not more than",
			plain, SOURCE_CLASS_ACTIVE,
			own->quiet_bytes < class->quiet_bytes ? "less than"
							      : "not less than",
			class->quiet_bytes, shrunk, own->shrunk_slabs,
			own->quiet_total / own->per_slab, own->best_slabs);
}

static void conclude_speed(const struct threadcache_result *r,
			   struct report *report)
{
	const double *ns = r->pair_ns;
	double best_other =
		MIN(ns[THREADCACHE_SIZE_CLASS], ns[THREADCACHE_GLIBC]);
	/* within a twentieth of each other they do not differ */
	const char *place = ns[THREADCACHE_SLAB] < best_other / 1.05
				    ? "indeed the fastest"
			    : ns[THREADCACHE_SLAB] > best_other * 1.05
				    ? "not the fastest"
				    : "level with the fastest";

	report_conclude(report,
			"Speed: an alloc and free takes %.1f ns from the own "
			"cache, %.1f from the class, %.1f from malloc: the own "
			"cache is %s of the three.",
			ns[THREADCACHE_SLAB], ns[THREADCACHE_SIZE_CLASS],
			ns[THREADCACHE_GLIBC], place);
	if (both_ran(r)) {
		double plain = r->neighbour_ns[0][0] / r->neighbour_ns[1][0];
		double atomic = r->neighbour_ns[0][1] / r->neighbour_ns[1][1];

		report_conclude(
			report,
			"Alignment: when two threads write neighbours at once, "
			"a write takes %.1f times as long in a shared line, an "
			"atomic one %.1f times: %s.",
			plain, atomic,
			MAX(plain, atomic) > 1.2
				? "bouncing lines are real, for those who "
				  "share them"
				: "it does not show here");
	}
	if (r->daemon[0].per_s > 0) {
		double ratio = r->daemon[0].cpu_us / r->daemon[1].cpu_us;

		report_conclude(report,
				"A request costs the daemon %.2f times the CPU "
				"time with slab caches that it costs with "
				"malloc: %s.",
				ratio,
				ratio < 0.95   ? "a gain"
				: ratio > 1.05 ? "a loss"
					       : "no difference to speak of");
	}
}

void threadcache_report(const struct threadcache_result *result,
			struct report *report)
{
	report_trace(result, report);
	report_pinned(result, report);
	report_many(result, report);
	report_times(result, report);
	report_daemon(result, report);
	conclude_memory(result, report);
	conclude_speed(result, report);
}
