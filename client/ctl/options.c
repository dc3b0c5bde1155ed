/* SPDX-License-Identifier: MIT */
#include "ctl/options.h"

#include <stdlib.h>
#include <string.h>

#include "ctl/units.h"

static char *nothing[] = {NULL};
char **ctl_rest = nothing;

static void print_option(const char *name, const char *argument, bool alone,
			 const char *help)
{
	char left[64];

	if (argument)
		snprintf(left, sizeof(left), alone ? "%s [%s]" : "%s %s", name,
			 argument);
	else
		snprintf(left, sizeof(left), "%s", name);
	printf("  %-22s %s\n", left, help);
}

void options_print_help(const struct verb *verb)
{
	printf("Usage: dmaheapctl %s%s%s\n%s\n", verb->name,
	       *verb->arguments ? " " : "", verb->arguments, verb->summary);
	if (verb->details)
		printf("\n%s\n", verb->details);
	printf("\nOptions:\n");
	for (const struct option *o = verb->options; o && o->name; o++)
		print_option(o->name, o->argument, o->may_stand_alone, o->help);
	print_option("--json", NULL, false, "print JSON");
	print_option("--socket", "PATH", false, "the daemon's socket");
	print_option("--help", NULL, false, "print this");
}

static const char *kind_name(enum option_kind kind)
{
	switch (kind) {
	case OPTION_SIZE:
		return "a size (a number, with K, M, G or T if need be)";
	case OPTION_NUMBER:
		return "a number";
	case OPTION_MS:
		return "a time in milliseconds (80, 80ms or 2s)";
	case OPTION_DECIMAL:
		return "a number that is not negative";
	default:
		return "a text";
	}
}

static bool store(const struct option *o, const char *text)
{
	switch (o->kind) {
	case OPTION_SWITCH:
		*(bool *)o->value = true;
		return true;
	case OPTION_TEXT:
		*(const char **)o->value = text;
		return true;
	case OPTION_SIZE:
		return units_parse_size(text, o->value);
	case OPTION_NUMBER:
		return units_parse_number(text, o->value);
	case OPTION_MS:
		return units_parse_ms(text, o->value);
	case OPTION_DECIMAL:
		return units_parse_decimal(text, o->value);
	}
	return false;
}

static bool is_option(const char *arg, const char *name)
{
	size_t n = strlen(name);

	return strncmp(arg, name, n) == 0 && (arg[n] == '\0' || arg[n] == '=');
}

/* The value of an option: after "=", or the next argument. */
static const char *value_of(const char *arg, const char *next, bool *ret_next)
{
	const char *equals = strchr(arg, '=');

	*ret_next = !equals;
	return equals ? equals + 1 : next;
}

/* Return: how many of @args it took; 0 after a message. */
static int take_option(const struct ctl *ctl, const struct option *o,
		       char **args)
{
	bool from_next;
	const char *value = value_of(args[0], args[1], &from_next);

	if (o->kind == OPTION_SWITCH && !from_next) {
		ctl_misuse(ctl, "%s takes no value", o->name);
		return 0;
	}
	if (o->given)
		*o->given = true;
	if (o->kind == OPTION_SWITCH)
		return store(o, NULL);
	if (o->may_stand_alone && from_next && (!value || !store(o, value)))
		return 1;
	if (!value) {
		ctl_misuse(ctl, "%s needs a value: %s", o->name, o->argument);
		return 0;
	}
	if (!store(o, value)) {
		ctl_misuse(ctl, "%s: \"%s\" is not %s", o->name, value,
			   kind_name(o->kind));
		return 0;
	}
	return from_next ? 2 : 1;
}

static const struct option *find(const struct option *options, const char *arg)
{
	for (const struct option *o = options; o && o->name; o++)
		if (is_option(arg, o->name))
			return o;
	return NULL;
}

static int check_count(const struct ctl *ctl, unsigned int n)
{
	if (n < ctl->verb->n_arguments_min)
		return ctl_misuse(ctl, "%s: an argument is missing: %s",
				  ctl->verb->name, ctl->verb->arguments);
	if (n > ctl->verb->n_arguments_max)
		return ctl_misuse(ctl, "%s: too many arguments",
				  ctl->verb->name);
	return CTL_OK;
}

int options_parse(struct ctl *ctl, int argc, char **argv, int *ret_argc,
		  bool *ret_help)
{
	const struct option common[] = {
		{.name = "--json", .kind = OPTION_SWITCH, .value = &ctl->json},
		{.name = "--socket",
		 .kind = OPTION_TEXT,
		 .argument = "PATH",
		 .value = &ctl->socket_path},
		{.name = "--help", .kind = OPTION_SWITCH, .value = ret_help},
		{0},
	};
	int n = 0, i = 0;

	while (i < argc && strcmp(argv[i], "--") != 0) {
		const struct option *o = find(common, argv[i]);
		int taken;

		if (!o)
			o = find(ctl->verb->options, argv[i]);
		if (!o && argv[i][0] == '-' && argv[i][1]) {
			return ctl_misuse(ctl, "%s: unknown option %s",
					  ctl->verb->name, argv[i]);
		} else if (!o) {
			argv[n++] = argv[i++];
			continue;
		}
		taken = take_option(ctl, o, argv + i);
		if (!taken)
			return CTL_USAGE;
		i += taken;
	}
	if (i < argc && ctl->verb->passes_rest)
		ctl_rest = argv + i + 1;
	else
		while (++i < argc)
			argv[n++] = argv[i];
	*ret_argc = n;
	return *ret_help ? CTL_OK : check_count(ctl, (unsigned int)n);
}
