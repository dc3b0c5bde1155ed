#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs the kernel's selftest over dmaheap-run: every test of every heap must be
# OK; the importing device vgem may be skipped, as the test does by itself.
#
# usage: run-selftest.sh DMAHEAP_RUN DIRECTORY [--strict]
set -eu
run=${1:?usage: run-selftest.sh DMAHEAP_RUN DIRECTORY [--strict]}
dir=${2:?usage: run-selftest.sh DMAHEAP_RUN DIRECTORY [--strict]}
strict=${3-}
sh "$(dirname "$0")/fetch-selftest.sh" "$dir" || exit $?
out=$(mktemp)
trap 'rm -f "$out"' EXIT
status=0
"$run" --private $strict "$dir/dmabuf-heap" >"$out" 2>&1 || status=$?
cat "$out"
[ "$status" -eq 0 ] || {
	echo "selftest: exit status $status"
	exit 1
}
tests=$(grep -c '^  Testing' "$out") || true
good=$(grep -c '^  Testing.*OK$' "$out") || true
if [ "$tests" -eq 0 ] || [ "$good" -ne "$tests" ]; then
	echo "selftest: $good of $tests tests are ok"
	exit 1
fi
echo "selftest: $(grep -c '^Testing heap' "$out") heaps, $good tests, all ok"
