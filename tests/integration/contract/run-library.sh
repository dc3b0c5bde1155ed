#!/bin/sh
# SPDX-License-Identifier: MIT
# Walks the contract over libdmaheap and a daemon of its own. What the library
# promises as the kernel's heap does must be equal line by line.
#
# usage: run-library.sh DMAHEAPD DMAHEAPCTL CONTRACT_LIBRARY REFERENCE
set -eu
here=$(dirname "$0")
dir=$(mktemp -d)
"$1" --socket "$dir/sock" 2>"$dir/log" &
daemon=$!
trap 'kill "$daemon" 2>/dev/null || :; wait "$daemon" || :; rm -rf "$dir"' EXIT
env python3 -c pass 2>/dev/null || {
	echo "skipped: no python3"
	exit 77
}
DMAHEAP_SOCKET=$dir/sock
export DMAHEAP_SOCKET
"$2" wait --timeout 60 >"$dir/wait" 2>&1 || {
	cat "$dir/wait" "$dir/log"
	exit 1
}
"$3" >"$dir/lines"
grep -E '^(alloc\.size|sync\.|zero\.|keep\.|fork\.|close\.|exec\.|dup)' "$4" |
	grep -vE '^sync\.(arg|cmd|on-devnull)' >"$dir/reference"
env python3 "$here/compare.py" "$dir/reference" "$dir/lines" --min 100 --list
