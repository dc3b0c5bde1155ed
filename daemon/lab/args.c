/* SPDX-License-Identifier: MIT */
#include "lab/args.h"

#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "conf/files.h"
#include "lab/cmd.h"
#include "lab/data.h"
#include "lab/player.h"

/* Return: the value of the option at argv[*i], or NULL: there is none. */
static const char *option_value(int argc, char **argv, int *i)
{
	return *i + 1 < argc ? argv[++*i] : NULL;
}

/* Rows of results are told apart by the policy's name. */
static int add_policy(struct lab_args *args, const char *name)
{
	size_t n = args->overrides.n_policies;

	for (size_t i = 0; i < n; i++) {
		if (!strcmp(args->policies[i], name))
			return lab_usage("--policy: two are called \"%s\"",
					 name);
	}
	if (n == LAB_POLICIES_MAX)
		return lab_usage("more than %u policies", LAB_POLICIES_MAX);
	args->policies[n] = name;
	args->overrides.policies = args->policies;
	args->overrides.n_policies++;
	return LAB_EXIT_OK;
}

static int add_policy_file(struct lab_args *args, const char *path)
{
	struct conf_error err = {{0}};
	size_t first = args->own.n;
	int r = lab_policies_read_file(&args->own, path, &err);

	if (r)
		return lab_fail("%s", r > 0 ? err.text : strerror(-r));
	args->overrides.own = &args->own;
	for (size_t i = first; i < args->own.n && !r; i++)
		r = add_policy(args, args->own.list[i].name);
	return r;
}

static int take_policies(struct lab_args *args, int argc, char **argv, int *i)
{
	int first = *i, r = LAB_EXIT_OK;

	while (*i + 1 < argc && argv[*i + 1][0] != '-' && !r) {
		const char *word = argv[++*i];

		r = lab_is_path(word) ? add_policy_file(args, word)
				      : add_policy(args, word);
	}
	return *i > first ? r : lab_usage("--policy needs a policy");
}

static int take_seed(struct lab_args *args, const char *value)
{
	args->overrides.has_seed = true;
	if (!value || parse_u64(value, &args->overrides.seed))
		return lab_usage("--seed needs a number of 64 bits");
	return LAB_EXIT_OK;
}

static int take_format(struct lab_args *args, enum lab_format format)
{
	if (args->format != LAB_FORMAT_TEXT && args->format != format)
		return lab_usage("only one of --json, --tsv and --html");
	args->format = format;
	return LAB_EXIT_OK;
}

static int take_html(struct lab_args *args, const char *file)
{
	if (!file)
		return lab_usage("--html needs a file");
	args->html_file = file;
	return take_format(args, LAB_FORMAT_HTML);
}

static int take_option(struct lab_args *args, int argc, char **argv, int *i)
{
	const char *name = argv[*i];

	if (!strcmp(name, "--policy"))
		return take_policies(args, argc, argv, i);
	if (!strcmp(name, "--seed"))
		return take_seed(args, option_value(argc, argv, i));
	if (!strcmp(name, "--json"))
		return take_format(args, LAB_FORMAT_JSON);
	if (!strcmp(name, "--tsv"))
		return take_format(args, LAB_FORMAT_TSV);
	if (!strcmp(name, "--html"))
		return take_html(args, option_value(argc, argv, i));
	if (!strcmp(name, "--profile")) {
		args->overrides.profile = option_value(argc, argv, i);
		if (!args->overrides.profile)
			return lab_usage("--profile needs a file or a name");
	} else if (!strcmp(name, "--node")) {
		args->overrides.node_dir = option_value(argc, argv, i);
		if (!args->overrides.node_dir)
			return lab_usage("--node needs a directory");
	} else {
		return lab_usage("no such option: %s", name);
	}
	return LAB_EXIT_OK;
}

int lab_args_parse(struct lab_args *ret, int argc, char **argv)
{
	*ret = (struct lab_args){0};
	for (int i = 1; i < argc; i++) {
		int r;

		if (argv[i][0] == '-' && argv[i][1]) {
			r = take_option(ret, argc, argv, &i);
			if (r)
				return r;
			continue;
		}
		if (ret->n_inputs == LAB_INPUTS_MAX)
			return lab_usage("more than %u inputs", LAB_INPUTS_MAX);
		ret->inputs[ret->n_inputs++] = argv[i];
	}
	return LAB_EXIT_OK;
}

/* The last part of a path, without ".conf". */
static void short_name(char ret[LAB_NAME_BYTES], const char *path)
{
	const char *slash = strrchr(path, '/');
	size_t len;

	path = slash ? slash + 1 : path;
	len = strnlen(path, LAB_NAME_BYTES - 1);
	memcpy(ret, path, len);
	ret[len] = '\0';
	if (len > 5 && !strcmp(ret + len - 5, ".conf"))
		ret[len - 5] = '\0';
}

static int play_input(struct lab_results *results, const char *input,
		      const struct lab_overrides *overrides)
{
	_cleanup_(scenario_freep) struct scenario *scenario = NULL;
	struct conf_error err = {{0}};
	char path[LAB_PATH_BYTES], name[LAB_NAME_BYTES];
	char *text = NULL;
	size_t len;
	int r;

	if (!lab_find(path, "scenarios", input, ".conf", NULL))
		return lab_fail("%s: neither a shipped scenario nor a file "
				"(with a / or ending in .conf)",
				input);
	r = conf_read_file(path, CONF_FILE_MAX_BYTES, &text, &len);
	if (r)
		return lab_fail("%s: cannot be read: %s", path, strerror(-r));
	r = scenario_parse(&scenario, path, text, len, &err);
	free(text);
	short_name(name, path);
	if (!r)
		r = lab_play(results, scenario, name, path, overrides, &err);
	if (r == CONF_E_INVALID)
		return lab_fail("%s", err.text);
	if (r)
		return lab_fail("%s: %s", path, strerror(-r));
	return LAB_EXIT_OK;
}

int lab_run_inputs(struct lab_results *results, const struct lab_args *args)
{
	int r = LAB_EXIT_OK;

	for (size_t i = 0; i < args->n_inputs && !r; i++)
		r = play_input(results, args->inputs[i], &args->overrides);
	return r;
}
