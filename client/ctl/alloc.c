/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "ctl/hold.h"
#include "ctl/json.h"
#include "ctl/names.h"
#include "ctl/table.h"
#include "ctl/units.h"
#include "ctl/verbs.h"

#define COUNT_MAX 65536u

static const char *heap = "system";
static const char *name;
static uint64_t count = 1;
static double hold_s = -1; /* until a signal */
static bool hold, fill;

static const struct option options[] = {
	{.name = "--heap",
	 .kind = OPTION_TEXT,
	 .argument = "NAME",
	 .value = &heap,
	 .help = "the heap, by name or alias (system)"},
	{.name = "--count",
	 .kind = OPTION_NUMBER,
	 .argument = "N",
	 .value = &count,
	 .help = "so many buffers, up to 64 in a request (1)"},
	{.name = "--name",
	 .kind = OPTION_TEXT,
	 .argument = "TEXT",
	 .value = &name,
	 .help = "name the buffers, up to 31 bytes"},
	{.name = "--write",
	 .kind = OPTION_SWITCH,
	 .value = &fill,
	 .help = "map each, find it zero, write to all of it, print the times"},
	{.name = "--hold",
	 .kind = OPTION_DECIMAL,
	 .argument = "SECONDS",
	 .value = &hold_s,
	 .given = &hold,
	 .may_stand_alone = true,
	 .help = "keep them for so long, or until a signal comes"},
	{0},
};

/* What was allocated, and how long it took to map and to write. */
struct buffer {
	int fd;
	struct dmaheap_alloc_report report;
	uint64_t map_ns, write_ns;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static int allocate_some(struct ctl *ctl, uint64_t len_bytes, uint32_t n,
			 struct buffer *buffers)
{
	struct dmaheap_alloc_report reports[DMAHEAP_ALLOC_MAX_COUNT];
	int fds[DMAHEAP_ALLOC_MAX_COUNT];
	char why[DMAHEAP_ERROR_TEXT_MAX_BYTES];
	/* A command inherits them. */
	uint32_t flags = O_RDWR | (*ctl_rest ? 0 : O_CLOEXEC);
	int r = dmaheap_alloc_ex(ctl->dh, heap, len_bytes, flags, 0, n, fds,
				 reports, why, sizeof(why));

