#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs the libFuzzer targets (clang) and prints what they did:
#
#   sh tests/fuzz/run.sh [-n RUNS] [TARGET...]
#
# Without -n: 10 million executions each, a million for the stateful one. What
# is found is left in build/fuzz/findings/TARGET.
set -eu
cd "$(dirname "$0")/../.."
runs=
while getopts n: option; do
	case $option in
	n) runs=$OPTARG ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
failed=0

cmake --preset fuzz >/dev/null
[ $# -gt 0 ] || set -- $(cd tests/fuzz && ls fuzz_*.c |
	sed 's/^fuzz_\(.*\)\.c$/\1/')
for name; do
	cmake --build build/fuzz --target "fuzz_$name" >build/fuzz.log 2>&1 ||
		{ cat build/fuzz.log; exit 1; }
done
printf '%-10s %12s %8s %10s %8s  %s\n' \
	target executions seconds per_second corpus findings
for name; do
	n=$runs
	if [ -z "$n" ]; then
		n=10000000
		[ "$name" != stateful ] || n=1000000
	fi
	out=build/fuzz/findings/$name
	mkdir -p "$out" "build/fuzz/corpus/$name"
	start=$(date +%s)
	"build/fuzz/tests/fuzz/fuzz_$name" -runs="$n" -timeout=25 -report_slow_units=25 -max_len=4096 \
		-artifact_prefix="$out/" -print_final_stats=1 \
		"build/fuzz/corpus/$name" "tests/fuzz/corpus/$name" \
		>"$out/log" 2>&1 || failed=1
	seconds=$(($(date +%s) - start))
	done=$(sed -n 's/^stat::number_of_executed_units: *//p' "$out/log")
	printf '%-10s %12s %8s %10s %8s  %s\n' "$name" "${done:-?}" "$seconds" \
		"$((${done:-0} / (seconds + 1)))" \
		"$(ls "build/fuzz/corpus/$name" | wc -l)" \
		"$(find "$out" -type f ! -name log | wc -l)"
done
exit $failed
