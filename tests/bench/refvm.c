/* SPDX-License-Identifier: MIT */

/*
 * The model against a real kernel: for each run of tests/data/refvm a node is
 * built from the state before it, the same requests are made, and what came
 * out is set beside what the kernel did. Nothing here knows a run by its name:
 * memory comes from the file, policy and pinning from its first words.
 *
 * usage: refvm PROFILE FILE... (see docs/zone-model.md for the criteria)
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "conf/files.h"
#include "conf/ini.h"
#include "mm/node.h"

#define N_ROUNDS     2u
#define N_BUFFERS    16u
#define BUFFER_PAGES 2560u
#define FILE_BYTES   (1u << 20)
#define N_CPUS       2u /* of the machine of the runs */
/* Between two buffers its tool read all of /proc/kpageflags. */
#define THINK_NS (200 * NSEC_PER_MSEC)
#define RULE_RIGHT 28u /* 85 % of 32 */

struct buffer {
	uint64_t usec;
	unsigned int blocks[3]; /* of order 8, 4, 0 */
	uint64_t pfn[BUFFER_PAGES];
	uint8_t order[BUFFER_PAGES];
	unsigned int n;
};

struct run {
	const char *path;
	char heap[16];
	char memory[16];
	char *buddyinfo;
	char *pagetypeinfo;
	char *meminfo;
	uint64_t min_free_kb;
	uint64_t proactiveness;
	struct buffer real[N_ROUNDS][N_BUFFERS];
	uint64_t compact_stall;
	uint64_t migrated;
};

static struct buffer modelled[N_ROUNDS][N_BUFFERS];

static _Noreturn void die(const char *path, const char *what)
{
	fprintf(stderr, "refvm: %s: %s\n", path, what);
	exit(EXIT_FAILURE);
}

/* The lines after "## @title" up to the next "#". */
static char *section(const char *text, const char *title)
{
	const char *begin = strstr(text, title), *end;

	if (!begin)
		return NULL;
	begin = strchr(begin, '\n');
	if (!begin)
		return NULL;
	end = strstr(begin, "\n#");
	return end ? strndup(begin + 1, (size_t)(end - begin))
		   : strdup(begin + 1);
}

static uint64_t number_after(const char *text, const char *word)
{
	const char *p = text ? strstr(text, word) : NULL;

	return p ? strtoull(p + strlen(word), NULL, 10) : 0;
}

/* pagetypeinfo and meminfo stand in one section. */
static void split_state(struct run *run, const char *text)
{
	char *state = section(text, "## pagetypeinfo before");
	char *mem = state ? strstr(state, "MemFree:") : NULL;

	if (!mem)
		die(run->path, "no state before");
	if (asprintf(&run->meminfo, "MemTotal: %llu kB\n%s",
		     (unsigned long long)number_after(text, "MemTotal "),
		     mem) < 0)
		die(run->path, "no memory");
	*mem = '\0';
	run->pagetypeinfo = state;
}

static void read_round(struct run *run, const char *text, unsigned int round)
{
	char title[32];
	const char *p;

	(void)snprintf(title, sizeof(title), " round %u\n", round + 1);
	p = strstr(text, title);
	if (!p)
		die(run->path, "a round is missing");
	for (int skip = 0; skip < 2; skip++)
		p = strchr(p, '\n') + 1;
	for (unsigned int i = 0; i < N_BUFFERS; i++) {
		struct buffer *b = &run->real[round][i];
		unsigned int n;
		unsigned long long usec;

		if (sscanf(p, "%u %llu %u %u %u", &n, &usec, &b->blocks[0],
			   &b->blocks[1], &b->blocks[2]) != 5 ||
		    n != i)
			die(run->path, "a buffer's line is malformed");
		b->usec = usec;
		p = strchr(p, '\n') + 1;
	}
}

