#!/bin/sh
# SPDX-License-Identifier: MIT
# Line coverage that each fuzz target reaches in the module it is about, from
# its corpus and RUNS mutants:
#
#   sh tests/fuzz/coverage.sh [RUNS]
#
# Fails when one is below 80 %.
set -eu
cd "$(dirname "$0")/../.."
runs=${1:-20000}
build=build/coverage
want=80
failed=0

cmake -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Debug \
	-DCMAKE_C_FLAGS=--coverage >"$build.log" 2>&1 ||
	{ cat "$build.log"; exit 1; }

# target: source files
modules() {
	case $1 in
	codec) echo daemon/ipc/codec.c ;;
	config) echo daemon/conf/ini.c daemon/conf/value.c daemon/conf/utf8.c \
		daemon/server/config.c daemon/server/config_keys.c ;;
	scenario) echo daemon/conf/scenario.c daemon/conf/scenario_step.c ;;
	snapshot) echo daemon/mm/snapshot.c daemon/mm/snapshot_parse.c ;;
	trace) echo daemon/lab/trace.c ;;
	stateful) echo daemon/heap/*.c daemon/mm/*.c ;;
	esac
}

# Prints "PERCENT LINES" of what gcov says about one source file.
lines_of() {
	data=$(find "$build" -name "$(basename "$1").gcda" \
		-path "*$(basename "$(dirname "$1")")*" | head -n 1)
	[ -n "$data" ] || { echo "0 0"; return; }
	gcov -n "$data" 2>/dev/null |
		grep -A1 "^File '.*$1'" |
		sed -n 's/^Lines executed:\([0-9.]*\)% of \([0-9]*\)$/\1 \2/p'
}

for source in tests/fuzz/fuzz_*.c; do
	target=$(basename "$source" .c)
	name=${target#fuzz_}
	cmake --build "$build" --target "$target" >"$build.log" 2>&1 ||
		{ cat "$build.log"; exit 1; }
	find "$build" -name '*.gcda' -delete
	"$build/tests/fuzz/$target" -n "$runs" "tests/fuzz/corpus/$name" \
		>"$build.log" 2>&1 || { cat "$build.log"; exit 1; }
	for file in $(modules "$name"); do
		lines_of "$file"
	done | awk -v name="$name" -v want="$want" '
		{ hit += $1 * $2 / 100; all += $2 }
		END {
			percent = all ? 100 * hit / all : 0
			printf "%-10s %5.1f %% of %d lines%s\n", name, percent,
				all, percent < want ? "  TOO LOW" : ""
			exit percent < want
		}' || failed=1
done
exit $failed
