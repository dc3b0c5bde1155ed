#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs the commands that the documents show: every fenced block of README.md and
# docs/*.md after a line "<!-- run -->", page by page in their order, each page
# with a daemon of its own on a private socket, which has served before: what a
# page promises may not need a new one.
set -eu
root=${1:?usage: docs.sh SOURCE_ROOT BUILD_ROOT}
build=${2:?usage: docs.sh SOURCE_ROOT BUILD_ROOT}
tmp=$(mktemp -d)
daemon=
end() {
	[ -z "$daemon" ] || kill "$daemon" 2>/dev/null || :
	[ -z "$daemon" ] || wait "$daemon" 2>/dev/null || :
	rm -rf "$tmp"
}
trap end EXIT
trap 'exit 1' INT TERM HUP

PATH=$build/client/ctl:$build/client/run:$build/daemon/server:$build/daemon/lab:$PATH
DMAHEAP_SOCKET=$tmp/s
export PATH DMAHEAP_SOCKET

blocks() {
	awk '/^<!-- run -->$/ { want = 1; next }
	     want && /^```sh$/ { on = 1; want = 0; n++; next }
	     /^```/ { on = 0 }
	     on { print }
	     END { exit n == 0 }' "$1"
}

# Ends with the buffer parked, not still on its way there.
serve_before() {
	dmaheapctl alloc 10M >/dev/null
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		dmaheapctl stats --json | grep -q '"parked_bytes": *[1-9]' && return
		sleep 0.2
	done
	echo "a released buffer is not parked"
	exit 1
}

# The last column of an allocation's row is its stall.
expect_stall() {
	grep -qE ' 10M .* node .* [1-9][0-9.]*ms$' "$tmp/out" && return
	echo "$1: it says that an allocation stalls, and none does:"
	cat "$tmp/out"
	bad=1
}

n=0
bad=0
for page in "$root"/README.md "$root"/docs/*.md; do
	blocks "$page" >"$tmp/commands" || continue
	n=$((n + 1))
	: >"$tmp/daemon.conf"
	dmaheapd --config "$tmp/daemon.conf" --socket "$DMAHEAP_SOCKET" \
		2>"$tmp/daemon.log" &
	daemon=$!
	if ! dmaheapctl wait --timeout 20 >/dev/null; then
		cat "$tmp/daemon.log"
		exit 1
	fi
	serve_before
	# In the source's root, as the pages say; -v names what failed.
	if ! (cd "$root" && sh -euv "$tmp/commands") >"$tmp/out" 2>&1; then
		echo "$page: a command fails:"
		tail -n 20 "$tmp/out"
		bad=1
	fi
	! grep -q 'alloc.*# stalls' "$tmp/commands" || expect_stall "$page"
	kill "$daemon"
	wait "$daemon" || { echo "$page: the daemon ended badly"; bad=1; }
	daemon=
done
[ "$n" -gt 0 ] || { echo "no page has commands to run"; exit 1; }
echo "$n pages run"
exit $bad
