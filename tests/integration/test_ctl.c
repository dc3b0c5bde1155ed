/* SPDX-License-Identifier: MIT */
/* dmaheapctl's verbs that ask, against a real daemon; JSON key by key. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "integration/common.h"
#include "integration/ctl_run.h"

static void every_verb_explains_itself(void)
{
	static const char *const verbs[] =
		{"wait",     "stop",     "alloc",   "stats",     "top",
		 "pools",    "heaps",    "buffers", "buddyinfo", "pagetypeinfo",
		 "vmstat",   "slabinfo", "quota",   "trace",     "policy",
		 "pressure", "inject",   "shrink",  "reload",    "doctor"};

	CU_ASSERT_EQUAL(ctl("--help"), 0);
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		char line[64];

		snprintf(line, sizeof(line), "%s --help", verbs[i]);
		CU_ASSERT_EQUAL(ctl(line), 0);
		CU_ASSERT(ctl_said("Usage: dmaheapctl "));
		CU_ASSERT(ctl_said(verbs[i]));
		CU_ASSERT(ctl_said("--json"));
	}
	CU_ASSERT_EQUAL(ctl(""), 2);
	CU_ASSERT_EQUAL(ctl("nothing"), 2);
	CU_ASSERT_EQUAL(ctl("--json stats"), 2);
	CU_ASSERT(ctl_complained("--json: options follow the verb"));
	CU_ASSERT_EQUAL(ctl("stats --nothing"), 2);
	CU_ASSERT_EQUAL(ctl("stats argument"), 2);
}

static void wait_answers_at_once_or_gives_up(void)
{
	json_t *json = ctl_json("wait");

	CTL_KEYS(json, "version pid exact_lifetime admin");
	CU_ASSERT_EQUAL(ctl_number_at(json, "pid"), it_daemon.pid);
	json_decref(json);
	CU_ASSERT_EQUAL(ctl("wait --timeout 0.1 --socket /nowhere"), 1);
	CU_ASSERT(ctl_complained("no dmaheapd within 0.1 s"));
}

static void allocated_as(const char *size, const char *composition)
{
	char line[64], *dump;
	json_t *json, *buffer;

	snprintf(line, sizeof(line), "alloc %s", size);
	json = ctl_json(line);
	buffer = json_array_get(json, 0);
	dump = json_dumps(json_object_get(buffer, "composition"), JSON_COMPACT);
	CU_ASSERT_STRING_EQUAL(dump, composition);
	free(dump);
	json_decref(json);
	it_wait_all_free("system");
	it_shrink(0);
}

static void alloc_reports_the_composition_of_a_fresh_node(void)
{
	allocated_as("10M", "{\"8\":10,\"4\":0,\"0\":0}");
	allocated_as("1028K", "{\"8\":1,\"4\":0,\"0\":1}");
	allocated_as("60K", "{\"8\":0,\"4\":0,\"0\":15}");
	allocated_as("64K", "{\"8\":0,\"4\":1,\"0\":0}");
	allocated_as("1", "{\"8\":0,\"4\":0,\"0\":1}");
}

static void alloc_prints_just_the_documented_keys(void)
{
	json_t *json = ctl_json("alloc 1 --count 3"), *buffer;

	CU_ASSERT_EQUAL(json_array_size(json), 3);
	buffer = json_array_get(json, 2);
	CTL_KEYS(buffer, "id heap size composition source backing fallback "
			 "measured_ns modelled_ns");
	CTL_KEYS(json_object_get(buffer, "backing"), "asked got reason");
	CTL_KEYS(json_object_get(buffer, "measured_ns"),
		 "total queue node populate waited_stall");
	CTL_KEYS(json_object_get(buffer, "modelled_ns"), "node stall");
	CU_ASSERT_EQUAL(ctl_number_at(buffer, "size"), 4096);
	CU_ASSERT_STRING_EQUAL(ctl_text_at(buffer, "heap"), "system");
	CU_ASSERT_STRING_EQUAL(ctl_text_at(buffer, "source"), "node");
	json_decref(json);
}

static void alloc_says_why_it_failed(void)
{
	CU_ASSERT_EQUAL(ctl("alloc 0"), 1);
	CU_ASSERT(ctl_complained("len_bytes"));
	CU_ASSERT_EQUAL(ctl("alloc 9223372036854775808"), 1);
	CU_ASSERT_EQUAL(ctl("alloc 2G"), 1);
	CU_ASSERT_EQUAL(ctl("alloc 1 --heap nothing"), 1);
	CU_ASSERT(ctl_complained("nothing"));
	CU_ASSERT_EQUAL(ctl("alloc"), 2);
	CU_ASSERT_EQUAL(ctl("alloc many"), 2);
	CU_ASSERT_EQUAL(ctl("alloc 1 --count 0"), 2);
	CU_ASSERT_EQUAL(ctl("alloc 1 --hold -- true"), 2);
	CU_ASSERT_EQUAL(ctl("alloc 1 --name 0123456789abcdef0123456789abcdef"),
			2);
	CU_ASSERT(ctl_complained("--name: 32 bytes, at most 31 are allowed"));
	CU_ASSERT_EQUAL(ctl("alloc 1 --name a\tb"), 2);
	CU_ASSERT(ctl_complained("--name: \"a?b\" is not printable"));
	CU_ASSERT_EQUAL(ctl("alloc 1 -- /nowhere/nothing"), 1);
}

static void alloc_writes_to_zeroed_memory_also_the_second_time(void)
{
	for (unsigned int i = 0; i < 2; i++) {
		json_t *json = ctl_json("alloc 4M --write --count 4");

		CTL_KEYS(json_object_get(json_array_get(json, 3), "written_ns"),
			 "map write");
		json_decref(json);
		CU_ASSERT_TRUE(it_wait_all_free("system"));
	}
	CU_ASSERT_EQUAL(ctl("alloc 4M --write"), 0);
	CU_ASSERT(ctl_said("WRITE"));
}

static void a_command_gets_the_buffers(void)
{
	CU_ASSERT_EQUAL(ctl("alloc 8K --count 2 -- sh -c 'set -- $DMAHEAP_FDS; "
			    "echo $#; for fd; do wc -c </proc/self/fd/$fd; "
			    "done; "
			    "exit 7'"),
			7);
	CU_ASSERT_STRING_EQUAL(ctl_result.out, "2\n8192\n8192\n");
	CU_ASSERT(ctl_complained("COMPOSITION"));
}

/* The one buffer of that name in BUFFERS, or NULL; for json_decref(). */
static json_t *find_buffer(const char *options, const char *name)
{
	char line[64];
	json_t *json, *found = NULL;

	snprintf(line, sizeof(line), "buffers %s", options);
	json = ctl_json(line);
	for (size_t i = 0; i < json_array_size(json); i++)
		if (!strcmp(ctl_text_at(json_array_get(json, i), "name"), name))
			found = json_incref(json_array_get(json, i));
	json_decref(json);
	return found;
}

