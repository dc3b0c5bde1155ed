/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Shipped data: where profiles, scenarios and snapshots of the installed (or
 * just built) project are.
 *
 * Units:     none.
 * Ownership: nothing is kept.
 * Threads:   no state.
 */

#include "base/base.h"

#define CONF_PATH_BYTES 4096u

/* Return: true if the text fits @ret and names something readable. */
bool conf_path_exists(char ret[CONF_PATH_BYTES], const char *format, ...)
	_printf_(2, 3);

/**
 * conf_find_shipped() - the path of a shipped file or directory
 * @kind:   "profiles", "scenarios", ...
 * @name:   without @suffix; has no slash
 *
 * Looked for in $DMAHEAP_DATA_DIR if that is set; else, from the program's own
 * directory upwards, in configs/ (a source tree) and share/dmaheap/.
 *
 * Return: true if it is there.
 */
bool conf_find_shipped(char ret[CONF_PATH_BYTES], const char *kind,
		       const char *name, const char *suffix);