	if (r && why[0])
		return ctl_fail("alloc: %s (%s)", ctl_printable(why),
				strerror(-r));
	if (r)
		return ctl_fail("alloc: %s", strerror(-r));
	for (uint32_t i = 0; i < n; i++) {
		buffers[i].fd = fds[i];
		buffers[i].report = reports[i];
	}
	return CTL_OK;
}

static int allocate(struct ctl *ctl, uint64_t len_bytes, struct buffer *buffers)
{
	for (uint64_t i = 0; i < count; i += DMAHEAP_ALLOC_MAX_COUNT) {
		uint64_t left = count - i;
		uint32_t n = left < DMAHEAP_ALLOC_MAX_COUNT
				     ? (uint32_t)left
				     : DMAHEAP_ALLOC_MAX_COUNT;

		if (allocate_some(ctl, len_bytes, n, buffers + i))
			return CTL_FAILED;
	}
	for (uint64_t i = 0; name && i < count; i++) {
		int r = dmaheap_set_name(ctl->dh, buffers[i].fd, name);

		if (r)
			return ctl_fail("alloc: --name: %s", strerror(-r));
	}
	return CTL_OK;
}

static bool is_zero(const char *bytes, size_t n)
{
	return n == 0 || (bytes[0] == 0 && !memcmp(bytes, bytes + 1, n - 1));
}

static int write_one(struct buffer *b)
{
	size_t len = (size_t)b->report.size_bytes;
	uint64_t start_ns = now_ns();
	char *map = dmaheap_map(b->fd, len, PROT_READ | PROT_WRITE);

	if (map == MAP_FAILED)
		return ctl_fail("alloc: buffer %ju: cannot map: %s",
				(uintmax_t)b->report.id, strerror(errno));
	b->map_ns = now_ns() - start_ns;
	if (!is_zero(map, len)) {
		munmap(map, len);
		return ctl_fail("alloc: buffer %ju is not zero",
				(uintmax_t)b->report.id);
	}
	start_ns = now_ns();
	memset(map, 0xa5, len);
	b->write_ns = now_ns() - start_ns;
	munmap(map, len);
	return CTL_OK;
}

static json_t *fallback_json(const struct dmaheap_alloc_report *r)
{
	json_t *object = json_object();

	for (int order = DMAHEAP_ORDER_COUNT - 1; order >= 0; order--) {
		char key[4];

		if (r->fallback[order] == DMAHEAP_FALLBACK_NONE)
			continue;
		snprintf(key, sizeof(key), "%d", order);
		json_object_set_new(object, key,
				    json_string(names_fallback(
					    r->fallback[order])));
	}
	return object;
}

static json_t *buffer_json(const struct buffer *b)
{
	const struct dmaheap_alloc_report *r = &b->report;
	json_t *object =
		json_pack("{s:o, s:o, s:o, s:o, s:s, s:{s:s, s:s, s:o}, s:o, "
			  "s:{s:o, s:o, s:o, s:o, s:o}, s:{s:o, s:o}}",
			  "id", json_u64(r->id), "heap", json_text(heap),
			  "size", json_u64(r->size_bytes), "composition",
			  json_composition(r->blocks), "source",
			  names_source(r->source), "backing", "asked",
			  names_backing(r->backing_asked), "got",
			  names_backing(r->backing_got), "reason",
			  json_text(r->backing_reason), "fallback",
			  fallback_json(r), "measured_ns", "total",
			  json_u64(r->measured_total_ns), "queue",
			  json_u64(r->measured_queue_ns), "node",
			  json_u64(r->measured_node_ns), "populate",
			  json_u64(r->measured_populate_ns), "waited_stall",
			  json_u64(r->waited_stall_ns), "modelled_ns", "node",
			  json_u64(r->modelled_node_ns), "stall",
			  json_u64(r->modelled_stall_ns));

	if (fill)
		json_object_set_new(object, "written_ns",
				    json_pack("{s:o, s:o}", "map",
					      json_u64(b->map_ns), "write",
					      json_u64(b->write_ns)));
	return object;
}

static int show_json(const struct buffer *buffers)
{
	json_t *array = json_array();

	for (uint64_t i = 0; i < count; i++)
		json_array_append_new(array, buffer_json(&buffers[i]));
	return json_show(array);
}

static void add_row(struct table *t, const struct buffer *b)
{
	const struct dmaheap_alloc_report *r = &b->report;
	struct names_composition composition;
	struct units_text text;
	const uint64_t times[] = {r->measured_total_ns,
				  r->waited_stall_ns,
				  r->modelled_node_ns,
				  r->modelled_stall_ns,
				  b->map_ns,
				  b->write_ns};
	size_t n_times = fill ? 6 : 4;

	table_cell(t, "%ju", (uintmax_t)r->id);
	table_cell(t, "%s", units_size(r->size_bytes, &text));
	table_cell(t, "%s", names_composition(r->blocks, &composition));
	table_cell(t, "%s", names_source(r->source));
	table_cell(t, "%s", names_backing(r->backing_got));
	for (size_t i = 0; i < n_times; i++)
		table_cell(t, "%s", units_time(times[i], &text));
}

static void show_table(const struct ctl *ctl, const struct buffer *buffers)
{
	const char *const headings[] = {">ID",          ">SIZE",
					"COMPOSITION",  "SOURCE",
					"BACKING",      ">MEASURED",
					">WAITED",      ">MODELLED",
					">OF IT STALL", fill ? ">MAP" : NULL,
					">WRITE",       NULL};
	struct table *t = table_new(headings);
	const char *reason = buffers[0].report.backing_reason;

	for (uint64_t i = 0; i < count; i++)
		add_row(t, &buffers[i]);
	table_print(t, ctl);
	table_free(t);
	if (*reason)
		printf("backing: %s\n", ctl_printable(reason));
}

static int show(const struct ctl *ctl, const struct buffer *buffers)
{
	int out = -1, r = CTL_OK;

	/* Standard output is the command's when there is one. */
	if (*ctl_rest) {
		out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
		dup2(STDERR_FILENO, STDOUT_FILENO);
	}
	if (ctl->json)
		r = show_json(buffers);
	else
		show_table(ctl, buffers);
	fflush(stdout);
	if (out >= 0) {
		dup2(out, STDOUT_FILENO);
		close(out);
	}
	return r;
}

/* Becomes the command, which finds the fds' numbers in DMAHEAP_FDS. */
static int become_command(const struct buffer *buffers)
{
	size_t room = count * 12 + 1, n = 0;
	char *list = malloc(room);

	if (!list)
		return ctl_fail("alloc: out of memory");
	list[0] = '\0';
	for (uint64_t i = 0; i < count; i++)
		n += (size_t)snprintf(list + n, room - n, "%s%d", i ? " " : "",
				      buffers[i].fd);
	if (setenv("DMAHEAP_FDS", list, 1) < 0) {
		free(list);
		return ctl_fail("alloc: out of memory");
	}
	free(list);
	execvp(ctl_rest[0], ctl_rest);
	return ctl_fail("alloc: %s: %s", ctl_rest[0], strerror(errno));
}

static int hold_buffers(const struct ctl *ctl, const struct buffer *buffers)
{
	int r;

	/* Before the report: who reads it may send the signal at once. */
	hold_begin();
	r = show(ctl, buffers);
	if (r == CTL_OK)
		hold_wait(hold_s);
	return r;
}

static int use(struct ctl *ctl, uint64_t len_bytes, struct buffer *buffers)
{
	int r = allocate(ctl, len_bytes, buffers);

	for (uint64_t i = 0; fill && r == CTL_OK && i < count; i++)
		r = write_one(&buffers[i]);
	if (r)
		return r;
	if (hold)
		return hold_buffers(ctl, buffers);
	r = show(ctl, buffers);
	return r == CTL_OK && *ctl_rest ? become_command(buffers) : r;
}

static int check_name(const struct ctl *ctl)
{
	size_t n = name ? strlen(name) : 0;

	if (n >= DMAHEAP_NAME_MAX_BYTES)
		return ctl_misuse(ctl,
				  "--name: %zu bytes, at most %d are allowed",
				  n, DMAHEAP_NAME_MAX_BYTES - 1);
	if (n && strcmp(ctl_printable(name), name) != 0)
		return ctl_misuse(ctl, "--name: \"%s\" is not printable",
				  ctl_printable(name));
	return CTL_OK;
}

static int run(struct ctl *ctl, int argc, char **argv)
{
	struct buffer *buffers;
	uint64_t len_bytes;
	int r;

	(void)argc;
	if (!units_parse_size(argv[0], &len_bytes))
		return ctl_misuse(ctl,
				  "SIZE: \"%s\" is not a size (a number, "
				  "with K, M, G or T if need be)",
				  argv[0]);
	if (count < 1 || count > COUNT_MAX)
		return ctl_misuse(ctl, "--count: %ju is not within 1 to %u",
				  (uintmax_t)count, COUNT_MAX);
	if (hold && *ctl_rest)
		return ctl_misuse(ctl, "--hold and a command exclude each "
				       "other: the command holds the buffers");
	r = check_name(ctl);
	if (r == CTL_OK)
		r = ctl_connect(ctl);
	if (r)
		return r;
	buffers = calloc(count, sizeof(*buffers));
	if (!buffers)
		return ctl_fail("alloc: out of memory");
	r = use(ctl, len_bytes, buffers);
	/* The buffers' fds end with the process, which frees the buffers. */
	free(buffers);
	return r;
}

const struct verb verb_alloc = {
	.name = "alloc",
	.arguments = "SIZE [-- CMD ARGS...]",
	.summary = "allocate buffers, report them, and free, hold or pass them",
	.details = "CMD runs with the buffers open; their numbers are in "
		   "DMAHEAP_FDS, separated by\nblanks, and the report goes to "
		   "standard error. Without CMD or --hold the buffers\nare "
		   "freed again. SECONDS after --hold may be left out.",
	.options = options,
	.n_arguments_min = 1,
	.n_arguments_max = 1,
	.passes_rest = true,
	.run = run,
};
