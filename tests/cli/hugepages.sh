#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Huge pages that a bench reserves are given back: at the end, and after Ctrl-C. Exit 77: skipped.
pool=/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages
if ! [ -w $pool ]; then
	echo "ok 1 - huge pages # SKIP $pool cannot be written: run as root"
	exit 77
fi
exec 9<$pool
if ! flock -n 9; then
	echo "ok 1 - huge pages # SKIP another dmamap bench has them: wait for its end"
	exit 77
fi
exec 9<&-
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh" "$1"

before=$(cat $pool)

unchanged() {
	local now
	now=$(cat $pool)
	[ "$now" = "$before" ] || fail "$what: $now huge pages, $before before"
}

run 0 --system soft --size 4M --runs 1 -t 'vfio_type1_iommu_*_hugetlb_2mb_*'
if grep -q 'no 2 MiB huge pages' "$work/out"; then
	echo "ok 1 - huge pages # SKIP the kernel has no room for two of them"
	rm -rf "$work"
	exit 77
fi
lines 2 'hugetlb_2mb +demand +4M'
out ' 0/2/0 '
unchanged

# Wait until its pages are there, then interrupt: it prints what it has, and gives them back.
for signal in INT TERM HUP; do
	case_is "dmamap bench, SIG$signal"
	# Started in the background by a shell without job control, SIGINT would be ignored.
	set -m
	"$dmamap" bench --system soft --size 4M --runs 100000 -t 'vfio_type1_iommu_*_hugetlb_2mb_*' \
		>"$work/out" 2>"$work/err" </dev/null &
	pid=$!
	set +m
	for _ in $(seq 500); do
		[ "$(cat $pool)" = "$before" ] || break
		sleep 0.01
	done
	[ "$(cat $pool)" = "$before" ] && fail "$what: no huge pages were reserved"
	kill -$signal $pid
	got=0
	wait $pid || got=$?
	[ $got = $((128 + $(kill -l $signal))) ] || fail "$what: exit status $got"
	out "interrupted by SIG$signal"
	unchanged
done

# Two at a time do not take each other's pages: the second does without.
"$dmamap" bench --system soft --size 4M --runs 100000 -t 'vfio_type1_iommu_*_hugetlb_2mb_*' \
	>"$work/other" 2>&1 &
for _ in $(seq 500); do
	[ "$(cat $pool)" = "$before" ] || break
	sleep 0.01
done
run 0 --system soft --size 4M --runs 1 -t 'vfio_type1v2_iommu_*_hugetlb_2mb_*'
out 'skipped: another dmamap bench has the 2 MiB huge pages'
kill $!
wait $!
unchanged

# Pages that were there before stay.
if echo $((before + 3)) >$pool && [ "$(cat $pool)" = $((before + 3)) ]; then
	before=$((before + 3))
	run 0 --system soft --size 4M --runs 1 -t 'vfio_type1_iommu_*_hugetlb_2mb_*'
	unchanged
	run 0 --system soft --size 16M --runs 1 -t 'vfio_type1_iommu_*_hugetlb_2mb_*'
	unchanged
	before=$((before - 3))
	echo $before >$pool
fi
finish
