#!/bin/sh
# SPDX-License-Identifier: MIT
# dmaheap-lab as a user types it: every verb, every format, exit statuses and
# messages of bad input.
set -eu
lab=${1:?usage: cli.sh DMAHEAP_LAB SOURCE_ROOT}
root=${2:?usage: cli.sh DMAHEAP_LAB SOURCE_ROOT}
unset DMAHEAP_DATA_DIR
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
bad=0

fail() {
	echo "FAILED: $*"
	bad=1
}

# expect STATUS WORDS COMMAND...: exit status, and WORDS somewhere in the output.
expect() {
	status=$1
	words=$2
	shift 2
	got=0
	"$@" >out 2>&1 || got=$?
	[ "$got" = "$status" ] || fail "$*: exit status $got, not $status"
	grep -qF -e "$words" out || fail "$*: no \"$words\" in: $(head -3 out)"
}

cat >small.conf <<'END'
[node]
size = 64M
[table only]
policy = 840-high 8,0,0
pool.limit = 0
[step alloc]
size = 1M
count = 4
every = 1ms
END

expect 2 'usage: dmaheap-lab' "$lab"
expect 0 'replay TRACE' "$lab" --help
expect 0 'dmaheap-lab ' "$lab" --version
expect 2 'no such verb' "$lab" dance
for verb in run sweep merge replay import calibrate experiment; do
	expect 0 "usage: dmaheap-lab $verb" "$lab" "$verb" --help
done
expect 2 'only one of --json, --tsv and --html' "$lab" run ./small.conf --json --tsv
expect 2 'only one of --json, --tsv and --html' "$lab" sweep ./small.conf --tsv --html x
expect 0 '"seed"' "$lab" run ./small.conf --json --json
expect 2 'order4-reclaim' "$lab" run
expect 1 'neither a shipped scenario' "$lab" run moon
expect 1 'neither a shipped scenario' "$lab" run ./moon
expect 2 'no such option' "$lab" run ./small.conf --fast
expect 2 'needs a number' "$lab" run ./small.conf --seed x
expect 1 '"850" is no policy' "$lab" run ./small.conf --policy 850
expect 1 'neither a shipped scenario' "$lab" run nowhere.conf
expect 0 'policy 840-high' "$lab" run small.conf
expect 2 '--html needs a file' "$lab" run ./small.conf --html
expect 1 'buddyinfo' "$lab" run ./small.conf --node ./nowhere
expect 0 'policy 8,0,0 (800), seed 1' "$lab" run ./small.conf
expect 0 'compact' "$lab" run order4-reclaim
expect 0 'policy 0-only' "$lab" run ./small.conf --policy 0-only 940-high
expect 0 'policy 940-high' "$lab" run ./small.conf --policy 0-only 940-high
expect 0 'seed 18446744073709551615' "$lab" run ./small.conf --seed 18446744073709551615

# A policy of one's own, in a file and in the scenario.
cat >mine.conf <<'END'
[policy mine]
policy = 840-mid
orders = 9 4 0
gfp.9 = HIGH_ORDER
[policy single]
policy = 0-only
END
{ cat small.conf; printf '[policy own]\norders = 4 0\n'; } >with-own.conf
expect 0 'policy mine, seed 1' "$lab" run small.conf --policy 840-high mine.conf
expect 0 'policy single, seed 1' "$lab" run small.conf --policy 840-high mine.conf
expect 0 'policy 840-high, seed 1' "$lab" run small.conf --policy mine.conf 840-high
expect 0 'policy own, seed 1' "$lab" run with-own.conf --policy 840-high own
"$lab" sweep small.conf --policy ./mine.conf 840-high --tsv | cut -f 4 >labels
[ "$(grep -v '^#' labels | tr '\n' ' ')" = 'policy mine single 840-high ' ] ||
	fail "sweep of own policies shows: $(cat labels)"
"$lab" sweep with-own.conf --tsv | cut -f 4 | grep -qx own ||
	fail "sweep leaves the scenario's own policy out"
expect 1 '"mine" is no policy' "$lab" run small.conf --policy mine
expect 2 'two are called "mine"' "$lab" run small.conf --policy mine mine.conf
expect 2 'in front of --policy' "$lab" run --policy mine.conf
expect 2 '--policy needs a policy' "$lab" run small.conf --policy --tsv
printf '[policy mine]\ngfp.4 = MUCH\n' >bad.conf
expect 1 'bad.conf:2: gfp.4: "MUCH": not gfp flags' "$lab" run small.conf --policy bad.conf
printf '[policy a/b]\norders = 0\n' >bad.conf
expect 1 'bad.conf:1: [policy a/b]: a policy needs a name' "$lab" run small.conf --policy bad.conf
printf '# nothing\n' >bad.conf
expect 1 'bad.conf: has no section [policy NAME]' "$lab" run small.conf --policy bad.conf
expect 1 'has only sections [policy NAME]' "$lab" run small.conf --policy small.conf
expect 1 'nowhere.conf: ' "$lab" run small.conf --policy nowhere.conf

