#!/bin/sh
# SPDX-License-Identifier: MIT
# docs/experiments.md shows what the program prints: every table whose figures
# are modelled or counted, the same on every machine, line by line, and what
# concludes from modelled ones. Measured figures are of one run and not compared.
set -eu
lab=${1:?usage: page.sh DMAHEAP_LAB DMAHEAPD SOURCE_ROOT}
daemon=${2:?usage: page.sh DMAHEAP_LAB DMAHEAPD SOURCE_ROOT}
root=${3:?usage: page.sh DMAHEAP_LAB DMAHEAPD SOURCE_ROOT}
unset DMAHEAP_DATA_DIR
page=$root/docs/experiments.md
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# A table is the paragraph whose second line says in brackets how it came to be;
# the last paragraph before the "(N s)" is the conclusion.
comparable() {
	awk -v RS= -F '\n' '
		$2 ~ /^\[policy / && $2 ~ /modelled/ { modelled = 1 }
		$2 ~ /^\[policy / && $2 !~ /measured/ { print; next }
		$1 !~ /^\(/ && $2 !~ /^\[policy / { last = $1 }
		$2 ~ /^\(/ { last = $1 }
		END {
			sub(/ Measured .*/, "", last)
			if (modelled)
				print last
		}'
}

n=0
bad=0
for name in $("$lab" experiment list | cut -d ' ' -f 1); do
	"$lab" experiment --daemon "$daemon" "$name" >"$dir/out"
	comparable <"$dir/out" >"$dir/lines"
	while IFS= read -r line; do
		n=$((n + 1))
		# A conclusion may go on with what was measured.
		grep -qF -e "$line" "$page" && continue
		echo "docs/experiments.md: not there, from experiment $name:"
		echo "$line"
		bad=1
	done <"$dir/lines"
done
[ "$n" -gt 90 ] || { echo "only $n lines to compare"; bad=1; }
[ "$bad" = 0 ] && echo "$n lines are as the page has them"
exit $bad
