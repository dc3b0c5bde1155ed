#!/bin/sh
# SPDX-License-Identifier: MIT
# Names files over 800 lines and functions over 100: split them, or list them in
# tests/lint/size.allowed with the reason.
set -eu
cd "${1:?usage: size.sh SOURCE_ROOT}"
allowed=tests/lint/size.allowed
for f in daemon/*/*.[ch] client/*/*.[ch]; do
	[ -e "$f" ] || continue
	# A function body opens with a brace in the first column and closes so.
	awk -v f="$f" '
		/^{/ { start = NR; name = last }
		/^}/ && start {
			if (NR - start > 101)
				printf "%s %s %d lines\n", f, name, NR - start - 1
			start = 0
		}
		/^[a-z_].*\(/ { last = $0; sub(/\(.*/, "", last); sub(/.*[ *]/, "", last) }
		END { if (NR > 800) printf "%s file %d lines\n", f, NR }' "$f"
done >"${TMPDIR:-/tmp}/dmaheap-size.$$"
bad=0
while read -r file name rest; do
	grep -q "^$file $name:" "$allowed" 2>/dev/null || {
		echo "$file: $name has $rest"
		bad=1
	}
done <"${TMPDIR:-/tmp}/dmaheap-size.$$"
rm -f "${TMPDIR:-/tmp}/dmaheap-size.$$"
exit $bad
