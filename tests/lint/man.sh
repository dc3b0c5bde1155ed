#!/bin/sh
# SPDX-License-Identifier: MIT
# The manual pages name every verb of dmaheapctl and dmaheap-lab, every option
# of dmaheapd and dmaheap-run, every key of the config file and every function
# of the library.
set -eu
cd "${1:?usage: man.sh SOURCE_ROOT}"
bad=0
n=0
# Pages write - as \- in places; a page is compared without them.
need() {
	n=$((n + 1))
	sed 's/\\-/-/g' "docs/man/$1" | grep -qwF -e "$2" || {
		echo "docs/man/$1: nothing about $2"
		bad=1
	}
}
for verb in $(sed -n 's/.*[.]name = "\([a-z]*\)",$/\1/p' client/ctl/*.c); do
	need dmaheapctl.1 "$verb"
done
for verb in $(sed -n 's/^\t{"\([a-z]*\)", [a-z_]*,$/\1/p' daemon/lab/main.c); do
	need dmaheap-lab.1 "$verb"
done
for option in $(grep -oE '"  --[a-z-]+' daemon/server/options.c | cut -c4-); do
	need dmaheapd.8 "$option"
done
for option in $(grep -oE '"  --[a-z-]+' client/run/options.c | cut -c4-); do
	need dmaheap-run.1 "$option"
done
for key in $(sed -n 's/^\([a-z_]*\) = *.*/\1/p' configs/dmaheapd.conf); do
	need dmaheapd.conf.5 "$key"
done
for function in $(grep -oE 'dmaheap_[a-z_]+;' client/lib/libdmaheap.map |
	tr -d ';'); do
	need libdmaheap.3 "$function"
done
[ "$n" -gt 60 ] || { echo "only $n names found in the sources"; bad=1; }
exit $bad
