#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# dmamap bench as its users run it: every output, on the soft system.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh" "$1"

quick=(--system soft --size 2M --runs 1)

# Names.
run 0 --list
lines 102 '^(vfio|iommufd)_'
run 0 --list -t 'vfio_type1v2_iommu_bar*'
lines 3 '^vfio_type1v2_iommu_bar'

# The table: all modes, all kinds of memory, both prefaults, each run or with a reason.
run 0 "${quick[@]}" --json="$work/run.json" --csv="$work/run.csv" --tap="$work/run.tap"
for mode in vfio_type1_iommu vfio_type1v2_iommu iommufd_compat_type1 iommufd_compat_type1v2 \
	iommufd iommufd_file; do
	lines 1 "^$mode\$"
done
for memory in anonymous anonymous_thp anonymous_hugetlb_{2mb,1gb} memfd memfd_hugetlb_{2mb,1gb} \
	bar bar_misaligned_{2mb,4kb}; do
	lines 6 "^  $memory +(demand|leaf|refused|skipped)"
done
out '^soft: times are '
out 'anonymous +demand +2M +[0-9.]+ [num]?s +[0-9.]+ [num]?s'
lines 6 'bar +(leaf|refused EFAULT|skipped: IOMMU_IOAS_MAP_FILE takes a memfd)'
lines 3 'bar +refused EFAULT'
out '[0-9]+ run, [0-9]+ skipped, 9 refused as they must be, 0 failed'
[ -s "$work/err" ] && fail "progress is shown without a terminal"
lines 0 'counted'

# A row in the table is a result in every other output: 102, and one more for the second stride.
rows=$((102 + 2 * 3))
[ "$(wc -l <"$work/run.csv")" = $((rows + 1)) ] || fail "csv: not a line for each result"
grep -q "^1\.\.$rows\$" "$work/run.tap" || fail "tap: not a test for each result"
[ "$(grep -Ec '^(not )?ok ' "$work/run.tap")" = "$rows" ] || fail "tap: the plan is not kept"
head -n 1 "$work/run.tap" | grep -q '^TAP version 13$' || fail "tap: no version"
if command -v python3 >/dev/null; then
	python3 -c '
import csv, json, sys
run = json.load(open(sys.argv[1]))
rows = list(csv.DictReader(open(sys.argv[2])))
assert len(run["results"]) == len(rows) == int(sys.argv[3])
for result, row in zip(run["results"], rows):
    assert None not in row and None not in row.values(), row
    assert result["name"] == row["name"] and result["status"] == row["status"]
    assert result["note"] and row["note"]
    if result["status"] == "run":
        for name, phase in result["phases"].items():
            assert len(phase["samples_ns"]) == 1
            assert str(phase["median_ns"]) == row[name + "_median_ns"]
    else:
        assert result["reason"], result
' "$work/run.json" "$work/run.csv" "$rows" 2>"$work/err" || fail "json and csv do not agree"
fi

# Look-ups by congruence, with both strides; always 32 leaves of 1 GiB.
run 0 --system soft --runs 1 -t 'vfio_type1v2_iommu_bar*' --csv
csv_counts() {
	if command -v python3 >/dev/null; then
		python3 -c '
import csv, sys
for row in csv.DictReader(open(sys.argv[1])):
    print(row["name"], row["pfnmap_stride"], row["lookups"], row["leaves_1g"])' "$work/out"
	fi
}
counts=$(csv_counts)
want='vfio_type1v2_iommu_bar leaf 32 32
vfio_type1v2_iommu_bar page 8388608 32
vfio_type1v2_iommu_bar_misaligned_2mb leaf 16384 32
vfio_type1v2_iommu_bar_misaligned_2mb page 8388608 32
vfio_type1v2_iommu_bar_misaligned_4kb leaf 8388608 32
vfio_type1v2_iommu_bar_misaligned_4kb page 8388608 32'
[ -z "$counts" ] || [ "$counts" = "$want" ] || fail "look-ups: $counts"
run 0 --system soft --runs 1 -t 'vfio_type1v2_iommu_bar*' --stride leaf
out 'bar +leaf +32G .* 32 +32/0/0'
out 'the VA is 4 KiB off the BAR.s address modulo 1 GiB: every page is looked up alone'
out 'the VA is 2 MiB off the BAR.s address modulo 1 GiB: look-ups step by 2 MiB'

# Memory that is not there: declared, on every line of it, in every mode. All of the machine's
# memory is always too much. iommufd_compat_type1 has leaves of the base page only, as in Linux.
size=$(awk '/^MemTotal:/ { print int($2 / 1048576) + 1 }' /proc/meminfo)
sparse=(--system soft --sparse --size "${size}G" --runs 1)
run 0 "${sparse[@]}" -t '*memfd_hugetlb_1gb*' --verbose
lines 12 '^soft .*_memfd_hugetlb_1gb_(demand|populate)  \[declared\]$'
lines 12 'run 1: mmap .*declared'
lines 12 "mapped host 0x[0-9a-f]+, size 0x[0-9a-f]+ \($size GiB\), iova 0x[0-9a-f]+, in .*declared"
lines 10 "leaves: $size of 1 GiB; table.*declared"
lines 2 'leaves: [0-9,]+ of [0-9]+ KiB; table.*declared'
lines 0 '^  .*[^]]$'
run 0 "${sparse[@]}" -t 'iommufd_memfd_hugetlb_1gb*'
lines 2 ' declared$'
run 2 --system soft --size "${size}G" -t 'iommufd_memfd_hugetlb_1gb*'
err "--size ${size}G does not fit: .*--sparse"

# Comparing a run with itself finds nothing; with one that was faster, it does.
run 0 "${quick[@]}" --runs 3 -t 'vfio_type1_iommu_anonymous_*' --json="$work/base.json"
run 0 "${quick[@]}" --runs 3 -t 'vfio_type1_iommu_anonymous_*' --compare "$work/base.json" \
	--threshold 100000
out '^soft vfio_type1_iommu_anonymous_demand +[0-9.]+'
out '[0-9]+ compared, 0 phases slower by more than 100000 %'
sed '/"samples_ns"/,/]/s/[0-9][0-9]*/1/' "$work/base.json" >"$work/fast.json"
run 1 "${quick[@]}" --runs 3 -t 'vfio_type1_iommu_anonymous_*' --compare "$work/fast.json"
out '[0-9.]+ !'

# Soft counts by itself, in every run: there is nothing to leave out.
run 0 "${quick[@]}" -t 'vfio_type1_iommu_anonymous_demand' --no-count
out 'anonymous +demand +2M .* 1 +[0-9]+/'

# The same seed gives the same rows; colour only where it is wanted.
run 0 "${quick[@]}" -t '*_bar' --seed 7 --color always
out $'\033'
run 0 "${quick[@]}" -t '*_bar' --seed 7
grep -q $'\033' "$work/out" && fail "colour without a terminal"

run 0 --help
out '--sparse'
finish
