/* SPDX-License-Identifier: MIT */
/*
 * Runs a fuzz target without libFuzzer:
 *
 *   fuzz_X [-n RUNS] [-s SEED] PATH...
 *
 * every file of PATH (files and directories) once, then RUNS mutants of them.
 * The input of a run that ends the program is left in ./crash-input.
 */
#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/rng.h"
#include "fuzz.h"

#define MAX_BYTES  65536u
#define MAX_INPUTS 4096u

struct input {
	uint8_t *data;
	size_t n_bytes;
};

static struct input inputs[MAX_INPUTS];
static size_t n_inputs;
static struct input current; /* for the crash handler */

static void save_current(void)
{
	FILE *f = fopen("crash-input", "wb");

	if (!f)
		return;
	(void)fwrite(current.data, 1, current.n_bytes, f);
	fclose(f);
	fprintf(stderr, "input of %zu bytes saved as crash-input\n",
		current.n_bytes);
}

static void on_abort(int signal)
{
	save_current();
	_exit(128 + signal);
}

static void run(uint8_t *data, size_t n_bytes)
{
	current = (struct input){data, n_bytes};
	(void)LLVMFuzzerTestOneInput(data, n_bytes);
}

static void read_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	struct input *in = &inputs[n_inputs];

	if (!f) {
		perror(path);
		exit(EXIT_FAILURE);
	}
	in->data = malloc(MAX_BYTES);
	if (!in->data || n_inputs + 1 == MAX_INPUTS) {
		fprintf(stderr, "too many inputs\n");
		exit(EXIT_FAILURE);
	}
	in->n_bytes = fread(in->data, 1, MAX_BYTES, f);
	fclose(f);
	n_inputs++;
}

static void read_path(const char *path)
{
	struct dirent *entry;
	struct stat st;
	DIR *dir;

	if (stat(path, &st) == 0 && !S_ISDIR(st.st_mode)) {
		read_file(path);
		return;
	}
	dir = opendir(path);
	if (!dir) {
		perror(path);
		exit(EXIT_FAILURE);
	}
	while ((entry = readdir(dir))) {
		char name[4096];

		if (entry->d_name[0] == '.')
			continue;
		(void)snprintf(name, sizeof(name), "%s/%s", path,
			       entry->d_name);
		read_path(name);
	}
	closedir(dir);
}

/* One small change of @in, which has room for MAX_BYTES. */
static void mutate(struct rng *rng, struct input *in)
{
	static const uint8_t telling[] = {0,   1,   0x7f, 0x80, 0xff, ' ', '\n',
					  '=', '0', '9',  '-',  '[',  ']', '#'};
	size_t at = in->n_bytes ? rng_below(rng, in->n_bytes) : 0;
	size_t n = 1 + rng_below(rng, 8);

	switch (rng_below(rng, 6)) {
	case 0:
		if (in->n_bytes)
			in->data[at] ^= (uint8_t)(1u << rng_below(rng, 8));
		break;
	case 1:
		if (in->n_bytes)
			in->data[at] = telling[rng_below(rng, sizeof(telling))];
		break;
	case 2: /* cut out */
		if (n > in->n_bytes - at)
			n = in->n_bytes - at;
		memmove(in->data + at, in->data + at + n, in->n_bytes - at - n);
		in->n_bytes -= n;
		break;
	case 3: /* put in */
		if (in->n_bytes + n > MAX_BYTES)
			break;
		memmove(in->data + at + n, in->data + at, in->n_bytes - at);
		for (size_t i = 0; i < n; i++)
			in->data[at + i] = (uint8_t)rng_next(rng);
		in->n_bytes += n;
		break;
	case 4: /* repeat a piece further back */
		if (at + n <= in->n_bytes && in->n_bytes + n <= MAX_BYTES) {
			memcpy(in->data + in->n_bytes, in->data + at, n);
			in->n_bytes += n;
		}
		break;
	default: { /* the tail of another one */
		const struct input *other = &inputs[rng_below(rng, n_inputs)];
		size_t from =
			other->n_bytes ? rng_below(rng, other->n_bytes) : 0;

		n = other->n_bytes - from;
		if (at + n <= MAX_BYTES) {
			memcpy(in->data + at, other->data + from, n);
			in->n_bytes = at + n;
		}
		break;
	}
	}
}

static void run_mutants(unsigned long n_runs, uint64_t seed)
{
	struct input in = {.data = malloc(MAX_BYTES)};
	struct rng rng;

	if (!in.data)
		exit(EXIT_FAILURE);
	rng_seed(&rng, seed);
	for (unsigned long i = 0; i < n_runs; i++) {
		const struct input *from = &inputs[rng_below(&rng, n_inputs)];
		uint64_t n_changes = 1 + rng_below(&rng, 8);
		uint8_t *exact;

		memcpy(in.data, from->data, from->n_bytes);
		in.n_bytes = from->n_bytes;
		while (n_changes--)
			mutate(&rng, &in);
		/* Of its own size, so that sanitizers see where it ends. */
		exact = malloc(in.n_bytes ? in.n_bytes : 1);
		if (!exact)
			exit(EXIT_FAILURE);
		memcpy(exact, in.data, in.n_bytes);
		run(exact, in.n_bytes);
		free(exact);
	}
	free(in.data);
}

int main(int argc, char **argv)
{
	unsigned long n_runs = 0;
	uint64_t seed = 1;
	int opt;

	while ((opt = getopt(argc, argv, "n:s:")) != -1) {
		if (opt == 'n')
			n_runs = strtoul(optarg, NULL, 10);
		else if (opt == 's')
			seed = strtoull(optarg, NULL, 10);
		else
			return 2;
	}
	for (int i = optind; i < argc; i++)
		read_path(argv[i]);
	if (n_inputs == 0) {
		fprintf(stderr, "usage: %s [-n RUNS] [-s SEED] PATH...\n",
			argv[0]);
		return 2;
	}
	signal(SIGABRT, on_abort);
	signal(SIGSEGV, on_abort);
	for (size_t i = 0; i < n_inputs; i++)
		run(inputs[i].data, inputs[i].n_bytes);
	run_mutants(n_runs, seed);
	printf("executed %lu inputs: %zu of the corpus, %lu mutants\n",
	       n_inputs + n_runs, n_inputs, n_runs);
	for (size_t i = 0; i < n_inputs; i++)
		free(inputs[i].data);
	return EXIT_SUCCESS;
}
