#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs into a prefix of its own, and uses what lies there as it is: runs the
# programs, and builds a user's program in C and C++ through pkg-config, shared
# and static, and through the CMake package. Each must run and find no daemon at
# a path where none is. Then moves the prefix and does it again.
set -eu
build=${1:?usage: install.sh BUILD_ROOT CC [CXX]}
cc=${2:?usage: install.sh BUILD_ROOT CC [CXX]}
cxx=${3-}
source=$(cd "$(dirname "$0")/../.." && pwd)
if ! [ -w "$build" ]; then # cmake keeps a list of what it installed there
	echo "skipped: the build directory belongs to another user"
	exit 77
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM HUP

cat >"$tmp/user.c" <<'EOT'
#include <errno.h>

#include <dmaheap/dmaheap.h>

int main(void)
{
	struct dmaheap *dh;

	return dmaheap_connect(&dh, "/nowhere/socket") == -ENOENT ? 0 : 1;
}
EOT
cp "$tmp/user.c" "$tmp/user.cc"
cat >"$tmp/CMakeLists.txt" <<'EOT'
cmake_minimum_required(VERSION 3.25)
project(user C)
find_package(dmaheap 0.1 REQUIRED)
add_executable(with_cmake user.c)
target_link_libraries(with_cmake dmaheap::dmaheap)
EOT

fail() {
	echo "$*"
	exit 1
}

# They find the library by themselves.
programs_run() { # PREFIX
	for program in bin/dmaheapctl bin/dmaheap-run bin/dmaheap-lab sbin/dmaheapd; do
		"$1/$program" --version ||
			fail "$program: does not start where it is installed"
	done
}

run() { # LIBRARY-DIRECTORY PROGRAM
	LD_LIBRARY_PATH=$1 "$tmp/$2" || fail "$2: does not run as it should"
}

with_pkg_config() { # LIBRARY-DIRECTORY
	PKG_CONFIG_PATH=$1/pkgconfig
	export PKG_CONFIG_PATH
	flags=$(pkg-config --cflags --libs libdmaheap)
	# shellcheck disable=SC2086 # flags are words
	"$cc" -std=c11 -Wall -Wextra -Werror -o "$tmp/shared" "$tmp/user.c" $flags
	run "$1" shared
	# shellcheck disable=SC2046
	"$cc" -std=c11 -o "$tmp/static" "$tmp/user.c" \
		$(pkg-config --cflags libdmaheap) "$1/libdmaheap.a" -pthread
	run "$1" static
	[ -n "$cxx" ] || return 0
	# shellcheck disable=SC2086
	"$cxx" -std=c++17 -Wall -Wextra -Werror -o "$tmp/cxx" "$tmp/user.cc" $flags
	run "$1" cxx
}

with_cmake() { # PREFIX LIBRARY-DIRECTORY
	rm -rf "$tmp/build"
	cmake -S "$tmp" -B "$tmp/build" -DCMAKE_PREFIX_PATH="$1" \
		-DCMAKE_C_COMPILER="$cc" >"$tmp/log" 2>&1 &&
		cmake --build "$tmp/build" >>"$tmp/log" 2>&1 || {
		tail -n 20 "$tmp/log"
		exit 1
	}
	run "$2" build/with_cmake
}

check() { # PREFIX
	lib=$(dirname "$(find "$1" -name libdmaheap.a)")
	programs_run "$1"
	with_pkg_config "$lib"
	with_cmake "$1" "$lib"
}

cmake --install "$build" --prefix "$tmp/first" >"$tmp/log" 2>&1 || {
	tail -n 5 "$tmp/log"
	exit 1
}
for file in dmaheapctl.1 libdmaheap.3 dmaheapd.8 dmaheapd.conf.5 dmaheapd.conf; do
	[ -n "$(find "$tmp/first" -name "$file")" ] ||
		fail "$file is not installed below the prefix"
done
check "$tmp/first"

# As README.md shows it, with what it then uses.
readme() {
	awk '/^<!-- install -->$/ { want = 1; next }
	     want && /^```sh$/ { on = 1; want = 0; n++; next }
	     /^```/ { on = 0 }
	     on { print }
	     END { exit n != 1 }' "$source/README.md" |
		sed "s|build/quickstart|$build|"
	cat <<-'EOT'
		[ "$(command -v dmaheapctl)" = "$HOME/dmaheap/bin/dmaheapctl" ]
		[ "$(command -v dmaheapd)" = "$HOME/dmaheap/sbin/dmaheapd" ]
		dmaheap-run --version
		cc=$1
		"$cc" -o "$HOME/app" "$HOME/user.c" $(pkg-config --cflags --libs libdmaheap)
		"$HOME/app"
	EOT
}
readme >"$tmp/readme" || fail "README.md: no block to install"
HOME=$tmp sh -eu "$tmp/readme" "$cc" >"$tmp/log" 2>&1 || {
	tail -n 5 "$tmp/log"
	fail "README.md: its way to install fails"
}

mv "$tmp/first" "$tmp/second"
check "$tmp/second"
