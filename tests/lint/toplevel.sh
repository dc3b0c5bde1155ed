#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks that the top level holds only what docs/architecture.md lists.
set -eu
cd "${1:?usage: toplevel.sh SOURCE_ROOT}"
bad=0
for entry in *; do
	case $entry in
	CMakeLists.txt | CMakePresets.json | LICENSE | README.md) ;;
	daemon | client | include | tests | configs | docs | build) ;;
	*)
		echo "$entry does not belong at the top level"
		bad=1
		;;
	esac
done
exit $bad
