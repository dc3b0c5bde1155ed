#!/bin/sh
# SPDX-License-Identifier: MIT
# configs/quickstart.sh on the programs of this build, whole and with a reader
# that leaves early: no daemon and no file may stay. Also what it,
# configs/capture.sh and `dmaheapd --check-config` say.
set -eu
root=${1:?usage: scripts.sh SOURCE_ROOT BUILD_ROOT}
build=${2:?usage: scripts.sh SOURCE_ROOT BUILD_ROOT}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM HUP
bad=0

fail() {
	echo "$*"
	bad=1
}

expect() { # STATUS TEXT COMMAND...
	want=$1
	text=$2
	shift 2
	got=0
	"$@" >"$tmp/out" 2>&1 || got=$?
	[ "$got" = "$want" ] || fail "$*: status $got instead of $want"
	grep -qF -- "$text" "$tmp/out" || {
		fail "$*: does not say \"$text\":"
		tail -n 5 "$tmp/out"
	}
}

# The script takes the directory above its own for the source: there, what it
# would build lies ready, and cmake has nothing to do.
mkdir -p "$tmp/build" "$tmp/bin" "$tmp/tmp"
ln -s "$root/configs" "$tmp/configs"
ln -s "$build" "$tmp/build/quickstart"
printf '#!/bin/sh\n' >"$tmp/bin/cmake"
chmod +x "$tmp/bin/cmake"
quickstart=$tmp/configs/quickstart.sh
TMPDIR=$tmp/tmp
PATH=$tmp/bin:$PATH
export TMPDIR PATH

echo "$tmp/tmp" >"$tmp/ours" # in a file: grep must not find itself
nothing_stays() { # AFTER-WHAT
	[ -z "$(ls "$tmp/tmp")" ] || fail "$1: files stay: $(ls "$tmp/tmp")"
	for pid in $(grep -lsFf "$tmp/ours" /proc/[0-9]*/cmdline | cut -d/ -f3); do
		fail "$1: a process stays: $(tr '\0' ' ' <"/proc/$pid/cmdline")"
		kill "$pid" || :
	done
}

expect 0 'every block came back' sh "$quickstart"
nothing_stays "the whole quickstart"
[ "$(grep -c 'every block came back' "$tmp/out")" = 2 ] ||
	fail "quickstart: not both states are shown"
for lines in 1 3 8; do
	sh "$quickstart" 2>/dev/null | head -n "$lines" >"$tmp/out" || :
	nothing_stays "quickstart.sh | head -n $lines"
done
expect 0 'usage: sh configs/quickstart.sh' sh "$quickstart" --help
expect 2 'takes no arguments' sh "$quickstart" --bogus
expect 2 'takes no arguments' sh "$quickstart" --help more
nothing_stays "quickstart's usage"

cd "$tmp/tmp"
expect 0 'ssh root@board' sh "$root/configs/capture.sh" --help
expect 2 '--bogus: there is no such option' sh "$root/configs/capture.sh" --bogus
expect 2 'usage: capture.sh DIR' sh "$root/configs/capture.sh"
nothing_stays "capture.sh's usage"

dmaheapd=$build/daemon/server/dmaheapd
file=$("$dmaheapd" --help | sed -n 's/.*configuration (default: \(.*\),$/\1/p')
if [ -r "$file" ]; then
	expect 0 "$file: ok" "$dmaheapd" --check-config
else
	expect 0 "$file: no such file: the built-in defaults are in force, ok" \
		"$dmaheapd" --check-config
fi
[ "$bad" = 0 ] && echo "the scripts leave nothing behind"
exit $bad