static void a_held_buffer_is_listed_with_its_holder(void)
{
	json_t *buffer, *holder;
	char byte;
	int fd;
	pid_t pid = ctl_start("alloc 64K --name held --hold --json", &fd);

	T_REQUIRE(read(fd, &byte, 1) == 1);
	buffer = find_buffer("--holders", "held");
	T_REQUIRE(buffer != NULL);
	CTL_KEYS(buffer, "id heap name size age_ns dev ino uid pid "
			 "owner_is_dead composition state backing holders");
	CU_ASSERT_EQUAL(ctl_number_at(buffer, "pid"), pid);
	CU_ASSERT_EQUAL(ctl_number_at(buffer, "uid"), getuid());
	CU_ASSERT_STRING_EQUAL(ctl_text_at(buffer, "state"), "live");
	CU_ASSERT(json_is_false(json_object_get(buffer, "owner_is_dead")));
	holder = json_array_get(json_object_get(buffer, "holders"), 0);
	CTL_KEYS(holder, "pid comm fds mappings");
	CU_ASSERT_EQUAL(ctl_number_at(holder, "pid"), pid);
	CU_ASSERT_STRING_EQUAL(ctl_text_at(holder, "comm"), "dmaheapctl");
	CU_ASSERT_EQUAL(ctl_number_at(holder, "fds"), 1);
	json_decref(buffer);
	CU_ASSERT_EQUAL(ctl("buffers"), 0);
	CU_ASSERT(ctl_said("held"));
	CU_ASSERT_EQUAL(ctl("buffers --bufinfo --json"), 2);
	CU_ASSERT(ctl_complained("--bufinfo and --json exclude each other"));
	CU_ASSERT_EQUAL(ctl("buffers --bufinfo"), 0);
	CU_ASSERT(ctl_said("Total 1 objects, 65536 bytes"));
	CU_ASSERT_EQUAL(ctl_end(pid, SIGTERM), 0);
	close(fd);
	CU_ASSERT_TRUE(it_wait_all_free("system"));
	buffer = find_buffer("", "held");
	CU_ASSERT(!buffer || strcmp(ctl_text_at(buffer, "state"), "live") != 0);
	json_decref(buffer);
}

