#!/bin/sh
# SPDX-License-Identifier: MIT
# Compiles each public header alone as C11 and as C++17, and each internal
# header alone as C11, so that no header leans on what others include.
set -eu
root=${1:?usage: headers.sh SOURCE_ROOT CC [CXX]}
cc=${2:?usage: headers.sh SOURCE_ROOT CC [CXX]}
cxx=${3:-}
cd "$root"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
bad=0
n=0

try() { # COMPILER-AND-FLAGS... HEADER-AS-WRITTEN
	n=$((n + 1))
	"$@" >"$tmp/out" 2>&1 || {
		echo "does not stand alone: $*"
		cat "$tmp/out"
		bad=1
	}
}

for h in include/dmaheap/*.h; do
	printf '#include <dmaheap/%s>\nint main(void) { return 0; }\n' \
		"$(basename "$h")" >"$tmp/h.c"
	cp "$tmp/h.c" "$tmp/h.cc"
	try "$cc" -std=c11 -Wall -Wextra -Wpedantic -Werror -Iinclude \
		-fsyntax-only "$tmp/h.c"
	[ -z "$cxx" ] || try "$cxx" -std=c++17 -Wall -Wextra -Wpedantic -Werror \
		-Iinclude -fsyntax-only "$tmp/h.cc"
done
for h in daemon/*/*.h client/*/*.h; do
	[ -e "$h" ] || continue
	printf '#include "%s"\nint main(void) { return 0; }\n' \
		"${h#*/}" >"$tmp/h.c"
	try "$cc" -std=gnu11 -D_GNU_SOURCE -DDMAHEAP_DEBUG=1 -Wall -Wextra \
		-Werror -Iinclude -I"${h%%/*}" -fsyntax-only "$tmp/h.c"
done
echo "$n compilations"
if [ -z "$cxx" ]; then
	[ $bad -eq 0 ] || exit 1
	echo "skipped: no C++ compiler, headers were checked as C only"
	exit 77
fi
exit $bad
