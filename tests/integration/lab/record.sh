#!/bin/sh
# SPDX-License-Identifier: MIT
# What a daemon records can be replayed exactly: a real dmaheapd under pressure,
# clients that allocate and free, its trace, and dmaheap-lab replay on it.
set -eu
lab=${1:?usage: record.sh LAB DAEMON CTL SOURCE_ROOT}
daemon=$2
ctl=$3
root=$4
unset DMAHEAP_DATA_DIR
dir=$(mktemp -d)
daemon_pid=
trap '[ -z "$daemon_pid" ] || kill "$daemon_pid" 2>/dev/null || true
	wait 2>/dev/null || true; rm -rf "$dir"' EXIT
export DMAHEAP_SOCKET="$dir/socket"

# held_long_enough CLOCK: the buffer of 2M was held for one second, of which a
# trace of the event clock has only the model's own time; whatever the clock, no
# line is before the one above it.
held_long_enough() {
	awk -v clock="$1" '
	/^[0-9]/ { if ($1 + 0 < last) exit 1; last = $1 + 0 }
	/ alloc id=.* size=2097152 / { id = $3; from = $1 }
	id && $2 == "release" && $3 == id { held = $1 - from; id = "" }
	END { if (clock == "wall" ? held < 1e9 : held >= 1e9) exit 1 }
	' "$dir/run.trace"
}

# alloc SIZE...: The budget has no room for 10M beside what another heap has
# parked. While that is still being cleaned it cannot be taken back: a refusal.
alloc() {
	n=0
	until "$ctl" alloc "$@" --json >/dev/null 2>"$dir/why"; do
		n=$((n + 1))
		[ "$n" -lt 100 ] || { cat "$dir/why"; exit 1; }
	done
}

# begin_recording FILE: in the background, as $recorder.
begin_recording() {
	"$ctl" trace record "$1" >/dev/null 2>&1 &
	recorder=$!
	# The trace has begun when its first line is there.
	n=0
	until grep -q '^node' "$1" 2>/dev/null; do
		n=$((n + 1))
		[ "$n" -lt 1000 ] || { echo "no trace begins"; exit 1; }
		"$ctl" heaps >/dev/null
	done
}

# replay CLOCK: Allocations of several sizes, some of them under pressure,
# some with pools that are filled in the background.
replay() {
	cat >"$dir/d.conf" <<END
[daemon]
clock = $1
latency = native
[node]
size = 256M
occupants = kernel:10% file:25% anon:20%
swap = zram
profile = $root/configs/profiles/arm64-phone.conf
seed = 5
[backing]
budget = 11M
[heap system]
policy = 840-mid
pool.limit = 8M
END
	"$daemon" --config "$dir/d.conf" --socket "$DMAHEAP_SOCKET" \
		>"$dir/log" 2>&1 &
	daemon_pid=$!
	"$ctl" wait --timeout 10
	rm -f "$dir/run.trace" # of the clock before
	begin_recording "$dir/run.trace"
	alloc 3M --heap system-uncached
	for size in 10M 64K 1M 10M 3M 10M; do
		alloc "$size"
	done
	"$ctl" alloc 2M --hold 1 >/dev/null
	"$ctl" policy --heap system set pool.8.limit=2M >/dev/null
	"$ctl" pressure low-memory --keep >/dev/null
	for size in 10M 1M 4K 10M 100K 10M; do
		"$ctl" alloc "$size" --json >/dev/null || true
	done
	"$ctl" pressure release >/dev/null
	"$ctl" policy --heap system set pool.refill=on >/dev/null
	for size in 10M 1M 10M; do
		alloc "$size"
	done
	"$ctl" shrink --to 1M >/dev/null
	"$ctl" stop >/dev/null
	wait "$daemon_pid" || true
	daemon_pid=
	wait "$recorder" || true
	"$lab" replay "$dir/run.trace" >"$dir/out"
	tail -2 "$dir/out"
	n=$(grep -c ' alloc ' "$dir/run.trace")
	held_long_enough "$1" || {
		echo "FAILED: clock $1: the trace does not tell the hold time"
		cat "$dir/run.trace"
		return 1
	}
	[ "$(grep -c ' shrink ' "$dir/run.trace")" -gt 1 ] || {
		echo "FAILED: clock $1: the budget made no heap shrink"
		return 1
	}
	grep -q ' refill ' "$dir/run.trace" || {
		echo "FAILED: clock $1: no pool was refilled"
		return 1
	}
	grep -q 'stall_ns=[1-9]' "$dir/run.trace" || {
		echo "FAILED: clock $1: no allocation stalled"
		return 1
	}
	grep -q "^$n allocations; $n as recorded, $n of them in the same time" \
		"$dir/out" || {
		echo "FAILED: clock $1: not replayed exactly"
		cat "$dir/run.trace"
		return 1
	}
}

# record FILE: the trace of three buffers of 1 MiB.
record() {
	begin_recording "$1"
	# Each is parked before the next one comes.
	for i in 1 2 3; do
		"$ctl" alloc 1M --json >/dev/null
		until [ "$(grep -c ' finish ' "$1")" -ge "$i" ]; do
			n=$((n + 1))
			[ "$n" -lt 1000 ] || { echo "no finish"; exit 1; }
			"$ctl" heaps >/dev/null
		done
	done
	kill "$recorder"
	wait "$recorder" || true
}

# What was parked before the trace is not in it; after a shrink nothing is.
warm() {
	printf '[node]\nsize = 64M\n' >"$dir/d.conf"
	"$daemon" --config "$dir/d.conf" --socket "$DMAHEAP_SOCKET" \
		>"$dir/log" 2>&1 &
	daemon_pid=$!
	"$ctl" wait --timeout 10
	"$ctl" alloc 1M >/dev/null
	n=0
	until "$ctl" stats --json | grep -q '"parked_bytes": *[1-9]'; do
		n=$((n + 1))
		[ "$n" -lt 1000 ] || { echo "nothing is parked"; exit 1; }
	done
	record "$dir/warm.trace"
	"$ctl" shrink >/dev/null
	record "$dir/shrunk.trace"
	"$ctl" stop >/dev/null
	wait "$daemon_pid" || true
	daemon_pid=
	got=0
	"$lab" replay "$dir/warm.trace" >"$dir/out" 2>&1 || got=$?
	if [ "$got" != 1 ] || ! grep -q '3 of 3 allocations took' "$dir/out"; then
		echo "FAILED: a warm daemon's trace gives exit status $got"
		cat "$dir/warm.trace" "$dir/out"
		return 1
	fi
	"$lab" replay "$dir/shrunk.trace" 2>&1 | grep -q '^1 allocations; 1 as' || {
		echo "FAILED: a trace after a shrink is not replayed"
		cat "$dir/shrunk.trace"
		return 1
	}
}

replay wall
replay event
warm
