#!/bin/sh
# SPDX-License-Identifier: MIT
# Compares what the shared library exports with what its header declares and
# its version script lists: all three must be the same names.
set -eu
root=${1:?usage: exports.sh SOURCE_ROOT LIBRARY}
lib=${2:?usage: exports.sh SOURCE_ROOT LIBRARY}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
nm -D --defined-only "$lib" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' |
	sort -u >"$tmp/exported"
sed 's,/\*.*\*/,,' "$root/include/dmaheap/dmaheap.h" |
	grep -E '^[a-z].*[ *]dmaheap_[a-z_]+\(' |
	sed -E 's/.*[ *](dmaheap_[a-z_]+)\(.*/\1/' | sort -u >"$tmp/declared"
grep -oE 'dmaheap_[a-z_]+;' "$root/client/lib/libdmaheap.map" | tr -d ';' |
	sort -u >"$tmp/mapped"
bad=0
[ -s "$tmp/declared" ] || { echo "no declaration found"; bad=1; }
diff "$tmp/declared" "$tmp/exported" >"$tmp/d" || {
	echo "header (<) and exported symbols (>) differ:"
	cat "$tmp/d"
	bad=1
}
diff "$tmp/declared" "$tmp/mapped" >"$tmp/d" || {
	echo "header (<) and version script (>) differ:"
	cat "$tmp/d"
	bad=1
}
exit $bad
