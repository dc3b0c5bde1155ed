#!/bin/sh
# SPDX-License-Identifier: MIT
# What bash offers after "dmaheapctl bu", "dmaheapctl alloc --c", and so on.
set -eu
root=${1:?usage: completion.sh SOURCE_ROOT CTL_DIR}
PATH=${2:?usage: completion.sh SOURCE_ROOT CTL_DIR}:$PATH
export PATH
if ! command -v bash >/dev/null; then
	echo "skipped: bash is not installed"
	exit 77
fi
bad=0
offers() { # WANTED WORD...
	wanted=$1
	shift
	got=$(bash -c '. "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
		_dmaheapctl; echo "${COMPREPLY[*]}"' \
		"$root/client/ctl/dmaheapctl.bash" "$@")
	[ "$got" = "$wanted" ] || {
		echo "after \"$*\": \"$got\", not \"$wanted\""
		bad=1
	}
}
offers "buffers buddyinfo" dmaheapctl bu
offers "--count" dmaheapctl alloc --c
offers "--json" dmaheapctl stats --j
offers "" dmaheapctl nothing --
exit $bad
