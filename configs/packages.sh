# SPDX-License-Identifier: MIT
# Sourced by configs/quickstart.sh and tests/run.sh: makes sure that what the
# build needs is installed.

# Debian 12's names. g++ compiles the public headers as C++ in a test.
DMAHEAP_PACKAGES="gcc g++ cmake ninja-build pkg-config libc6-dev linux-libc-dev
liburing-dev libcap-dev libcunit1-dev libinih-dev libjansson-dev
libseccomp-dev libncurses-dev systemtap-sdt-dev"

missing_packages() {
	for package in $DMAHEAP_PACKAGES; do
		dpkg-query -W -f '${Status}\n' "$package" 2>/dev/null |
			grep -q '^install ok installed$' || printf '%s ' "$package"
	done
}

# Installs what is missing, or says what an administrator has to install and
# ends the script with status 1.
need_packages() {
	if ! command -v dpkg-query >/dev/null; then
		echo "This is not a Debian system: the build needs the counterparts of" $DMAHEAP_PACKAGES >&2
		return 0
	fi
	missing=$(missing_packages)
	[ -n "$missing" ] || return 0
	if [ "$(id -u)" -eq 0 ]; then
		as_root=
	elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
		as_root='sudo -n'
	elif command -v sudo >/dev/null && [ -t 0 ]; then
		as_root=sudo # asks for the password
	else
		echo "These Debian packages are missing, and only an administrator can install them: $missing" >&2
		echo "Ask one to run: apt-get install $missing" >&2
		exit 1
	fi
	echo "Installing $missing"
	# sudo drops the environment, so the variable goes behind it.
	$as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq
	# shellcheck disable=SC2086
	$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
		--no-install-recommends $missing >/dev/null
}
