/* SPDX-License-Identifier: MIT */
#include "run/launcher.h"
#include "run/options.h"

int main(int argc, char **argv)
{
	struct options options;
	int status;

	status = options_parse(&options, argc, argv);
	return status >= 0 ? status : launcher_run(&options);
}
