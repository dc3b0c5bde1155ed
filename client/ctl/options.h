/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Options: one verb's command line, read by its table.
 *
 * Ownership: values point into argv.
 * Threads:   one.
 */

#include "ctl/ctl.h"

/* --json, --socket and --help, which every verb takes. */
void options_print_help(const struct verb *verb);

/**
 * options_parse() - read what follows the verb
 * @argv:          rearranged: positional arguments come first
 * @ret_argc:      receives their number
 * @ret_help:      set when --help was there
 *
 * Options may be written --name VALUE or --name=VALUE, in any place before
 * "--"; what follows that goes to ctl_rest, or counts as arguments when the
 * verb takes no command.
 *
 * Return: CTL_OK, or CTL_USAGE after a message.
 */
int options_parse(struct ctl *ctl, int argc, char **argv, int *ret_argc,
		  bool *ret_help) _must_check_;
