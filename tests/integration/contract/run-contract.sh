#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs the contract program over dmaheap-run and compares its lines with the
# kernel's. Every difference must be explained in known-differences.txt.
#
# usage: run-contract.sh DMAHEAP_RUN CONTRACT REFERENCE plain|strict
set -eu
run=$1
contract=$2
reference=$3
mode=$4
here=$(dirname "$0")
out=$(mktemp)
trap 'rm -f "$out" "$out.err"' EXIT
option= least=70
if [ "$mode" = strict ]; then
	option=--strict least=90
fi
env python3 -c pass 2>/dev/null || {
	echo "skipped: no python3"
	exit 77
}
status=0
"$run" --private $option "$contract" >"$out" 2>"$out.err" || status=$?
if [ "$status" -ne 0 ]; then
	cat "$out.err"
	if grep -q seccomp "$out.err"; then
		echo "skipped: $(grep seccomp "$out.err")"
		exit 77
	fi
	echo "contract: exit status $status"
	exit 1
fi
env python3 "$here/compare.py" "$reference" "$out" --min "$least" \
	--known "$here/known-differences.txt" \
	$([ "$mode" = plain ] || echo --strict)
