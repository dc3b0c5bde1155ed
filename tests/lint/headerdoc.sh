#!/bin/sh
# SPDX-License-Identifier: MIT
# Every internal header says who owns what and which threads may call it.
set -eu
cd "${1:?usage: headerdoc.sh SOURCE_ROOT}"
bad=0
for f in daemon/*/*.h client/*/*.h include/dmaheap/*.h; do
	[ -e "$f" ] || continue
	for word in Ownership: Threads:; do
		grep -q "^ \* $word" "$f" || {
			echo "$f: no paragraph \"$word\""
			bad=1
		}
	done
done
for f in $(find daemon client include tests configs -name '*.[ch]' -o -name '*.sh' -o -name CMakeLists.txt); do
	head -3 "$f" | grep -q 'SPDX-License-Identifier: MIT' || {
		echo "$f: no SPDX line"
		bad=1
	}
done
exit $bad