"$lab" run ./small.conf --tsv >mine.tsv
[ "$(grep -vc '^#' mine.tsv)" = 8 ] || fail "--tsv has not 8 rows"
grep -q '^# condition	policy	set	n	latency_us	order8	order4	order0$' mine.tsv ||
	fail "--tsv has other columns"
"$lab" run ./small.conf --tsv --policy 940-high | grep -q '	order9$' ||
	fail "--tsv does not append other orders"
"$lab" run ./small.conf --json >mine.json
if command -v python3 >/dev/null 2>&1; then
	python3 - <<'END' || fail "--json is not what it should be"
import json
tables = json.load(open("mine.json"))
assert [t["policy"] for t in tables] == ["840-high", "8,0,0"]
assert tables[0]["rows"][0]["composition"]["8"] == 1
assert tables[0]["vmstat"]["pgalloc"] >= 1024
assert tables[0]["sets"][0]["n"] == 4
END
fi
"$lab" run ./small.conf --html page.html
grep -q '<svg' page.html || fail "--html draws nothing"
if grep -qE '(src|href)=|@import|url\(' page.html; then
	fail "--html fetches something"
fi

# The time stalled is of all allocations, the others of those that succeed.
cat >full.conf <<'END'
[node]
size = 32M
occupants = kernel:30% anon:60%
[table full]
policy = 840-mid
[step alloc]
size = 28M
END
expect 0 'n 1, failed 1' "$lab" run full.conf
stalled=$(sed -n 's/.*stalled \([0-9]*\), \1 of it in those that failed$/\1/p' out)
[ "${stalled:-0}" -gt 0 ] || fail "no time stalled in a failed one: $(grep stalled out)"
expect 0 '0-only' "$lab" sweep ./small.conf
expect 0 'stalled_us' "$lab" sweep order4-reclaim --tsv
expect 2 'needs a scenario' "$lab" sweep
# Each line says which table it is, and whether the policy is as it is named.
"$lab" sweep order4-reclaim --policy 840-mid 800 --tsv >grid.tsv
[ -z "$(cut -f 1-5 grid.tsv | sort | uniq -d)" ] ||
	fail "lines of sweep that cannot be told apart: $(cat grid.tsv)"
expect 0 'order4-reclaim	low-memory-high	5	840-mid*	1' cat grid.tsv
expect 0 'order4-reclaim	low-memory	3	840-mid	1' cat grid.tsv
expect 0 'low-memory is table 4, snapshot order4-low-800' cat grid.tsv
expect 0 'table 2, snapshot order4-enough-800: node' "$lab" run order4-reclaim
expect 0 '; table 2, snapshot order4-enough-800' "$lab" run order4-reclaim --tsv
expect 0 '"snapshot": "order4-enough-800"' "$lab" run order4-reclaim --json

expect 2 'needs 1 to 8 files' "$lab" merge
expect 0 'low-memory	8,4,0	1	16	74625' "$lab" merge \
	"$root/tests/data/order4-reclaim.tsv" mine.tsv
expect 0 'only	840-high	1	-	-	-	-	-	-	-	4	' "$lab" merge \
	"$root/tests/data/order4-reclaim.tsv" mine.tsv
# Two tables of one condition, with one policy, stay two.
"$lab" run order4-reclaim --policy 800 --tsv >twice.tsv
expect 0 'low-memory	800	2	16' "$lab" merge twice.tsv
expect 0 'low-memory#2	800	2	16' "$lab" merge twice.tsv
expect 1 'cannot be read' "$lab" merge nowhere.tsv
printf 'a\tb\t1\tx\t5\t0\t0\t0\n' >bad.tsv
expect 1 'bad.tsv:1: column 4' "$lab" merge bad.tsv
printf 'a b c\n' >bad.tsv
expect 1 'bad.tsv:1: not 8 columns' "$lab" merge bad.tsv

cat >kernel.txt <<'END'
# tracer: nop
     cam-412   [002] .....  1234.500000: dma_heap_stat: inode=77 len=1048576 total_allocated=1048576
     cam-412   [002] .....  1234.600000: sched_switch: whatever
     cam-412   [002] .....  1234.750000: dma_heap_stat: inode=78 len=65536 total_allocated=1114112
     gpu-9     [001] .....  1235.500000: dma_heap_stat: inode=77 len=-1048576 total_allocated=65536
     gpu-9     [001] .....  1235.600000: dma_heap_stat: inode=5 len=-4096 total_allocated=65536