static void read_run(struct run *run, const char *path)
{
	const char *name = strrchr(path, '/');
	char *text, *vmstat;

	run->path = path;
	name = name ? name + 1 : path;
	if (sscanf(name, "composition-%15[^-]-%15[^.]", run->heap,
		   run->memory) != 2)
		die(path, "not named composition-HEAP-MEMORY.txt");
	if (conf_read_file(path, FILE_BYTES, &text, NULL))
		die(path, "cannot be read");
	run->buddyinfo = section(text, "## buddyinfo before");
	split_state(run, text);
	run->min_free_kb = number_after(text, "min_free_kbytes ");
	run->proactiveness = number_after(text, "compaction_proactiveness ");
	for (unsigned int r = 0; r < N_ROUNDS; r++)
		read_round(run, text, r);
	vmstat = section(text, "## vmstat deltas over the two rounds");
	run->compact_stall = number_after(vmstat, "compact_stall ");
	run->migrated = number_after(vmstat, "pgmigrate_success ");
	free(vmstat);
	free(text);
}

static void fini_run(struct run *run)
{
	free(run->buddyinfo);
	free(run->pagetypeinfo);
	free(run->meminfo);
}

static struct node *make_node(const struct run *run,
			      const struct cost_profile *costs, uint64_t seed)
{
	const struct snapshot_texts texts = {
		.buddyinfo = run->buddyinfo,
		.pagetypeinfo = run->pagetypeinfo,
		.meminfo = run->meminfo,
	};
	struct node_params params = {
		.min_free_bytes = KIB(run->min_free_kb),
		.compaction_proactiveness = (unsigned int)run->proactiveness,
		/* the pinned runs were made with the sysctl at 0 */
		.compact_unevictable_denied =
			strncmp(run->memory, "pin", 3) == 0,
		.n_cpus = N_CPUS,
		.costs = *costs,
		.seed = seed,
	};
	_cleanup_(snapshot_freep) struct snapshot *snap = NULL;
	struct snapshot_error snap_err;
	struct node_error err;
	struct node *node;

	if (snapshot_parse(&snap, &texts, NULL, &snap_err)) {
		fprintf(stderr, "%s:%u: %s\n", snap_err.file, snap_err.line,
			snap_err.text);
		die(run->path, "bad snapshot");
	}
	params.snapshot = snap;
	if (node_new(&node, &params, &err))
		die(run->path, err.text);
	return node;
}

struct step {
	unsigned int order;
	uint32_t gfp;
};

static const struct step *policy_of(const struct run *run)
{
	static const struct step stock[] = {{8, GFP_HIGH_ORDER},
					    {4, GFP_MID_ORDER},
					    {0, GFP_LOW_ORDER}};
	static const struct step o4high[] = {{8, GFP_HIGH_ORDER},
					     {4, GFP_HIGH_ORDER},
					     {0, GFP_LOW_ORDER}};
	static const struct step o800[] = {{8, GFP_HIGH_ORDER},
					   {0, GFP_LOW_ORDER},
					   {0, GFP_LOW_ORDER}};

	if (strcmp(run->heap, "stock") == 0)
		return stock;
	if (strcmp(run->heap, "o4high") == 0)
		return o4high;
	if (strcmp(run->heap, "o800") == 0)
		return o800;
	die(run->path, "unknown heap");
}

/* system_heap_allocate(): within a buffer the order only falls. */
static void allocate(struct node *node, const struct step *steps,
		     struct buffer *b, uint64_t start_ns)
{
	struct node_request req = {.start_ns = start_ns};
	unsigned int left = BUFFER_PAGES, step = 0;

	memset(b, 0, sizeof(*b));
	while (left > 0 && step < 3) {
		unsigned int order = steps[step].order;

		if (left < 1u << order ||
		    node_alloc(node, &req, order, steps[step].gfp,
			       &b->pfn[b->n])) {
			step++;
			continue;
		}
		b->order[b->n++] = (uint8_t)order;
		b->blocks[order == 8 ? 0 : order == 4 ? 1 : 2]++;
		left -= 1u << order;
	}
	b->usec = req.spent_ns / 1000;
}

