#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks that each file includes only what its layer may see (the table in
# docs/architecture.md). Prints every include that points the wrong way.
set -eu
root=${1:?usage: layers.sh SOURCE_ROOT}
cd "$root"

# layer: the prefixes of quoted includes that it may use, besides its own.
allowed() {
	case $1 in
	daemon/base) echo base ;;
	daemon/conf) echo base conf ;;
	daemon/mm) echo base mm ;;
	daemon/heap) echo base mm heap ;;
	daemon/backing) echo base backing ;;
	daemon/ipc) echo base ipc ;;
	daemon/server) echo base conf mm heap backing ipc server ;;
	daemon/lab) echo base conf mm heap backing lab ;;
	client/lib) echo lib ;;
	client/ctl) echo ctl ;;
	client/run) echo run ;;
	esac
}

# The wire and the statistics segment are for those who speak them; the lab
# measures a live daemon as any client would, through the library.
may_speak() {
	case $1 in
	daemon/ipc | daemon/server | daemon/lab | client/*) return 0 ;;
	esac
	return 1
}

bad=0
n=0
for layer in daemon/base daemon/conf daemon/mm daemon/heap daemon/backing \
	daemon/ipc daemon/server daemon/lab client/lib client/ctl client/run; do
	ok=" $(allowed "$layer") "
	for file in "$layer"/*.[ch]; do
		[ -e "$file" ] || continue
		n=$((n + 1))
		for inc in $(sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*"\([^"]*\)".*/\1/p' "$file"); do
			case $inc in
			*/*) prefix=${inc%%/*} ;;
			*) prefix= ;;
			esac
			case $ok in
			*" $prefix "*) ;;
			*)
				echo "$file: \"$inc\" is not for this layer (allowed:$ok)"
				bad=1
				;;
			esac
		done
		if ! may_speak "$layer" && grep -qE '^[[:space:]]*#[[:space:]]*include[[:space:]]*<dmaheap/' "$file"; then
			echo "$file: <dmaheap/...> is not for this layer"
			bad=1
		fi
		case $file in
		daemon/ipc/loop_uring.c) ;;
		*)
			if grep -qE '^[[:space:]]*#[[:space:]]*include[[:space:]]*<liburing' "$file"; then
				echo "$file: only daemon/ipc/loop_uring.c includes <liburing.h>"
				bad=1
			fi
			;;
		esac
		# The model takes time, randomness and memory by parameter.
		case $layer in
		daemon/mm | daemon/heap)
			if grep -nE '#[[:space:]]*include[[:space:]]*<(unistd|fcntl|time|sys/[a-z]+|pthread)\.h>' "$file"; then
				echo "$file: this layer makes no system call and reads no clock"
				bad=1
			fi
			;;
		esac
	done
done
[ "$n" -gt 0 ] || { echo "no source file found below $root"; exit 1; }
echo "$n files looked at"
exit $bad
