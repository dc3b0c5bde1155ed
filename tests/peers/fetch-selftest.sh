#!/bin/sh
# SPDX-License-Identifier: MIT
# Gets the kernel's own dma-buf heap selftest from Debian's source package and
# builds it as its Makefile does: statically. Nothing is installed.
#
# usage: fetch-selftest.sh DIRECTORY     140 MB are downloaded, and removed again
# Leaves DIRECTORY/dmabuf-heap. Exit status 77: not to be had here.
set -eu
dir=${1:?usage: fetch-selftest.sh DIRECTORY}
package=linux-source-6.1
tests=linux-source-6.1/tools/testing/selftests
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
[ ! -x "$dir/dmabuf-heap" ] || exit 0

command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || {
	echo "skipped: needs apt-get and dpkg-deb"
	exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get download "$package" >apt.log 2>&1 || {
	tail -n 3 apt.log
	echo "skipped: apt-get download $package failed"
	exit 77
}
dpkg-deb --fsys-tarfile "$package"_*.deb |
	tar -xO ./usr/src/linux-source-6.1.tar.xz |
	xz -dc |
	tar -x "$tests/dmabuf-heaps" "$tests/lib.mk" "$tests/kselftest.h" \
		"$tests/kselftest_harness.h" linux-source-6.1/include/uapi/drm
# What "make headers" would put there; linux-libc-dev has all but these.
headers=linux-source-6.1/usr/include/drm
mkdir -p "$headers"
for file in drm.h drm_mode.h; do
	sed 's/ __user / /' "linux-source-6.1/include/uapi/drm/$file" \
		>"$headers/$file"
done
make -C "$tests/dmabuf-heaps" >make.log 2>&1 || {
	cat make.log
	exit 1
}
cp "$tests/dmabuf-heaps/dmabuf-heap" "$dir/dmabuf-heap"
echo "built $dir/dmabuf-heap"
