#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# dmamap machine: what it shows, that it reads what it writes, and what it says of bad input.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh" "$1"
# shellcheck disable=SC2034 # run reads it
command=machine

run 0
out '^the soft system, as Linux 7\.3, pages of 4 KiB$'
out '^0 +intel +48 bits +4K/2M/1G +yes +no +0xfee00000-0xfeefffff \(MSI window of intel-iommu\)$'
out '^0000:00:03.0 +1b36:0005 class 00ff00, behind IOMMU 0, /dev/vfio/7, /dev/vfio/devices/vfio0$'
out '^ +BAR 2 +32 GiB at 0x380000000000$'

run 0 --machine as-kernel=6.12,memlock=unlimited,huge-pages=off,unsafe-interrupts=off,no-device
out 'as Linux 6\.12'
out 'look-ups of a BAR +page by page'
out 'locked memory +no limit'
out 'type1 +up to 65,535 mappings, pinned page by page'
out 'interrupts +not isolated, so that devices are refused'
out 'no device on vfio-pci'

# Every machine of the lab has a name here, and each comes back from its text.
for machine in "$(dirname "$0")"/../../lab/machines/*; do
	name=${machine##*/}
	# Without an IOMMU: for VDUSE alone.
	case $name in virt | pseries) continue ;; esac
	for form in line file; do
		run 0 --machine "machine=$name" --print=$form
		cp "$work/out" "$work/machine"
		run 0 --machine "@$work/machine" --print=$form
		cmp -s "$work/out" "$work/machine" || fail "$name: not the same again"
	done
	run 0 --machine "$(tr -d '\t' <"$work/machine" | paste -sd,)" --print
	cmp -s "$work/out" "$work/machine" || fail "$name: not the same on one line"
done

run 0 --machine 'aperture=39 # bits' --json
out '"aperture_bits": 39,'
out '"name": "dmamap-machine"'
out '"first": "0xfee00000"'
if command -v python3 >/dev/null; then
	python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$work/out" ||
		fail "$what: no JSON"
fi

# The documentation: its example can be read, and no key is left out.
docs=$(dirname "$0")/../../docs
awk '/^```$/ { inside = !inside; next } inside && /^# Two IOMMUs/ { ours = 1 } inside && ours
	!inside { ours = 0 }' "$docs/machine-format.md" >"$work/example"
run 0 --machine "@$work/example"
lines 2 '^[01] +intel +(48|39) bits'
out '0x7f000000-0x7fffffff \(graphics stolen memory\)'
out '^0000:00:04.0 .* IOMMU 1, /dev/vfio/8, /dev/vfio/devices/vfio1'
run 0 --print
for key in machine no-device $(sed 's/^[[:blank:]]*//; s/=.*//; /^bar[1-4]/d' "$work/out"); do
	grep -q "^|.*\`$key\`" "$docs/machine-format.md" || fail "$key is not in machine-format.md"
done

# This machine: either it is described, or it is said what is missing.
case_is 'dmamap machine --system linux'
got=0
"$dmamap" machine --system linux >"$work/out" 2>"$work/err" || got=$?
if [ $got = 0 ]; then
	out '^this machine, as Linux [0-9]'
	run 0 --system linux --machine entry-limit=3 --print
	out '^entry-limit=3$'
else
	err 'no IOMMU is on.*turn it on'
fi

# Bad input: one sentence that names place and key, nothing on stdout.
printf 'iommu=amd\n  apertur=48\n' >"$work/bad"
bad "^dmamap machine: --machine @$work/bad: line 2, column 3: there is no key apertur; .*aperture," \
	--machine "@$work/bad"
bad '^dmamap machine: --machine: line 1, column 16: page=8K cannot be; give 4K, 16K or 64K$' \
	--machine 'iommu=amd,page=8K'
bad '@/nowhere: cannot read /nowhere: No such file' --machine @/nowhere
bad '@/: cannot read /: Is a directory' --machine @/
bad '--system windows: .*soft or linux' --system windows
bad '--print=book: .*file or line' --print=book
bad 'page=4K: .*--machine' page=4K
bad '--machine needs a value' --machine
bad '--nonsense: .*--help' --nonsense
bad '-q: .*--help' -q
run 0 --help
out 'usage: dmamap machine'

# The bench's soft system is such a machine.
command=bench
quick=(--system soft --size 2M --runs 1 -t vfio_type1v2_iommu_anonymous_demand)
run 0 "${quick[@]}" --machine machine=q35-amd --json
out '"device": "0000:00:04.0"'
run 0 "${quick[@]}" --machine memlock=process
bad '--machine: line 1, column 10: aperture=99 cannot be' "${quick[@]}" --machine aperture=99
bad '--machine: bench maps .*leave page out' "${quick[@]}" --machine \
	"$([ "$(getconf PAGESIZE)" = 4096 ] && echo page=64K || echo page=4K)"
bad 'the soft system has no device' "${quick[@]}" --machine no-device
bad '--machine is what the soft system is about' --system linux --machine page=4K
finish
