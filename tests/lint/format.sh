#!/bin/sh
# SPDX-License-Identifier: MIT
# Is every C file formatted as .clang-format says?
set -eu
cd "${1:?usage: format.sh SOURCE_ROOT}"
if ! command -v clang-format >/dev/null; then
	echo "skipped: clang-format is not installed"
	exit 77
fi
case $(clang-format --version) in
*"version 14."*) ;;
*)
	echo "skipped: clang-format here is not version 14, whose layout is checked"
	exit 77
	;;
esac
find daemon client tests configs docs -name '*.[ch]' -exec \
	clang-format --dry-run -Werror {} +
