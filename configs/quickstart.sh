#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs what is missing, builds, and shows the main job: buffers from a
# daemon of its own, once on this machine's memory state and once on a
# fragmented phone's.
#
# usage: sh configs/quickstart.sh
set -eu
cd "$(dirname "$0")/.."
. configs/packages.sh

case $#:${1-} in
0:) ;;
1:-h | 1:--help)
	sed -n '3,7s/^# \{0,1\}//p' configs/quickstart.sh
	exit 0
	;;
*)
	echo "quickstart: \"$*\": it takes no arguments but --help" >&2
	exit 2
	;;
esac

need_packages

echo "== Building (build/quickstart)"
mkdir -p build
log=build/quickstart.log
if ! { cmake -B build/quickstart -G Ninja -DCMAKE_BUILD_TYPE=Release \
	-DDMAHEAP_TESTS=OFF && cmake --build build/quickstart; } >"$log" 2>&1; then
	tail -n 40 "$log"
	echo "quickstart: the build failed; the whole log is $log" >&2
	exit 1
fi

bin=$PWD/build/quickstart
ctl=$bin/client/ctl/dmaheapctl
dir=$(mktemp -d)
daemon=
cleanup() {
	if [ -n "$daemon" ]; then
		kill "$daemon" 2>/dev/null || :
		wait "$daemon" 2>/dev/null || :
	fi
	rm -rf "$dir"
}
trap cleanup EXIT
# A signal alone does not run the EXIT trap; PIPE comes when the reader has left.
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 141' PIPE
trap 'exit 143' TERM
DMAHEAP_SOCKET=$dir/dmaheap.sock
export DMAHEAP_SOCKET

# How many buffers of 10 MiB this host has room for: a quarter of what is
# available, 16 at most.
available_kib=$(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo)
count=$((${available_kib:-0} / 4 / 10240))
[ "$count" -le 16 ] || count=16
[ "$count" -ge 1 ] || count=1
[ "$count" -eq 16 ] ||
	echo "Only $count buffers instead of 16: this host has $((available_kib / 1024)) MiB available."

start() { # SNAPSHOT-DIRECTORY
	# Pools off, so that every block shows in buddyinfo again at the end.
	cat >"$dir/dmaheapd.conf" <<-END
		[node]
		snapshot = $1
		[heap system]
		policy = 840-high
		pool.8.limit = 0
		pool.4.limit = 0
		pool.0.limit = 0
	END
	"$bin/daemon/server/dmaheapd" --config "$dir/dmaheapd.conf" \
		--socket "$DMAHEAP_SOCKET" 2>"$dir/log" &
	daemon=$!
	"$ctl" wait --timeout 30 || {
		cat "$dir/log" >&2
		exit 1
	}
}

stop() {
	"$ctl" stop
	wait "$daemon" || :
	daemon=
}

# Released blocks come back a moment after the last reference is gone.
wait_empty() {
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		[ "$("$ctl" buffers | grep -c system)" -eq 0 ] && return 0
		sleep 0.1
	done
	return 1
}

# Pages of the free lists of a buddyinfo file.
free_pages() {
	awk '{ for (i = 5; i <= NF; i++) n += $i * 2 ^ (i - 5) } END { print n }' "$1"
}

# As in the kernel, single pages go back to a per-CPU list first, which buddyinfo
# does not count.
prove_all_back() {
	before=$(free_pages "$dir/before")
	after=$(free_pages "$dir/after")
	waiting=$("$ctl" zoneinfo | awk '/ count:/ { n += $2 } END { print n + 0 }')
	waited=$(cat "$dir/waiting")
	if [ $((before + waited)) -ne $((after + waiting)) ]; then
		echo "quickstart: $before pages were free and $waited on per-CPU lists before, $after and $waiting are now" >&2
		exit 1
	fi
	echo "-- every block came back: $before pages free and $waited on per-CPU lists before, $after and $waiting now, as many together"
}

main_job() { # SNAPSHOT-DIRECTORY
	start "$1"
	echo "-- before"
	"$ctl" pools
	"$ctl" buddyinfo | tee "$dir/before"
	"$ctl" zoneinfo | awk '/ count:/ { n += $2 } END { print n + 0 }' >"$dir/waiting"
	echo "-- $count buffers of 10 MiB, mapped and written"
	"$ctl" alloc 10M --count "$count" -- sh -ec "
		$bin/docs/example-touch
		echo '-- during'
		$ctl pools
		$ctl buddyinfo
		$ctl buffers | head -n 5"
	wait_empty || echo "quickstart: buffers are still there" >&2
	echo "-- after"
	"$ctl" pools
	"$ctl" buddyinfo | tee "$dir/after"
	prove_all_back
	stop
}

echo "== On this machine's own memory state"
mkdir "$dir/here"
for f in buddyinfo pagetypeinfo meminfo zoneinfo vmstat; do
	cat "/proc/$f" >"$dir/here/$f" 2>/dev/null || rm -f "$dir/here/$f"
done
main_job "$dir/here"

echo
echo "== On a fragmented phone (configs/snapshots/phone-fragmented)"
main_job "$PWD/configs/snapshots/phone-fragmented"