END
printf '[policy single]\norders = 0\n' >single.conf
"$lab" import kernel.txt >buffers.trace || fail "import"
expect 0 '250000000 alloc id=2 heap=system uid=0 size=65536' cat buffers.trace
expect 0 '2 allocations; nothing to compare with' "$lab" replay buffers.trace
expect 0 'node 8192 MiB, 8' "$lab" replay buffers.trace
cat >warm.trace <<'END'
dmaheap-trace 1
node size=67108864
0 heap name=system policy=840-high
1000 take id=1 heap=system uid=0
2000 take id=2 heap=system uid=0
3000 alloc id=9 heap=system uid=0 size=4096 status=0 blocks=0:1
4000 alloc heap=system uid=0 size=4096
END
expect 0 '2 of 4 allocations took buffers that were parked before' "$lab" replay warm.trace
expect 0 '1 have no result' "$lab" replay warm.trace
sed -i '/^4000/d' warm.trace
expect 1 'or after dmaheapctl shrink' "$lab" replay warm.trace --json
expect 0 '8192 MiB' "$lab" replay buffers.trace --node phone-fragmented
expect 0 'policy 0-only' "$lab" replay buffers.trace --policy 0-only
expect 0 'policy single' "$lab" replay buffers.trace --policy single.conf
expect 2 'takes one policy' "$lab" replay buffers.trace --policy 0-only 800
expect 1 '"850" is no policy' "$lab" replay buffers.trace --policy 850
expect 2 'needs one trace' "$lab" replay
expect 1 'not a trace' "$lab" replay kernel.txt
expect 1 'cannot be read' "$lab" replay nowhere
expect 1 'no event dma_heap_stat' "$lab" import mine.tsv
expect 2 'needs one file' "$lab" import
echo ' x [0] 1.5: dma_heap_stat: inode=x len=4' >kernel.txt
expect 1 'kernel.txt:1: dma_heap_stat: no inode' "$lab" import kernel.txt
echo ' x [0] 1.5: dma_heap_stat: inode=1 len=0' >kernel.txt
expect 1 'kernel.txt:1: dma_heap_stat: no len' "$lab" import kernel.txt
echo ' dma_heap_stat: inode=1 len=4' >kernel.txt
expect 1 'kernel.txt:1: dma_heap_stat: no time' "$lab" import kernel.txt

"$lab" calibrate --output host.conf || fail "calibrate"
grep -q '^zero_page = [0-9]' host.conf || fail "calibrate wrote no zero_page"
sed 's/^size = 64M/size = 64M\nprofile = .\/host.conf/' small.conf >host-small.conf
expect 0 'profile ./host.conf' "$lab" run ./host-small.conf
expect 0 'profile host.conf' "$lab" run small.conf --profile host.conf
expect 0 'profile arm64-phone' "$lab" sweep ./host-small.conf --profile arm64-phone
expect 0 'profile ./host.conf' "$lab" replay buffers.trace --profile ./host.conf
expect 1 'moon: no such cost profile' "$lab" run small.conf --profile moon
expect 2 '--profile needs' "$lab" run small.conf --profile
[ "$("$lab" run small.conf --tsv --profile host.conf | grep -v '^#')" != \
	"$(grep -v '^#' mine.tsv)" ] || fail "--profile changes no time"
expect 2 'only --output' "$lab" calibrate fast
expect 1 'full/host.conf' "$lab" calibrate --output full/host.conf
if [ -w /dev/full ]; then
	got=0
	"$lab" run ./small.conf >/dev/full 2>err || got=$?
	[ "$got" = 1 ] || fail "a full disk gives exit status $got"
fi

# configs/capture.sh here and through another command, as through a device shell.
expect 2 'usage: capture.sh DIR' sh "$root/configs/capture.sh"
expect 1 'cannot be read there' sh "$root/configs/capture.sh" nothing false
if grep -q zone /proc/buddyinfo 2>/dev/null; then
	expect 0 'buddyinfo' sh "$root/configs/capture.sh" here
	expect 0 'buddyinfo' sh "$root/configs/capture.sh" there env
	expect 0 'policy 840-high' "$lab" run ./small.conf --node ./here
	expect 0 'policy 840-high' "$lab" run ./small.conf --node ./there
fi
# What a device shell that hides the exit status gives must not look like data.
cat >denied <<'END'
#!/bin/sh
echo "cat: $2: Permission denied 13"
END
chmod +x denied
expect 1 'cannot be read there' sh "$root/configs/capture.sh" nothing ./denied

[ "$bad" = 0 ] && echo "all of dmaheap-lab's verbs do what they say"
exit $bad
