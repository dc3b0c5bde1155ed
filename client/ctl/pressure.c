/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ctl/ctl.h"
#include "ctl/hold.h"
#include "ctl/json.h"
#include "ctl/verbs.h"

#define TEXT_MAX_BYTES ((size_t)4 << 20) /* no /proc file is longer */

static uint64_t leave_bytes, max_order;
static bool has_leave, has_max_order, keep;

static const struct option options[] = {
	{.name = "--leave",
	 .kind = OPTION_SIZE,
	 .argument = "SIZE",
	 .value = &leave_bytes,
	 .given = &has_leave,
	 .help = "with fill: so much stays free"},
	{.name = "--max-order",
	 .kind = OPTION_NUMBER,
	 .argument = "N",
	 .value = &max_order,
	 .given = &has_max_order,
	 .help = "with fragment: no larger block stays free"},
	{.name = "--keep",
	 .kind = OPTION_SWITCH,
	 .value = &keep,
	 .help = "leave the pressure on and return"},
	{0},
};

/* The texts that go along, each in a sealed memfd. */
struct texts {
	int fds[8];
	uint8_t kinds[8];
	size_t n;
};

static const struct {
	const char *name;
	enum dmaheap_text_kind kind;
} snapshot_files[] = {
	{"buddyinfo", DMAHEAP_TEXT_BUDDYINFO},
	{"pagetypeinfo", DMAHEAP_TEXT_PAGETYPEINFO},
	{"zoneinfo", DMAHEAP_TEXT_ZONEINFO},
	{"meminfo", DMAHEAP_TEXT_MEMINFO},
	{"vmstat", DMAHEAP_TEXT_VMSTAT},
};

/* Return: 0, or an errno > 0. */
static int copy(int from, int to)
{
	char buffer[16384];
	size_t total = 0;
	ssize_t n;

	while ((n = read(from, buffer, sizeof(buffer))) > 0) {
		total += (size_t)n;
		if (total > TEXT_MAX_BYTES)
			return EFBIG;
		if (write(to, buffer, (size_t)n) != n)
			return errno ? errno : EIO;
	}
	return n < 0 ? errno : 0;
}

/* Return: CTL_OK, also for a file that is not there, or CTL_FAILED. */
static int add_text(struct texts *texts, const char *path,
		    enum dmaheap_text_kind kind, bool required)
{
	int from = open(path, O_RDONLY | O_CLOEXEC), to, r;

