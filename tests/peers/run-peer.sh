#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs a program over dmaheap-run and a private daemon; skips where the kernel
# or the container has no seccomp notification.
#
# usage: run-peer.sh DMAHEAP_RUN PROGRAM [ARGS...]
set -eu
run=$1
shift
out=$(mktemp)
trap 'rm -f "$out"' EXIT
status=0
"$run" --private "$@" >"$out" 2>&1 || status=$?
cat "$out"
if [ "$status" -eq 1 ] && grep -q 'dmaheap-run: .*seccomp' "$out"; then
	echo "skipped: $(grep -m 1 'dmaheap-run: .*seccomp' "$out")"
	exit 77
fi
exit "$status"
