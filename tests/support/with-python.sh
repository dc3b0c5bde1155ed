#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs a command that needs python3 from PATH, or skips. The path is looked up
# when the test runs: another user may not reach what the build found.
#
# usage: with-python.sh COMMAND [ARGS...]
env python3 -c pass 2>/dev/null || {
	echo "skipped: no python3"
	exit 77
}
exec "$@"
