# SPDX-License-Identifier: MIT
# What the tests of the program share: run it, and check what came of it.
# shellcheck shell=bash
set -u

dmamap=$1
work=$(mktemp -d)
command=bench
number=0
failed=0
what=
broken=
export LC_ALL=C
unset COLUMNS NO_COLOR

# case_is NAME: what the checks from here on belong to. Prints the verdict on the one before.
case_is() {
	if [ -n "$what" ]; then
		number=$((number + 1))
		echo "${broken:+not }ok $number - ${what//#/}"
	fi
	what=$1
	broken=
}

fail() {
	broken=1
	failed=1
	echo "# $*"
	sed 's/^/#     stdout: /' "$work/out" | head -n 40
	sed 's/^/#     stderr: /' "$work/err" | head -n 10
}

# run STATUS ARGUMENT...: dmamap $command with these must exit with STATUS.
run() {
	local want=$1 got=0
	shift
	case_is "dmamap $command $*"
	"$dmamap" $command "$@" >"$work/out" 2>"$work/err" </dev/null || got=$?
	[ "$got" = "$want" ] || fail "$what: exit status $got, not $want"
}

# out PATTERN, err PATTERN: a line of the last run's output matches (grep -E).
out() {
	grep -Eq -- "$1" "$work/out" || fail "$what: no line of stdout matches $1"
}

err() {
	grep -Eq -- "$1" "$work/err" || fail "$what: no line of stderr matches $1"
}

# bad PATTERN ARGUMENT...: refused with exit 2, one sentence that matches, nothing on stdout.
bad() {
	local pattern=$1
	shift
	run 2 "$@"
	err "$pattern"
	[ "$(wc -l <"$work/err")" = 1 ] || fail "$what: not one sentence"
	[ -s "$work/out" ] && fail "$what: something on stdout"
}

# lines N PATTERN: so many lines of stdout match.
lines() {
	local n
	n=$(grep -Ec -- "$2" "$work/out")
	[ "$n" = "$1" ] || fail "$what: $n lines match $2, not $1"
}

finish() {
	case_is ''
	echo "1..$number"
	rm -rf "$work"
	exit "$failed"
}