static void play(struct node *node, const struct run *run)
{
	const struct step *steps = policy_of(run);

	for (unsigned int r = 0; r < N_ROUNDS; r++) {
		for (unsigned int i = 0; i < N_BUFFERS; i++)
			allocate(node, steps, &modelled[r][i],
				 node_now_ns(node) + THINK_NS);
		for (unsigned int i = 0; i < N_BUFFERS; i++) {
			struct buffer *b = &modelled[r][i];

			for (unsigned int n = 0; n < b->n; n++)
				node_free_block(node, NULL, b->pfn[n],
						b->order[n]);
		}
	}
}

/* Which order holds most of the buffer's bytes. */
static unsigned int main_order(const struct buffer *b)
{
	static const unsigned int pages[3] = {256, 16, 1};
	unsigned int best = 0;

	for (unsigned int i = 1; i < 3; i++)
		if (b->blocks[i] * pages[i] > b->blocks[best] * pages[best])
			best = i;
	return best;
}

static unsigned int sum(struct buffer b[N_BUFFERS], unsigned int i)
{
	unsigned int n = 0;

	for (unsigned int k = 0; k < N_BUFFERS; k++)
		n += b[k].blocks[i];
	return n;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static uint64_t median(uint64_t *values, size_t n)
{
	qsort(values, n, sizeof(*values), by_value);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* Median of the slowest quarter over that of the buffers of nine or more blocks
 * of order 8, times 100. */
static uint64_t slow_ratio(struct buffer b[N_ROUNDS][N_BUFFERS])
{
	uint64_t all[N_ROUNDS * N_BUFFERS], fast[N_ROUNDS * N_BUFFERS];
	size_t n = 0, n_fast = 0;

	for (unsigned int r = 0; r < N_ROUNDS; r++) {
		for (unsigned int i = 0; i < N_BUFFERS; i++) {
			all[n++] = b[r][i].usec;
			if (b[r][i].blocks[0] >= 9)
				fast[n_fast++] = b[r][i].usec;
		}
	}
	if (n_fast == 0)
		return 0;
	qsort(all, n, sizeof(*all), by_value);
	return median(all + n - n / 4, n / 4) * 100 / median(fast, n_fast);
}

static bool near_blocks(unsigned int a, unsigned int b)
{
	unsigned int diff = a > b ? a - b : b - a;

	return diff <= 16 || diff * 5 <= b;
}

static bool within(uint64_t a, uint64_t b, uint64_t factor, uint64_t slack)
{
	uint64_t diff = a > b ? a - b : b - a;

	return diff <= slack || (a <= b * factor && b <= a * factor);
}

static void print_buffers(struct buffer b[N_ROUNDS][N_BUFFERS],
			  struct buffer real[N_ROUNDS][N_BUFFERS])
{
	for (unsigned int r = 0; r < N_ROUNDS; r++)
		for (unsigned int i = 0; i < N_BUFFERS; i++)
			printf("  %u.%-2u %7llu %3u %4u %5u   kernel %7llu %3u "
			       "%4u %5u\n",
			       r + 1, i, (unsigned long long)b[r][i].usec,
			       b[r][i].blocks[0], b[r][i].blocks[1],
			       b[r][i].blocks[2],
			       (unsigned long long)real[r][i].usec,
			       real[r][i].blocks[0], real[r][i].blocks[1],
			       real[r][i].blocks[2]);
}

/* Prints one row. Return: the criteria missed. */
static unsigned int compare(const struct node *node, struct run *run)
{
	uint64_t stall = node_vmstat(node, "compact_stall");
	uint64_t daemon = node_vmstat(node, "model_daemon_migrated");
	uint64_t moved = node_vmstat(node, "pgmigrate_success") - daemon;
	/* where nobody else compacts all of the kernel's is kcompactd's work */
	uint64_t real_moved =
		run->compact_stall || run->proactiveness ? run->migrated : 0;
	uint64_t ratio = slow_ratio(modelled);
	uint64_t real_ratio = slow_ratio(run->real);
	unsigned int right = 0, missed = 0;
	bool ok;

	for (unsigned int r = 0; r < N_ROUNDS; r++)
		for (unsigned int i = 0; i < N_BUFFERS; i++)
			right += main_order(&modelled[r][i]) ==
				 main_order(&run->real[r][i]);
	ok = right >= RULE_RIGHT;
	missed += !ok;
	printf("| %s-%s | %u%s ", run->heap, run->memory, right, ok ? "" : "!");
	for (unsigned int o = 0; o < 2; o++) {
		for (unsigned int r = 0; r < N_ROUNDS; r++) {
			unsigned int a = sum(modelled[r], o);
			unsigned int b = sum(run->real[r], o);

			ok = near_blocks(a, b);
			missed += !ok;
			printf("%s %u/%u%s", r ? "," : "|", a, b,
			       ok ? "" : "!");
		}
		printf(" ");
	}
	ok = within(ratio, real_ratio, 2, 0);
	missed += !ok;
	printf("| %llu.%02llu/%llu.%02llu%s ", (unsigned long long)ratio / 100,
	       (unsigned long long)ratio % 100,
	       (unsigned long long)real_ratio / 100,
	       (unsigned long long)real_ratio % 100, ok ? "" : "!");
	ok = within(stall, run->compact_stall, 3, 20);
	missed += !ok;
	printf("| %llu/%llu%s ", (unsigned long long)stall,
	       (unsigned long long)run->compact_stall, ok ? "" : "!");
	ok = within(moved, real_moved, 3, 200);
	missed += !ok;
	printf("| %llu (+%llu)/%llu%s |\n", (unsigned long long)moved,
	       (unsigned long long)daemon, (unsigned long long)run->migrated,
	       ok ? "" : "!");
	return missed;
}

static struct cost_profile read_profile(const char *path)
{
	struct cost_profile costs = cost_profile_default();
	_cleanup_(conf_ini_freep) struct conf_ini *ini = NULL;
	const struct conf_section *section;
	struct conf_error err;

	if (conf_ini_read(&ini, path, 0, &err))
		die(path, err.text);
	section = conf_ini_find(ini, "cost", "");
	if (!section)
		die(path, "no section [cost]");
	for (size_t i = 0; i < section->n_entries; i++)
		if (cost_profile_set(&costs, section->entries[i].key,
				     section->entries[i].value))
			die(path, section->entries[i].key);
	return costs;
}

int main(int argc, char **argv)
{
	bool verbose = argc > 1 && strcmp(argv[1], "-v") == 0;
	int first = verbose ? 2 : 1;
	struct cost_profile costs;
	unsigned int missed = 0;
	const char *seed = getenv("REFVM_SEED");

	if (argc < first + 2) {
		fprintf(stderr, "usage: refvm [-v] PROFILE FILE...\n");
		return 2;
	}
	costs = read_profile(argv[first]);
	printf("| run | main order right of 32 | order 8, by round | order 4, "
	       "by round | slow ratio | compact_stall | pages migrated "
	       "(+kcompactd) |\n|---|---|---|---|---|---|---|\n");
	for (int i = first + 1; i < argc; i++) {
		static struct run run;
		struct node *node;

		memset(&run, 0, sizeof(run));
		read_run(&run, argv[i]);
		node = make_node(&run, &costs,
				 seed ? strtoull(seed, NULL, 10) : 1);
		play(node, &run);
		missed += compare(node, &run);
		if (verbose) {
			struct strbuf sb = STRBUF_INIT;

			print_buffers(modelled, run.real);
			node_render_vmstat(node, &sb);
			node_render_buddyinfo(node, &sb);
			puts(strbuf_string(&sb));
			strbuf_fini(&sb);
		}
		if (!node_check(node, NULL))
			die(run.path, "the node is inconsistent");
		node = node_free(node);
		fini_run(&run);
	}
	printf("criteria missed: %u of %d\n", missed, (argc - first - 1) * 8);
	return EXIT_SUCCESS;
}
