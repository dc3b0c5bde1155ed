#!/bin/sh
# SPDX-License-Identifier: MIT
# The same seed gives the same output, byte for byte, from gcc and clang, as debug
# and as release builds: builds the lab by each and compares.
set -eu
root=${1:?usage: same.sh SOURCE_ROOT}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
compilers=
for cc in gcc clang; do
	command -v "$cc" >/dev/null 2>&1 && compilers="$compilers $cc"
done
case $compilers in
*gcc*clang*) ;;
*)
	echo "needs gcc and clang; found:${compilers:- none}"
	exit 77
	;;
esac

# One translation unit per file, no build system: only what the model needs.
build() {
	cc=$1
	flags=$2
	out=$3
	mkdir "$out.o"
	for f in "$root"/daemon/base/*.c "$root"/daemon/conf/*.c \
		"$root"/daemon/mm/*.c "$root"/daemon/heap/*.c \
		"$root"/daemon/lab/*.c; do
		case $f in
		*/lab/experiment* | */lab/usage* | */lab/main.c) continue ;;
		esac
		"$cc" -std=gnu11 $flags -w -D_GNU_SOURCE -DDMAHEAP_VERSION='"same"' \
			-I"$root/daemon" -I"$root/include" -c "$f" \
			-o "$out.o/$(basename "$(dirname "$f")")-$(basename "$f").o"
	done
	cat >"$out.c" <<'END'
#include "lab/cmd.h"
int main(int argc, char **argv) { return cmd_run(argc - 1, argv + 1); }
END
	# An archive: what run does not need is not linked.
	ar rc "$out.o/all.a" "$out.o"/*.o
	"$cc" -std=gnu11 -w -D_GNU_SOURCE -I"$root/daemon" "$out.c" "$out.o/all.a" \
		-linih -ljansson -lpthread -o "$out"
}

export DMAHEAP_DATA_DIR="$root/configs"
bad=0
for cc in $compilers; do
	for flags in "-O0 -DDMAHEAP_DEBUG" "-O2"; do
		build "$cc" "$flags" "$dir/lab"
		"$dir/lab" run order4-reclaim many-small refvm-stock-pin2 \
			refvm-o800-alt2 churn --seed 7 --json >"$dir/out"
		sum=$(cksum <"$dir/out")
		echo "$cc $flags: $sum"
		first=${first:-$sum}
		[ "$sum" = "$first" ] || bad=1
		rm -rf "$dir/lab" "$dir/lab.o" "$dir/lab.c"
	done
done
[ "$bad" = 0 ] || echo "the outputs differ"
exit $bad
