#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs into a directory of its own and builds a user's program against that:
# in C and C++ through pkg-config, shared and static, and through the CMake
# package. Each must run and find no daemon at a path where none is.
set -eu
build=${1:?usage: install.sh BUILD_ROOT CC [CXX]}
cc=${2:?usage: install.sh BUILD_ROOT CC [CXX]}
cxx=${3-}
if ! [ -w "$build" ]; then # cmake keeps a list of what it installed there
	echo "skipped: the build directory belongs to another user"
	exit 77
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM HUP

DESTDIR=$tmp/root cmake --install "$build" >"$tmp/log" 2>&1 || {
	tail -n 5 "$tmp/log"
	exit 1
}
cat >"$tmp/user.c" <<'EOF'
#include <errno.h>

#include <dmaheap/dmaheap.h>

int main(void)
{
	struct dmaheap *dh;

	return dmaheap_connect(&dh, "/nowhere/socket") == -ENOENT ? 0 : 1;
}
EOF
cp "$tmp/user.c" "$tmp/user.cc"

pc=$(find "$tmp/root" -name libdmaheap.pc)
lib=$(dirname "$(dirname "$pc")")
usr=$(dirname "$(dirname "$(find "$tmp/root" -path '*/bin/dmaheapctl')")")
PKG_CONFIG_PATH=$(dirname "$pc")
export PKG_CONFIG_PATH
flags=$(pkg-config --define-prefix --cflags --libs libdmaheap)
run() {
	LD_LIBRARY_PATH=$lib "$tmp/$1" || {
		echo "$1: does not run as it should"
		exit 1
	}
}

# shellcheck disable=SC2086 # flags are words
"$cc" -std=c11 -Wall -Wextra -Werror -o "$tmp/shared" "$tmp/user.c" $flags
run shared
# shellcheck disable=SC2086
"$cc" -std=c11 -o "$tmp/static" "$tmp/user.c" \
	$(pkg-config --define-prefix --cflags libdmaheap) \
	"$lib/libdmaheap.a" -pthread
run static
if [ -n "$cxx" ]; then
	# shellcheck disable=SC2086
	"$cxx" -std=c++17 -Wall -Wextra -Werror -o "$tmp/cxx" "$tmp/user.cc" \
		$flags
	run cxx
fi

cat >"$tmp/CMakeLists.txt" <<'EOF'
cmake_minimum_required(VERSION 3.25)
project(user C)
find_package(dmaheap 0.1 REQUIRED)
add_executable(with_cmake user.c)
target_link_libraries(with_cmake dmaheap::dmaheap)
EOF
cmake -S "$tmp" -B "$tmp" -DCMAKE_PREFIX_PATH="$usr" \
	-DCMAKE_C_COMPILER="$cc" >"$tmp/log" 2>&1 &&
	cmake --build "$tmp" >>"$tmp/log" 2>&1 || {
	tail -n 20 "$tmp/log"
	exit 1
}
run with_cmake

for page in dmaheapctl.1 libdmaheap.3 dmaheapd.8 dmaheapd.conf.5; do
	[ -n "$(find "$tmp/root" -name "$page")" ] || {
		echo "$page is not installed"
		exit 1
	}
done
LD_LIBRARY_PATH=$lib "$usr/bin/dmaheapctl" --version
