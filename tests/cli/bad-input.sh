#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Bad input: one sentence that names it and says what to do, exit status 2, nothing on stdout.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh" "$1"

soft=(--system soft --size 2M --runs 1)

bad '-t floppy.*--list' -t floppy
bad '-t nothing.*--list' -t '*_bar' -t nothing
bad '--size 0: .*at least one page' --size 0
bad '--size 5000: not a multiple of the page.*multiple of [0-9]+K' --size 5000
bad '--size 2M: not a multiple of the page of memfd_hugetlb_1gb.*1G' --system soft --size 2M \
	-t '*_memfd_hugetlb_1gb_*'
bad '--size 512T does not fit: .* can be used; .*--sparse' --system soft --size 512T \
	-t '*_anonymous_demand'
bad '--size lots: .*256M' --size lots
bad '--size 99E: .*give less' --size 99E
bad '--runs 0: .*give 1' --runs 0
bad '--runs many: ' --runs many
bad '--seed -1: ' --seed -1
bad '--bar 9: ' --bar 9
bad '--system windows: .*soft, linux or all' --system windows
bad '--nonsense: .*--help' --nonsense
bad '-q: .*--help' -q
bad '--size needs a value' --size
bad 'anonymous: .*-t' anonymous
bad 'only one output' --json --csv

# Devices: of the soft system, and of the kernel.
bad '--device 0000:00:1f.7: .*no PCI device' "${soft[@]}" --device 0000:00:1f.7
bad '--device here: .*0000:00:03.0' "${soft[@]}" --device here
bad '--device ffff:ff:1f.7: .*no PCI device' --system linux --device ffff:ff:1f.7
for device in /sys/bus/pci/devices/*; do
	driver=$(readlink "$device/driver") || continue
	case $driver in *vfio*) continue ;; esac
	bad "--device ${device##*/}: .*bound to ${driver##*/}, not to vfio-pci: " --system linux \
		--device "${device##*/}"
	break
done
if ! ls -d /sys/bus/pci/drivers/vfio-pci/*:* >/dev/null 2>&1; then
	bad 'no device is bound to vfio-pci; dmamap help device' --system linux
	bad 'no device is bound to vfio-pci; dmamap help device' --system all
fi

# Files to compare with and to write to.
quick=("${soft[@]}" -t iommufd_anonymous_demand)
bad '--compare /nowhere/base.json: cannot be read' "${quick[@]}" --compare /nowhere/base.json
bad '--compare /: cannot be read' "${quick[@]}" --compare /
: >"$work/empty.json"
bad 'empty.json: no valid JSON' "${quick[@]}" --compare "$work/empty.json"
echo '{"schema":' >"$work/cut.json"
bad 'cut.json: no valid JSON' "${quick[@]}" --compare "$work/cut.json"
echo '{}' >"$work/other.json"
bad 'other.json: not written by dmamap bench --json' "${quick[@]}" --compare "$work/other.json"
echo '[1]' >"$work/array.json"
bad 'array.json: not written by' "${quick[@]}" --compare "$work/array.json"
echo '{"schema": {"name": "dmamap-bench", "version": 99}, "results": []}' >"$work/new.json"
bad 'new.json: schema version 99' "${quick[@]}" --compare "$work/new.json"
echo '{"schema": {"name": "dmamap-bench", "version": 1}, "results": [7]}' >"$work/odd.json"
bad 'odd.json: result 0 is no object' "${quick[@]}" --compare "$work/odd.json"
bad '/nowhere/run.json cannot be written' "${quick[@]}" --json=/nowhere/run.json

# A full disk.
if [ -c /dev/full ]; then
	for format in json csv tap; do
		run 2 "${quick[@]}" --$format=/dev/full
		err '/dev/full is incomplete \(No space left on device\)'
	done
	case_is "dmamap bench >/dev/full"
	got=0
	"$dmamap" bench "${quick[@]}" >/dev/full 2>"$work/err" || got=$?
	[ $got = 2 ] || fail "$what: exit status $got, not 2"
	err 'standard output cannot be written \(No space left on device\)'
fi

# The command itself.
for arguments in '' floppy 'help floppy'; do
	case_is "dmamap $arguments"
	got=0
	# shellcheck disable=SC2086
	"$dmamap" $arguments >"$work/out" 2>"$work/err" || got=$?
	[ $got = 2 ] || fail "$what: exit status $got, not 2"
	err '[a-z]'
done
for arguments in help 'help device' 'help bench' --version; do
	case_is "dmamap $arguments"
	# shellcheck disable=SC2086
	"$dmamap" $arguments >"$work/out" 2>"$work/err" || fail "dmamap $arguments failed"
	out '[a-z]'
done
finish