static void a_buffer_whose_owner_died_is_marked(void)
{
	json_t *buffer, *holder;
	pid_t orphan;

	/* The shell asked for it, and leaves it to a child. */
	CU_ASSERT_EQUAL(ctl("alloc 64K --name orphan -- sh -c 'sleep 60 "
			    "</dev/null >/dev/null 2>&1 & echo $!'"),
			0);
	orphan = atoi(ctl_result.out);
	T_REQUIRE(orphan > 0);
	buffer = find_buffer("--holders", "orphan");
	T_REQUIRE(buffer != NULL);
	CU_ASSERT(json_is_true(json_object_get(buffer, "owner_is_dead")));
	holder = json_array_get(json_object_get(buffer, "holders"), 0);
	CU_ASSERT_EQUAL(ctl_number_at(holder, "pid"), orphan);
	json_decref(buffer);
	CU_ASSERT_EQUAL(ctl("buffers --holders"), 0);
	CU_ASSERT(ctl_said("dead"));
	kill(orphan, SIGKILL);
	CU_ASSERT_TRUE(it_wait_all_free("system"));
}

static void stats_prints_just_the_documented_keys(void)
{
	json_t *json, *zone, *heap, *pool;

	CU_ASSERT_EQUAL(ctl("alloc 10M"), 0);
	json = ctl_json("stats");
	zone = json_array_get(json_object_get(json, "zones"), 0);
	heap = json_array_get(json_object_get(json, "heaps"), 0);
	pool = json_array_get(json_object_get(heap, "pools"), 0);
	CTL_KEYS(json, "daemon zones vmstat heaps backing clients quota");
	CTL_KEYS(json_object_get(json, "daemon"),
		 "version uptime_s loop pid clock");
	CTL_KEYS(zone, "name size_bytes free_bytes watermark free_blocks "
		       "fragmentation_index");
	CTL_KEYS(json_object_get(zone, "watermark"), "min low high boost");
	CU_ASSERT_EQUAL(json_array_size(json_object_get(zone, "free_blocks")),
			11);
	CU_ASSERT_EQUAL(json_array_size(
				json_object_get(zone, "fragmentation_index")),
			11);
	CTL_KEYS(heap, "name policy buffers bytes allocs failures "
		       "failures_though_free pools measured_ns "
		       "modelled_stall_ns");
	CTL_KEYS(pool, "order blocks bytes hits misses limit_bytes");
	CTL_KEYS(json_object_get(heap, "measured_ns"), "p50 p90 p99 p999 max");
	CTL_KEYS(json_object_get(heap, "modelled_stall_ns"),
		 "p50 p90 p99 p999 max");
	CTL_KEYS(json_object_get(json, "backing"),
		 "mode reason resident_bytes parked_bytes parked_hits "
		 "parked_misses budget_bytes");
	CU_ASSERT_EQUAL(ctl_number_at(heap, "allocs"), 1);
	CU_ASSERT(ctl_number_at(json_object_get(heap, "measured_ns"), "max") >
		  0);
	CU_ASSERT_EQUAL(ctl_number_at(json_object_get(json, "daemon"), "pid"),
			it_daemon.pid);
	CU_ASSERT(json_object_size(json_object_get(json, "vmstat")) > 10);
	json_decref(json);
	CU_ASSERT_EQUAL(ctl("stats"), 0);
	CU_ASSERT(ctl_said("system"));
}

/* Return: whether @line is a sample whose family @text declares before. */
static bool is_declared(const char *text, const char *line)
{
	char name[128], type[160];
	size_t n = strcspn(line, "{ ");
	static const char *const suffixes[] = {"", "_total", "_bucket",
					       "_count", "_sum"};

	for (size_t i = 0; i < 5; i++) {
		size_t cut = strlen(suffixes[i]);
		const char *found;

		if (n <= cut || n - cut >= sizeof(name) ||
		    strncmp(line + n - cut, suffixes[i], cut) != 0)
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)(n - cut), line);
		snprintf(type, sizeof(type), "# TYPE %s ", name);
		found = strstr(text, type);
		if (found && found < line)
			return true;
	}
	return false;
}

static void openmetrics_declares_what_it_shows(void)
{
	unsigned int n = 0, n_undeclared = 0;
	const char *line;

	CU_ASSERT_EQUAL(ctl("alloc 10M"), 0);
	CU_ASSERT_EQUAL(ctl("stats --openmetrics --json"), 2);
	CU_ASSERT(
		ctl_complained("--openmetrics and --json exclude each other"));
	CU_ASSERT_EQUAL(ctl("stats --openmetrics"), 0);
	CU_ASSERT(ctl_said("dmaheap_heap_allocs_total{heap="
			   "\"system\"} 1\n"));
	CU_ASSERT(
		ctl_said("dmaheap_heap_measured_seconds_bucket{heap=\"system\","
			 "le=\"+Inf\"} 1\n"));
	for (line = ctl_result.out; *line; line = strchr(line, '\n') + 1) {
		if (*line == '#')
			continue;
		n++;
		if (!is_declared(ctl_result.out, line)) {
			n_undeclared++;
			fprintf(stderr, "%.60s\n", line);
		}
	}
	CU_ASSERT(n > 50);
	CU_ASSERT_EQUAL(n_undeclared, 0);
	CU_ASSERT_STRING_EQUAL(line - strlen("# EOF\n"), "# EOF\n");
}