	if (from < 0 && errno == ENOENT && !required)
		return CTL_OK;
	if (from < 0)
		return ctl_fail("pressure: %s: %s", path, strerror(errno));
	to = memfd_create("text", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	r = to < 0 ? errno : copy(from, to);
	close(from);
	if (r == 0 &&
	    fcntl(to, F_ADD_SEALS,
		  F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
		r = errno;
	if (r) {
		if (to >= 0)
			close(to);
		return ctl_fail("pressure: %s: %s", path, strerror(r));
	}
	texts->fds[texts->n] = to;
	texts->kinds[texts->n++] = (uint8_t)kind;
	return CTL_OK;
}

static int add_snapshot(struct texts *texts, const char *dir)
{
	for (size_t i = 0; i < ARRAY_SIZE(snapshot_files); i++) {
		char path[4096];
		int n = snprintf(path, sizeof(path), "%s/%s", dir,
				 snapshot_files[i].name);

		if (n < 0 || (size_t)n >= sizeof(path))
			return ctl_fail("pressure: %s: %s", dir,
					strerror(ENAMETOOLONG));
		/* The free lists are the one thing that must be there. */
		if (add_text(texts, path, snapshot_files[i].kind, i == 0))
			return CTL_FAILED;
	}
	return CTL_OK;
}

static const struct {
	const char *name;
	enum dmaheap_pressure_kind kind;
	int n_arguments; /* after the name */
} kinds[] = {
	{"status", DMAHEAP_PRESSURE_STATUS, 0},
	{"release", DMAHEAP_PRESSURE_RELEASE, 0},
	{"low-memory", DMAHEAP_PRESSURE_LOW_MEMORY, 0},
	{"fill", DMAHEAP_PRESSURE_FILL, 0},
	{"fragment", DMAHEAP_PRESSURE_FRAGMENT, 0},
	{"load", DMAHEAP_PRESSURE_LOAD, 1},
	{"play", DMAHEAP_PRESSURE_PLAY, 1},
};

/* Return: the kind, or -1 after a message. */
static int find_kind(const struct ctl *ctl, int argc, char **argv)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (strcmp(kinds[i].name, argv[0]) != 0)
			continue;
		if (argc - 1 == kinds[i].n_arguments)
			return (int)kinds[i].kind;
		ctl_misuse(ctl, "pressure %s takes %d arguments, not %d",
			   argv[0], kinds[i].n_arguments, argc - 1);
		return -1;
	}
	ctl_misuse(ctl, "pressure: no kind \"%s\"", argv[0]);
	return -1;
}

static int check_options(const struct ctl *ctl, int kind)
{
	if (has_leave != (kind == DMAHEAP_PRESSURE_FILL))
		return ctl_misuse(ctl, "--leave SIZE goes with fill, and fill "
				       "needs it");
	if (has_max_order != (kind == DMAHEAP_PRESSURE_FRAGMENT))
		return ctl_misuse(ctl, "--max-order N goes with fragment, and "
				       "fragment needs it");
	if (has_max_order && max_order >= DMAHEAP_ORDER_COUNT)
		return ctl_misuse(ctl, "--max-order: %ju is not within 0 to %u",
				  (uintmax_t)max_order,
				  DMAHEAP_ORDER_COUNT - 1);
	return CTL_OK;
}

static int add_texts(struct texts *texts, int kind, char **argv)
{
	if (kind == DMAHEAP_PRESSURE_LOAD)
		return add_snapshot(texts, argv[1]);
	if (kind == DMAHEAP_PRESSURE_PLAY)
		return add_text(texts, argv[1], DMAHEAP_TEXT_SCENARIO, true);
	return CTL_OK;
}

/* "anon: 12 pages, kernel: 3 pages under pressure", or "no pressure". */
static json_t *pages_json(const char *line)
{
	json_t *object = json_object();
	char kind[32];
	uintmax_t n;

	while (line && sscanf(line, "%31[^: ]: %ju pages", kind, &n) == 2) {
		json_object_set_new(object, kind, json_u64(n));
		line = strstr(line, ", ");
		line = line ? line + 2 : NULL;
	}
	return object;
}

/* The first line, and "key=value" words after it. */
static json_t *status_json(char *text)
{
	json_t *object = json_object();
	char *rest = NULL;

	json_object_set_new(object, "pages", pages_json(text));
	for (char *word = strtok_r(text, " \n", &rest); word;
	     word = strtok_r(NULL, " \n", &rest)) {
		char *equals = strchr(word, '=');

		if (!equals)
			continue;
		*equals = '\0';
		json_object_set_new(object, word, json_text(equals + 1));
	}
	return object;
}

static int show_status(const struct ctl *ctl, char *text)
{
	if (ctl->json)
		return json_show(status_json(text));
	fputs(text, stdout);
	return CTL_OK;
}

static int request(struct ctl *ctl, int kind, const struct texts *texts)
{
	struct dmaheap_pressure_req req = {.kind = (uint32_t)kind,
					   .flags = keep ? DMAHEAP_PRESSURE_KEEP
							 : 0,
					   .leave_bytes = leave_bytes,
					   .max_order = (uint32_t)max_order};
	char text[8192];
	struct dmaheap_message msg = {.opcode = DMAHEAP_OP_PRESSURE,
				      .payload = &req,
				      .payload_bytes = sizeof(req),
				      .fds = texts->fds,
				      .n_fds = texts->n,
				      .reply = text,
				      .reply_capacity_bytes = sizeof(text) - 1};

	memcpy(req.fd_kinds, texts->kinds, texts->n);
	if (ctl_call(ctl, "pressure", &msg))
		return CTL_FAILED;
	text[msg.reply_bytes] = '\0';
	if (kind == DMAHEAP_PRESSURE_STATUS)
		return show_status(ctl, text);
	if (kind == DMAHEAP_PRESSURE_RELEASE || keep)
		return CTL_OK;
	fputs("pressure is on until this program ends (interrupt it)\n",
	      stderr);
	return hold_connection(ctl, "pressure");
}

static int run(struct ctl *ctl, int argc, char **argv)
{
	int kind = find_kind(ctl, argc, argv);
	struct texts texts = {0};
	int r;

	if (kind < 0)
		return CTL_USAGE;
	r = check_options(ctl, kind);
	if (r)
		return r;
	r = add_texts(&texts, kind, argv);
	if (r == CTL_OK) {
		hold_begin();
		r = request(ctl, kind, &texts);
	}
	while (texts.n > 0)
		close(texts.fds[--texts.n]);
	return r;
}

const struct verb verb_pressure = {
	.name = "pressure",
	.arguments = "low-memory | fill --leave SIZE | fragment --max-order N "
		     "|\n           load SNAPSHOT | play SCENARIO | release | "
		     "status",
	.summary = "put the node under memory pressure",
	.details = "SNAPSHOT is a directory with buddyinfo and, if there, "
		   "pagetypeinfo, zoneinfo,\nmeminfo and vmstat; SCENARIO is a "
		   "file. Pressure lasts as long as this program,\nor with "
		   "--keep until \"release\". For administrators.",
	.options = options,
	.n_arguments_min = 1,
	.n_arguments_max = 2,
	.run = run,
};
