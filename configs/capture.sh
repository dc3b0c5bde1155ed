#!/bin/sh
# SPDX-License-Identifier: MIT
# Collects the state of a machine's memory into a directory that dmaheapd
# ([node] snapshot = DIR) and dmaheap-lab (--node DIR) read.
#
#   sh capture.sh DIR                  this machine
#   sh capture.sh DIR adb shell        a phone; any command that runs another
#   sh capture.sh DIR ssh root@board   there will do
#
# /proc/buddyinfo is needed; /proc/pagetypeinfo is for root only, and without
# it the free blocks' migrate types are guessed.
set -eu

usage="usage: capture.sh DIR [COMMAND THAT RUNS A COMMAND THERE...]"
case ${1-} in
-h | --help)
	sed -n '3,11s/^# \{0,1\}//p' "$0"
	exit 0
	;;
-*)
	echo "capture.sh: $1: there is no such option; a directory is named as ./$1" >&2
	echo "$usage" >&2
	exit 2
	;;
'')
	echo "$usage" >&2
	exit 2
	;;
esac
dir=$1
shift
mkdir -p "$dir"

# A device shell may end lines with CR and may not pass on an exit status: what
# counts is what came.
fetch() {
	name=$1
	shift
	"$@" cat "/proc/$name" </dev/null 2>/dev/null | tr -d '\r' >"$dir/$name" ||
		true
	if ! grep -q '[0-9]' "$dir/$name" ||
		grep -qi 'permission denied\|no such file' "$dir/$name"; then
		rm -f "$dir/$name"
		return 1
	fi
}

# First the one that changes fastest.
fetch buddyinfo "$@" || {
	echo "capture.sh: /proc/buddyinfo cannot be read there" >&2
	exit 1
}
for name in pagetypeinfo zoneinfo meminfo vmstat; do
	fetch "$name" "$@" || echo "capture.sh: no /proc/$name there: left out" >&2
done
echo "$dir: $(cd "$dir" && echo *)"