static void lists_have_their_keys(void)
{
	json_t *json = ctl_json("heaps"), *entry = json_array_get(json, 0);

	CTL_KEYS(entry, "name policy aliases uncached");
	CU_ASSERT_STRING_EQUAL(ctl_text_at(entry, "name"), "system");
	CU_ASSERT(json_array_size(json_object_get(entry, "aliases")) > 0);
	json_decref(json);

	json = ctl_json("pools");
	entry = json_array_get(json, 0);
	CTL_KEYS(entry, "heap pools");
	CTL_KEYS(json_array_get(json_object_get(entry, "pools"), 0),
		 "order blocks bytes hits misses limit_bytes");
	json_decref(json);

	json = ctl_json("quota");
	CTL_KEYS(json_array_get(json, 0),
		 "uid bytes_used bytes_limit buffers_used buffers_limit "
		 "connections_used connections_limit requests_per_s_limit "
		 "denied");
	json_decref(json);
	CU_ASSERT_EQUAL(ctl("heaps"), 0);
	CU_ASSERT_EQUAL(ctl("pools"), 0);
	CU_ASSERT_EQUAL(ctl("quota"), 0);
}

static void the_nodes_texts_come_whole_and_as_json(void)
{
	json_t *json = ctl_json("buddyinfo"), *entry = json_array_get(json, 0);

	CTL_KEYS(entry, "node zone free_blocks");
	CU_ASSERT_EQUAL(json_array_size(json_object_get(entry, "free_blocks")),
			11);
	json_decref(json);
	CU_ASSERT_EQUAL(ctl("buddyinfo"), 0);
	CU_ASSERT(!strncmp(ctl_result.out, "Node 0, zone", 12));

	json = ctl_json("pagetypeinfo");
	CTL_KEYS(json, "free block_types blocks");
	entry = json_array_get(json_object_get(json, "free"), 0);
	CTL_KEYS(entry, "node zone type free_blocks");
	entry = json_array_get(json_object_get(json, "blocks"), 0);
	CTL_KEYS(entry, "node zone blocks");
	CU_ASSERT_EQUAL(json_array_size(json_object_get(entry, "blocks")),
			json_array_size(json_object_get(json, "block_types")));
	json_decref(json);

	json = ctl_json("vmstat");
	CU_ASSERT_PTR_NOT_NULL(json_object_get(json, "compact_stall"));
	CU_ASSERT_PTR_NOT_NULL(json_object_get(json, "pgmigrate_success"));
	json_decref(json);

	json = ctl_json("slabinfo");
	CTL_KEYS(json_array_get(json, 0),
		 "name active_objects objects object_bytes objects_per_slab "
		 "pages_per_slab active_slabs slabs");
	json_decref(json);
}

int main(int argc, char **argv)
{
	CU_TestInfo tests[] = {
		{"every verb explains itself", every_verb_explains_itself},
		{"wait answers at once or gives up",
		 wait_answers_at_once_or_gives_up},
		{"alloc reports the composition of a fresh node",
		 alloc_reports_the_composition_of_a_fresh_node},
		{"alloc prints just the documented keys",
		 alloc_prints_just_the_documented_keys},
		{"alloc says why it failed", alloc_says_why_it_failed},
		{"alloc writes to zeroed memory, also the second time",
		 alloc_writes_to_zeroed_memory_also_the_second_time},
		{"a command gets the buffers", a_command_gets_the_buffers},
		{"a held buffer is listed with its holder",
		 a_held_buffer_is_listed_with_its_holder},
		{"a buffer whose owner died is marked",
		 a_buffer_whose_owner_died_is_marked},
		{"stats prints just the documented keys",
		 stats_prints_just_the_documented_keys},
		{"openmetrics declares what it shows",
		 openmetrics_declares_what_it_shows},
		{"lists have their keys", lists_have_their_keys},
		{"the node's texts come whole and as JSON",
		 the_nodes_texts_come_whole_and_as_json},
		CU_TEST_INFO_NULL,
	};

	return it_main(argc, argv, tests);
}
