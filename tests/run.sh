#!/bin/sh
# SPDX-License-Identifier: MIT
# Installs what is missing, builds, and runs every test that needs no special
# machine; ends with "N passed, N failed, N skipped" and each skip's reason.
#
# usage: sh tests/run.sh [STAGE...]     stages: see "stages" below; default all
set -u
cd "$(dirname "$0")/.." || exit 1
. configs/packages.sh

stages="dev docker-root docker-user asan tsan release analyzer clang"
case ${1-} in
-h | --help)
	echo "usage: sh tests/run.sh [STAGE...]"
	echo "stages, all by default: $stages"
	exit 0
	;;
esac
[ $# -eq 0 ] || stages=$*

need_packages || exit 1

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
trap 'exit 130' INT TERM
: >"$out/results" # lines: STATUS<tab>stage<tab>name<tab>reason
jobs=$(nproc)

record() { # STATUS STAGE NAME [REASON]
	printf '%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "${4-}" >>"$out/results"
}

build() { # STAGE PRESET [CMAKE-ARGS...]
	stage=$1
	preset=$2
	shift 2
	echo "== $stage: building"
	if cmake --preset "$preset" -DDMAHEAP_TESTS=ON "$@" >"$out/log" 2>&1 &&
		cmake --build --preset "$preset" >"$out/log" 2>&1; then
		record passed "$stage" build
		return 0
	fi
	tail -n 40 "$out/log"
	record failed "$stage" build
	return 1
}

# ctest's JUnit file as lines of results.
collect() { # STAGE JUNIT-FILE
	awk -v stage="$1" '
	function text(s) {
		gsub(/&lt;/, "<", s); gsub(/&gt;/, ">", s)
		gsub(/&quot;/, "\"", s); gsub(/&amp;/, "\\&", s)
		return s
	}
	/<testcase / {
		name = $0; sub(/.*<testcase name="/, "", name); sub(/".*/, "", name)
		status = $0; sub(/.* status="/, "", status); sub(/".*/, "", status)
		reason = ""
	}
	/skipped: / && status != "run" {
		reason = $0; sub(/.*skipped: /, "", reason); sub(/<\/system-out>.*/, "", reason)
	}
	/<\/testcase>/ {
		s = status == "run" ? "passed" : status == "fail" ? "failed" : "skipped"
		printf "%s\t%s\t%s\t%s\n", s, stage, text(name), text(reason)
	}' "$2" >>"$out/results"
}

# Each runs ctest in build/PRESET; the words before "--" run in front of it.
run_ctest() { # STAGE PRESET LABELS [RUNNER... --] [CTEST-ARGS...]
	stage=$1
	preset=$2
	labels=$3
	shift 3
	runner=
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		runner="$runner $1"
		shift
	done
	[ $# -eq 0 ] || shift
	echo "== $stage: testing"
	mkdir -p "build/$preset/Testing/Temporary"
	chmod -R a+rwX "build/$preset/Testing" 2>/dev/null
	rm -f "$out/junit.xml"
	junit=$out/junit.xml
	chmod 1777 "$out" # an ordinary user writes its file here
	# shellcheck disable=SC2086
	$runner ctest --test-dir "build/$preset" -j "$jobs" -L "$labels" \
		-LE "stress|bench|peers$not_again" --no-tests=error --timeout 240 \
		--output-on-failure --output-junit "$junit" "$@" \
		>"$out/log" 2>&1
	status=$?
	if [ ! -s "$junit" ]; then
		tail -n 40 "$out/log"
		record failed "$stage" ctest
		return
	fi
	before=$(grep -c '^failed' "$out/results")
	collect "$stage" "$junit"
	after=$(grep -c '^failed' "$out/results")
	[ $status -eq 0 ] || sed -n '/^The following tests/,$!p' "$out/log" |
		grep -vE ' Passed +[0-9.]+ sec$|^ *Start +[0-9]+: ' | tail -n 150
	# A test program that ctest could not even start fails no test case.
	[ $status -eq 0 ] || [ "$after" -gt "$before" ] || record failed "$stage" ctest
	# What is marked required may not skip.
	ctest --test-dir "build/$preset" -N -L required 2>/dev/null |
		sed -n 's/^ *Test *#[0-9]*: //p' >"$out/required"
	while read -r name; do
		grep -q "^skipped	$stage	$name	" "$out/results" &&
			record failed "$stage" "$name" "required, and it skipped"
	done <"$out/required"
}

# Does a program built so run on this host at all? Prints the reason if not.
probe_sanitizer() { # FLAGS
	printf 'int main(void) { return 0; }\n' >"$out/probe.c"
	gcc "-fsanitize=$1" -o "$out/probe" "$out/probe.c" 2>"$out/log" ||
		{ echo "gcc cannot link -fsanitize=$1"; return 1; }
	"$out/probe" >"$out/log" 2>&1 ||
		{ echo "a program with -fsanitize=$1 does not run here: $(head -n 1 "$out/log")"; return 1; }
}

not_again='|once' # of the label "once": in the first stage only

stage_dev() {
	build dev dev || return
	not_again=
	run_ctest dev dev 'unit|integration|lint|fuzz'
	not_again='|once'
}

# The same programs in surroundings such as a container engine makes.
docker_as() { # STAGE LIKE-DOCKER-ARGS...
	stage=$1
	shift
	like=build/dev/tests/support/like-docker
	[ -x $like ] || { build "$stage" dev || return; }
	if ! reason=$($like "$@" true 2>&1); then
		record skipped "$stage" "$stage" "like-docker cannot run here: $reason"
		return
	fi
	run_ctest "$stage" dev 'unit|integration' "$like" "$@" --
}

stage_docker_root() {
	if [ "$(id -u)" -ne 0 ]; then
		record skipped docker-root docker-root "needs root"
		return
	fi
	docker_as docker-root
}

stage_docker_user() {
	if [ "$(id -u)" -eq 0 ]; then
		docker_as docker-user --uid 65534 --io-uring enosys
	else
		docker_as docker-user --io-uring enosys
	fi
}

stage_asan() {
	reason=$(probe_sanitizer address,undefined) || {
		record skipped asan asan "$reason"
		return
	}
	build asan asan || return
	options=
	if ! reason=$(probe_sanitizer leak); then
		record skipped asan leaks "$reason"
		options=detect_leaks=0
	fi
	ASAN_OPTIONS=$options run_ctest asan asan 'unit|integration|fuzz'
}

stage_tsan() {
	reason=$(probe_sanitizer thread) || {
		record skipped tsan tsan "$reason"
		return
	}
	build tsan tsan && run_ctest tsan tsan 'unit|integration'
}

stage_release() {
	build release release && run_ctest release release 'unit'
}

# Builds only: a warning is an error.
build_only() { # STAGE CMAKE-ARGS...
	stage=$1
	shift
	echo "== $stage: building"
	if cmake -B "build/$stage" -G Ninja -DDMAHEAP_WERROR=ON "$@" >"$out/log" 2>&1 &&
		cmake --build "build/$stage" -- -k 0 >"$out/log" 2>&1; then
		record passed "$stage" build
	else
		grep -E "(error|warning): " "$out/log" | sort -u | head -n 60
		tail -n 3 "$out/log"
		record failed "$stage" build
	fi
}

stage_analyzer() {
	build_only analyzer -DDMAHEAP_TESTS=OFF -DCMAKE_BUILD_TYPE=Debug \
		-DCMAKE_C_COMPILER=gcc -DCMAKE_C_FLAGS=-fanalyzer
}

stage_clang() {
	if ! command -v clang >/dev/null; then
		record skipped clang build "clang is not installed"
		return
	fi
	build_only clang -DCMAKE_C_COMPILER=clang -DCMAKE_BUILD_TYPE=Release \
		-DCMAKE_C_FLAGS=-DNDEBUG
}

for s in $stages; do
	case $s in
	dev | asan | tsan | release | analyzer | clang) "stage_$s" ;;
	docker-root) stage_docker_root ;;
	docker-user) stage_docker_user ;;
	*)
		echo "tests/run.sh: there is no stage \"$s\"" >&2
		exit 2
		;;
	esac
done

echo
sed -n 's/^skipped\t\([^\t]*\)\t\([^\t]*\)\t\(.*\)$/skipped: \1 \2: \3/p' "$out/results"
sed -n 's/^failed\t\([^\t]*\)\t\([^\t]*\)\t\(.*\)$/FAILED: \1 \2 \3/p' "$out/results"
n_passed=$(grep -c '^passed' "$out/results")
n_failed=$(grep -c '^failed' "$out/results")
n_skipped=$(grep -c '^skipped' "$out/results")
echo "$n_passed passed, $n_failed failed, $n_skipped skipped"
[ "$n_failed" -eq 0 ] && [ "$n_passed" -gt 0 ]
